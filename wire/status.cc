// SPDX-License-Identifier: Apache-2.0
#include "wire/status.h"

#include <cerrno>
#include <cstring>

namespace hawser::wire {

Status Status::FromErrno(const std::string& what) { return FromErrno(what, errno); }

Status Status::FromErrno(const std::string& what, int error) {
  char buffer[128];
  // The GNU variant: thread-safe, and may return a constant string instead of filling the buffer.
  const char* words = ::strerror_r(error, buffer, sizeof(buffer));
  return Status(Code::kSystem, what + ": " + words);
}

}  // namespace hawser::wire
