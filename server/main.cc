// SPDX-License-Identifier: Apache-2.0
// hawserd: lends this machine's devices to guests. See server.h.
#include <cstdio>

#include "server/command_line.h"
#include "server/log.h"
#include "server/server.h"

namespace hawser::server {
namespace {

using wire::Result;
using wire::Status;

int Fail(const Status& status) {
  std::fprintf(stderr, "hawserd: %s\n", status.text().c_str());
  return 1;
}

int Main(int argc, char** argv) {
  CommandLine command_line;
  if (const auto exit = CommandLine::Parse(argc, argv, &command_line)) return *exit;
  Result<Config> config = command_line.Resolve();
  if (!config.ok()) return Fail(config.status());
  if (Status status = OpenLog(config->log_level, config->log_file); !status.ok()) return Fail(status);
  Server server(std::move(*config), [&] { return command_line.Resolve(); });
  if (Status status = server.Open(); !status.ok()) return Fail(status);
  for (const std::string& address : server.Addresses()) {
    Log(LogLevel::kInfo, "listening on " + address);
    // For scripts that wait until guests may connect.
    std::printf("listening on %s\n", address.c_str());
  }
  if (const std::string admin = server.AdminAddress(); !admin.empty()) {
    Log(LogLevel::kInfo, "operators connect to " + admin);
    std::printf("operators connect to %s\n", admin.c_str());
  }
  std::fflush(stdout);
  server.Run();
  Log(LogLevel::kInfo, "stopped");
  return 0;
}

}  // namespace
}  // namespace hawser::server

int main(int argc, char** argv) { return hawser::server::Main(argc, argv); }
