// SPDX-License-Identifier: Apache-2.0
// Who waits for which command's reply.
#ifndef HAWSER_INTERPOSER_CORE_REPLY_TABLE_H_
#define HAWSER_INTERPOSER_CORE_REPLY_TABLE_H_

#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "interposer/core/session.h"

namespace hawser::guest {

/// Thread-safe. Calls no sink. Only commands with a reply come here, so it may allocate.
class ReplyTable {
 public:
  /// False once the table is closed: the sink will not be called.
  bool Add(uint64_t seq, ReplySink* sink);
  /// The sink of this command, which is forgotten; null if there is none.
  ReplySink* Take(uint64_t seq);
  /// Takes all sinks; nothing can be added any more.
  std::vector<ReplySink*> Close();

 private:
  std::mutex mutex_;
  bool closed_ = false;
  std::unordered_map<uint64_t, ReplySink*> sinks_;
};

}  // namespace hawser::guest

#endif  // HAWSER_INTERPOSER_CORE_REPLY_TABLE_H_
