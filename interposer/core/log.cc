// SPDX-License-Identifier: Apache-2.0
// Threads: any. A line is one write(2), so lines of several threads do not mix; no lock.
#include "interposer/core/log.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace hawser::guest {
namespace {

LogLevel ReadLevel() {
  const char* text = std::getenv("HAWSER_LOG");
  if (text == nullptr) return LogLevel::kWarning;
  if (std::strcmp(text, "error") == 0) return LogLevel::kError;
  if (std::strcmp(text, "info") == 0) return LogLevel::kInfo;
  if (std::strcmp(text, "debug") == 0) return LogLevel::kDebug;
  return LogLevel::kWarning;
}

int OpenTarget() {
  const char* path = std::getenv("HAWSER_LOG_FILE");
  if (path == nullptr || path[0] == '\0') return STDERR_FILENO;
  const int fd = ::open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  return fd >= 0 ? fd : STDERR_FILENO;
}

LogLevel Level() {
  static const LogLevel level = ReadLevel();
  return level;
}

}  // namespace

bool LogEnabled(LogLevel level) { return level <= Level(); }

void Log(LogLevel level, const char* format, ...) {
  if (!LogEnabled(level)) return;
  static const int target = OpenTarget();
  static constexpr char kPrefix[] = "hawser: ";
  char line[4608];
  std::memcpy(line, kPrefix, sizeof(kPrefix) - 1);
  size_t size = sizeof(kPrefix) - 1;
  va_list arguments;
  va_start(arguments, format);
  const int wanted = std::vsnprintf(line + size, sizeof(line) - size - 1, format, arguments);
  va_end(arguments);
  if (wanted < 0) return;
  size += std::min(static_cast<size_t>(wanted), sizeof(line) - size - 2);
  line[size++] = '\n';
  (void)!::write(target, line, size);
}

}  // namespace hawser::guest
