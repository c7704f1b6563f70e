// SPDX-License-Identifier: Apache-2.0
#include "tools/devices_command.h"

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <nlohmann/json.hpp>

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

std::vector<CudaDriverEntry> DevicesCommand::CudaDrivers(bool remote) const {
  std::vector<CudaDriverEntry> drivers;
  const auto add = [&](const char* title, const std::string& library, bool even_empty) {
    auto driver = ListCudaDevices(title, library);
    if (driver.ok() && (even_empty || !driver->devices.empty())) drivers.push_back(std::move(*driver));
  };
  if (remote) {
    if (!layout_.cuda_guest_directory.empty()) add("CUDA", layout_.cuda_guest_directory + "/libcuda.so.1", true);
    return drivers;
  }
  add("CUDA", "libcuda.so.1", false);
  if (!layout_.cuda_soft_directory.empty()) {
    add("CUDA software device", layout_.cuda_soft_directory + "/libcuda.so.1", true);
  }
  return drivers;
}

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
  const std::vector<CudaDriverEntry> drivers = CudaDrivers(remote);
  // Without an OpenCL loader there may be CUDA devices all the same.
  if (!platforms.ok() && drivers.empty()) {
    Complain(platforms.status().text());
    return 1;
  }
  const std::vector<PlatformEntry> found = platforms.ok() ? *platforms : std::vector<PlatformEntry>();
  if (json_) {
    // A list of OpenCL platforms, as ever, and what drivers of CUDA say behind it.
    nlohmann::json all = InventoryJson(found);
    for (nlohmann::json& driver : CudaInventoryJson(drivers)) all.push_back(std::move(driver));
    std::cout << all.dump(2) << "\n";
  } else {
    std::cout << InventoryText(found) << CudaInventoryText(drivers);
  }
  size_t devices = 0;
  for (const PlatformEntry& platform : found) devices += platform.devices.size();
  for (const CudaDriverEntry& driver : drivers) devices += driver.devices.size();
  if (devices == 0) {
    Complain(remote ? "the server offers no device; its log says which it found"
                    : "this machine has no device of its own; name a server with --server URI");
    return 1;
  }
  return 0;
}

}  // namespace hawser::tools
