// SPDX-License-Identifier: Apache-2.0
// Where the data of which bulk transfer goes.
#ifndef HAWSER_INTERPOSER_CORE_TRANSFER_TABLE_H_
#define HAWSER_INTERPOSER_CORE_TRANSFER_TABLE_H_

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "interposer/core/receiver.h"
#include "interposer/core/session.h"

namespace hawser::guest {

/// Thread-safe. Calls no sink under its mutex; lock order: its mutex, then the receiver's.
class TransferTable {
 public:
  void Add(uint64_t transfer, BulkSink* sink);
  /// Forgets a transfer; waits while its sink is in use. False if Close() took the sink.
  bool Cancel(uint64_t transfer);

  /// For the holder of the receive role: the sink, which stays in use until Release(); null if unknown.
  BulkSink* Use(uint64_t transfer);
  /// `ended`: the sink heard OnEnd and is forgotten (its address is not touched).
  void Release(uint64_t transfer, bool ended);

  /// Asks the receiver's background thread to receive until no transfer is left.
  void ReceiveInBackground(Receiver* receiver);

  /// Takes all sinks; additions are ignored from now on.
  std::vector<BulkSink*> Close();

 private:
  void EndBackgroundIfEmpty();

  std::mutex mutex_;
  std::condition_variable released_;
  bool closed_ = false;
  uint64_t in_use_ = 0;
  Receiver* background_ = nullptr;  ///< Whose interest we added.
  std::unordered_map<uint64_t, BulkSink*> sinks_;
  std::unordered_set<uint64_t> closed_transfers_;  ///< Whose sinks Close() took.
};

}  // namespace hawser::guest

#endif  // HAWSER_INTERPOSER_CORE_TRANSFER_TABLE_H_
