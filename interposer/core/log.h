// SPDX-License-Identifier: Apache-2.0
// The guest library's log: plain lines on stderr, or in the file named by $HAWSER_LOG_FILE. Quiet by default:
// only what a user must know. $HAWSER_LOG: error, warning (default), info, debug.
#ifndef HAWSER_INTERPOSER_CORE_LOG_H_
#define HAWSER_INTERPOSER_CORE_LOG_H_

namespace hawser::guest {

enum class LogLevel { kError, kWarning, kInfo, kDebug };

bool LogEnabled(LogLevel level);
/// printf-style; adds "hawser: " and a newline. Never on the launch path unless something failed.
void Log(LogLevel level, const char* format, ...) __attribute__((format(printf, 2, 3)));

}  // namespace hawser::guest

#endif  // HAWSER_INTERPOSER_CORE_LOG_H_
