// SPDX-License-Identifier: Apache-2.0
// hawserd's log. A thin front, so that only log.cc sees the logging library. Thread-safe.
#ifndef HAWSER_SERVER_LOG_H_
#define HAWSER_SERVER_LOG_H_

#include <string>
#include <string_view>

#include "wire/status.h"

namespace hawser::server {

enum class LogLevel { kError, kWarning, kInfo, kDebug };

/// "error", "warning", "info", "debug"; kInvalid for other names.
wire::Result<LogLevel> ParseLogLevel(std::string_view name);

/// Where the log goes: a file that is appended to, or stderr when `file` is empty. May be called again.
wire::Status OpenLog(LogLevel level, const std::string& file);

/// One line, written before the call returns.
void Log(LogLevel level, std::string_view text);

}  // namespace hawser::server

#endif  // HAWSER_SERVER_LOG_H_
