// SPDX-License-Identifier: Apache-2.0
#include "tools/devices_command.h"

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <nlohmann/json.hpp>

#include "tools/opencl_inventory.h"
#include "tools/run_command.h"
#include "tools/server_uri.h"

namespace hawser::tools {

void DevicesCommand::Register(CLI::App& app) {
  parser_ = app.add_subcommand("devices", "List the devices of a server, or of this machine");
  parser_->add_option("--server", server_,
                      "The server's URI (default: $HAWSER_SERVER; without either, this machine's own devices)");
  parser_->add_flag("--json", json_, "Print JSON");
}

bool DevicesCommand::Chosen() const { return parser_->parsed(); }

int DevicesCommand::Run() {
  const char* environment = std::getenv("HAWSER_SERVER");
  const bool remote = !server_.empty() || (environment != nullptr && *environment != '\0');
  if (remote) {
    const std::string server = ChosenServer(server_);
    wire::Status status = CheckGuestSide(layout_);
    if (status.ok()) status = CheckServer(server, std::chrono::seconds(5));
    if (!status.ok()) {
      Complain(status.text());
      return 1;
    }
    // The same way in as any program's: through the loader and the guest library.
    EnterGuestEnvironment(layout_, server);
  }
  auto platforms = ListPlatforms();
  if (!platforms.ok()) {
    Complain(platforms.status().text());
    return 1;
  }
  if (json_) {
    std::cout << InventoryJson(*platforms).dump(2) << "\n";
  } else {
    std::cout << InventoryText(*platforms);
  }
  size_t devices = 0;
  for (const PlatformEntry& platform : *platforms) devices += platform.devices.size();
  if (devices == 0) {
    Complain(remote ? "the server offers no device; its log says which platforms it found"
                    : "this machine has no OpenCL device of its own; name a server with --server URI");
    return 1;
  }
  return 0;
}

}  // namespace hawser::tools
