// SPDX-License-Identifier: Apache-2.0
#include "wire/channel.h"

namespace hawser::wire {

Status Channel::WriteAll(Bytes bytes, bool flush) {
  while (!bytes.empty()) {
    Result<size_t> taken = TryWrite(bytes);
    if (!taken.ok()) return taken.status();
    bytes = bytes.subspan(*taken);
    if (bytes.empty()) break;
    if (Status status = WaitWritable(std::nullopt); !status.ok()) return status;
  }
  while (flush) {
    Result<bool> done = TryFlush();
    if (!done.ok()) return done.status();
    if (*done) break;
    if (Status status = WaitWritable(std::nullopt); !status.ok()) return status;
  }
  return {};
}

Status Channel::ReadAll(std::span<std::byte> buffer, SpinPolicy spin) {
  while (!buffer.empty()) {
    Result<size_t> got = TryRead(buffer);
    if (!got.ok()) return got.status();
    buffer = buffer.subspan(*got);
    if (*got != 0) continue;
    if (Status status = WaitReadable(spin, std::nullopt); !status.ok()) return status;
  }
  return {};
}

}  // namespace hawser::wire
