// SPDX-License-Identifier: Apache-2.0
#include "interposer/core/command_trace.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "interposer/core/log.h"

namespace hawser::guest {

std::unique_ptr<CommandTrace> CommandTrace::Open(const std::string& path, const Api& api) {
  if (path.empty()) return nullptr;
  wire::Fd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
  if (!fd.valid()) {
    Log(LogLevel::kWarning, "cannot write the trace $HAWSER_TRACE='%s': %s; going on without", path.c_str(),
        std::strerror(errno));
    return nullptr;
  }
  return std::unique_ptr<CommandTrace>(new CommandTrace(std::move(fd), api));
}

void CommandTrace::Add(uint64_t seq, uint16_t opcode, wire::Bytes payload) {
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start_;
  char head[64];
  const int size = std::snprintf(head, sizeof(head), "%.6f #%llu ", time.count(), static_cast<unsigned long long>(seq));
  std::string line(head, static_cast<size_t>(size));
  line += api_.trace(opcode, payload);
  line += '\n';
  (void)!::write(fd_.get(), line.data(), line.size());
}

}  // namespace hawser::guest
