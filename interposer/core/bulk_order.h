// SPDX-License-Identifier: Apache-2.0
// Whose turn it is on the bulk channel: data goes out in the order of the commands that announced it.
//
// Why: the server reads a transfer's bytes when it has met the command that names them, and while it waits within a
// command (the release of memory that a copy still writes) it meets no further one. Were the data of a later command
// ahead of what it waits for, neither would ever move. In the commands' order, all that the server has met comes first.
//
// A late transfer's data is there long after its command was sent, when something else has happened. It comes behind
// all that was announced before it, and what was announced after it does not wait for it: the server has met its
// command before theirs. No command may wait within itself for such a transfer.
#ifndef HAWSER_INTERPOSER_CORE_BULK_ORDER_H_
#define HAWSER_INTERPOSER_CORE_BULK_ORDER_H_

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <unordered_set>

namespace hawser::guest {

/// Thread-safe. Lock order: the stream mutex, then this class's, which is held for no call out of it.
///
/// Between Announce() and Await() a thread must take no lock that somebody holds while waiting for the server, and must
/// not wait for room in the command channel: everybody behind it waits too.
class BulkOrder {
 public:
  /// The command that names the transfer is about to be sent; called under the stream mutex.
  void Announce(uint64_t transfer);
  /// The transfer, which has not been announced, will be late.
  void Expect(uint64_t transfer);
  /// Waits until all transfers announced before this one are done, but late ones. At once for one that nobody
  /// announced. False: the session is over.
  bool Await(uint64_t transfer);
  /// The transfer's data is in the channel.
  void Done(uint64_t transfer);
  /// The session is over: nobody waits any more.
  void Close();

 private:
  struct Entry {
    uint64_t transfer;
    bool late;
  };

  bool IsTurn(uint64_t transfer) const;

  std::mutex mutex_;
  std::condition_variable turn_;
  std::deque<Entry> announced_;        ///< And not done, in the commands' order.
  std::unordered_set<uint64_t> late_;  ///< Not announced yet.
  bool closed_ = false;
};

}  // namespace hawser::guest

#endif  // HAWSER_INTERPOSER_CORE_BULK_ORDER_H_
