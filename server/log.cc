// SPDX-License-Identifier: Apache-2.0
#include "server/log.h"

#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <memory>

namespace hawser::server {
namespace {

using wire::Code;
using wire::Result;
using wire::Status;

spdlog::level::level_enum ToSpdlog(LogLevel level) {
  switch (level) {
    case LogLevel::kError:
      return spdlog::level::err;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kDebug:
      return spdlog::level::debug;
  }
  return spdlog::level::info;
}

}  // namespace

Result<LogLevel> ParseLogLevel(std::string_view name) {
  if (name == "error") return LogLevel::kError;
  if (name == "warning") return LogLevel::kWarning;
  if (name == "info") return LogLevel::kInfo;
  if (name == "debug") return LogLevel::kDebug;
  return Status(Code::kInvalid, "'" + std::string(name) + "' is no log level; use error, warning, info or debug");
}

Status OpenLog(LogLevel level, const std::string& file) {
  try {
    std::shared_ptr<spdlog::sinks::sink> sink;
    if (file.empty()) {
      sink = std::make_shared<spdlog::sinks::stderr_sink_mt>();
    } else {
      sink = std::make_shared<spdlog::sinks::basic_file_sink_mt>(file);
    }
    auto logger = std::make_shared<spdlog::logger>("hawserd", std::move(sink));
    logger->set_pattern("%Y-%m-%d %H:%M:%S.%e %l: %v");
    logger->flush_on(spdlog::level::trace);
    logger->set_level(ToSpdlog(level));
    spdlog::set_default_logger(std::move(logger));
  } catch (const spdlog::spdlog_ex& error) {
    return Status(Code::kSystem, "cannot open the log '" + file + "': " + error.what());
  }
  return {};
}

void Log(LogLevel level, std::string_view text) {
  spdlog::default_logger_raw()->log(ToSpdlog(level), spdlog::string_view_t(text.data(), text.size()));
}

}  // namespace hawser::server
