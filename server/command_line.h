// SPDX-License-Identifier: Apache-2.0
// hawserd's command line, and how it and the configuration file become one configuration.
#ifndef HAWSER_SERVER_COMMAND_LINE_H_
#define HAWSER_SERVER_COMMAND_LINE_H_

#include <optional>
#include <string>
#include <vector>

#include "server/config.h"
#include "wire/status.h"

namespace hawser::server {

struct CommandLine {
  std::vector<std::string> listen;
  std::string config_file;
  std::string admin;  ///< --admin
  std::string log_level;
  std::string log_file;
  std::string worker;
  std::string policy;
  std::string device;       ///< --device
  std::string cuda_driver;  ///< --cuda-driver
  std::string cuda_memory;  ///< --cuda-memory

  /// The exit status when there is nothing more to do (--help, --version, a mistake; said already).
  static std::optional<int> Parse(int argc, const char* const* argv, CommandLine* parsed);

  /// The file, with what the command line says on top and defaults where both are silent.
  wire::Result<Config> Resolve() const;
};

}  // namespace hawser::server

#endif  // HAWSER_SERVER_COMMAND_LINE_H_
