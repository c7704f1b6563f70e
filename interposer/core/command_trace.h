// SPDX-License-Identifier: Apache-2.0
// HAWSER_TRACE: each command as a line for people.
#ifndef HAWSER_INTERPOSER_CORE_COMMAND_TRACE_H_
#define HAWSER_INTERPOSER_CORE_COMMAND_TRACE_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "interposer/core/api.h"
#include "wire/codec.h"
#include "wire/socket.h"

namespace hawser::guest {

/// Lines "<seconds since the start> #<seq> <call>(<arguments>)". Used under the stream mutex.
class CommandTrace {
 public:
  /// Null when the path is empty or cannot be written (logged).
  static std::unique_ptr<CommandTrace> Open(const std::string& path, const Api& api);

  void Add(uint64_t seq, uint16_t opcode, wire::Bytes payload);

 private:
  CommandTrace(wire::Fd fd, const Api& api) : fd_(std::move(fd)), api_(api), start_(std::chrono::steady_clock::now()) {}

  const wire::Fd fd_;
  const Api& api_;
  const std::chrono::steady_clock::time_point start_;
};

}  // namespace hawser::guest

#endif  // HAWSER_INTERPOSER_CORE_COMMAND_TRACE_H_
