// SPDX-License-Identifier: Apache-2.0
// Whose turn it is on the bulk channel: data goes out in the order of the commands that announced it.
//
// Why: the server reads a transfer's bytes when it has met the command that names them, and while it waits within a
// command (the release of memory that a copy still writes) it meets no further one. Were the data of a later command
// ahead of what it waits for, neither would ever move. In the commands' order, all that the server has met comes first.
#ifndef HAWSER_INTERPOSER_CORE_BULK_ORDER_H_
#define HAWSER_INTERPOSER_CORE_BULK_ORDER_H_

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>

namespace hawser::guest {

/// Thread-safe. Lock order: the stream mutex, then this class's, which is held for no call out of it.
///
/// Between Announce() and Await() a thread must take no lock that somebody holds while waiting for the server, and must
/// not wait for room in the command channel: everybody behind it waits too.
class BulkOrder {
 public:
  /// The command that names the transfer is about to be sent; called under the stream mutex.
  void Announce(uint64_t transfer);
  /// Waits until all transfers announced before this one are done. At once for one that nobody announced.
  /// False: the session is over.
  bool Await(uint64_t transfer);
  /// The transfer's data is in the channel.
  void Done(uint64_t transfer);
  /// The session is over: nobody waits any more.
  void Close();

 private:
  std::mutex mutex_;
  std::condition_variable turn_;
  std::deque<uint64_t> announced_;  ///< And not done, in the commands' order.
  bool closed_ = false;
};

}  // namespace hawser::guest

#endif  // HAWSER_INTERPOSER_CORE_BULK_ORDER_H_
