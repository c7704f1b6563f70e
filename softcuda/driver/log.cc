// SPDX-License-Identifier: Apache-2.0
#include "softcuda/driver/log.h"

#include <unistd.h>

#include <string>

namespace hawser::soft {

void Log(std::string_view text) { LogAsIs("hawser: software device: " + std::string(text)); }

void LogAsIs(std::string_view text) {
  std::string line(text);
  line.push_back('\n');
  // Straight to the descriptor: the program may have closed or redirected its stdio, and pieces must not mix.
  size_t written = 0;
  while (written < line.size()) {
    const ssize_t n = ::write(STDERR_FILENO, line.data() + written, line.size() - written);
    if (n <= 0) return;
    written += static_cast<size_t>(n);
  }
}

}  // namespace hawser::soft
