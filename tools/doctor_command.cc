// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor_command.h"

#include <dlfcn.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <vector>

#include "tools/opencl_inventory.h"
#include "tools/run_command.h"
#include "tools/server_uri.h"

namespace hawser::tools {
namespace {

using wire::Code;
using wire::Result;
using wire::Status;

/// What a check found, in a few words; or what is wrong and what to type.
struct Check {
  std::string subject;
  std::function<Result<std::string>()> look;
};

/// The library must load here: a missing dependency shows now and not inside somebody's program.
Result<std::string> LoadClientLibrary(const std::string& path) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return Status(Code::kInvalid, std::string("it does not load: ") + dlerror());
  const bool complete = dlsym(library, "clGetExtensionFunctionAddress") != nullptr;
  if (!complete) return Status(Code::kInvalid, path + " is no OpenCL vendor library; build or install again");
  return path;
}

Result<std::string> SeeDevices() {
  auto platforms = ListPlatforms();
  if (!platforms.ok()) return platforms.status();
  std::string names;
  for (const PlatformEntry& platform : *platforms) {
    for (const DeviceEntry& device : platform.devices) names += (names.empty() ? "" : ", ") + device.name;
  }
  if (!names.empty()) return names;
  return Status(Code::kInvalid,
                "a program would see no device. The lines above, if any, come from the guest library; the server's "
                "log says which OpenCL platforms it found (on Debian: sudo apt-get install pocl-opencl-icd)");
}

}  // namespace

void DoctorCommand::Register(CLI::App& app) {
  parser_ = app.add_subcommand("doctor", "Check everything between a program and the server's device");
  parser_->add_option("--server", server_, "The server's URI (default: $HAWSER_SERVER, else " + DefaultServer() + ")");
}

bool DoctorCommand::Chosen() const { return parser_->parsed(); }

int DoctorCommand::Run() {
  const std::string server = ChosenServer(server_);
  const std::vector<Check> checks = {
      {"guest library",
       [&]() -> Result<std::string> {
         if (Status s = CheckGuestSide(layout_); !s.ok()) return s;
         return LoadClientLibrary(layout_.client_library);
       }},
      {"platform file", [&]() -> Result<std::string> { return layout_.icd_directory + "/hawser.icd"; }},
      {"OpenCL loader", FindOpenClLoader},
      {"OpenCL layers",
       [&]() -> Result<std::string> {
         const char* layers = std::getenv("OPENCL_LAYERS");
         return layers == nullptr ? "none" : std::string("OPENCL_LAYERS=") + layers + " is between the two";
       }},
      {"server",
       [&]() -> Result<std::string> {
         if (Status s = CheckServer(server, std::chrono::seconds(5)); !s.ok()) return s;
         return server + " answers";
       }},
      {"devices",
       [&]() -> Result<std::string> {
         EnterGuestEnvironment(layout_, server);
         return SeeDevices();
       }},
  };
  std::cout << "hawser " << HAWSER_VERSION << "\n";
  for (const Check& check : checks) {
    const Result<std::string> found = check.look();
    if (!found.ok()) {
      std::cout << "  wrong  " << check.subject << ": " << found.status().text() << "\n";
      // The later checks stand on this one.
      return 1;
    }
    std::cout << "  ok     " << check.subject << ": " << found.value() << std::endl;
  }
  std::cout << "Everything is in order. Try: hawser run --server " << server << " clinfo -l\n";
  return 0;
}

}  // namespace hawser::tools
