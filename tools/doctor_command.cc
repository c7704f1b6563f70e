// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor_command.h"

#include <dlfcn.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <string>

#include "tools/cuda_inventory.h"
#include "tools/opencl_inventory.h"
#include "tools/run_command.h"
#include "tools/server_uri.h"

namespace hawser::tools {
namespace {

using wire::Code;
using wire::Result;
using wire::Status;

/// Looks at one thing, and says what was found, or what is wrong and what to type. False: it is wrong.
bool Look(const std::string& subject, const std::function<Result<std::string>()>& look) {
  const Result<std::string> found = look();
  std::cout << (found.ok() ? "  ok     " : "  wrong  ") << subject << ": "
            << (found.ok() ? found.value() : found.status().text()) << std::endl;
  return found.ok();
}

bool LookAtDevices(bool answers, const std::function<Result<std::string>()>& look) {
  if (answers) return Look("devices", look);
  std::cout << "  -      devices: not looked at, because no server answers" << std::endl;
  return false;
}

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

Result<std::string> LoadCudaDriver(const std::string& path) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return Status(Code::kInvalid, std::string("it does not load: ") + dlerror());
  if (dlsym(library, "cuInit") == nullptr)
    return Status(Code::kInvalid, path + " is no CUDA driver; build or install again");
  return path;
}

/// What programs find there: those that name a runtime, and what redirects the runtime that others embed.
Result<std::string> FindRuntimes(const std::string& directory) {
  std::string found;
  for (const char* name : {"libcudart.so.12", "libcudart.so.13"}) {
    if (::access((directory + "/" + name).c_str(), R_OK) == 0) found += (found.empty() ? "" : ", ") + std::string(name);
  }
  if (found.empty()) return Status(Code::kInvalid, "there is none in " + directory + "; build or install again");
  const std::string preload = directory + "/libhawser_preload.so";
  if (::access(preload.c_str(), R_OK) != 0) {
    return Status(Code::kInvalid, preload + " is missing: programs that embed a runtime would not be redirected");
  }
  return found + ", and those that programs embed";
}

Result<std::string> SeeCudaDevices(const std::string& driver) {
  Result<CudaDriverEntry> seen = ListCudaDevices("CUDA", driver);
  if (!seen.ok()) return seen.status();
  std::string names;
  for (const CudaDeviceEntry& device : seen->devices) names += (names.empty() ? "" : ", ") + device.name;
  if (!names.empty()) return names;
  return Status(Code::kInvalid,
                "a program would see no device. The lines above, if any, come from the guest library; the server's "
                "log says which driver it tried and why it has none");
}

}  // namespace

void DoctorCommand::Register(CLI::App& app) {
  parser_ = app.add_subcommand("doctor", "Check everything between a program and the server's device");
  parser_->add_option("--server", server_, "The server's URI (default: $HAWSER_SERVER, else " + DefaultServer() + ")");
  parser_->add_option("--api", api_, "Look at one interface only")->check(CLI::IsMember({"opencl", "cuda"}));
}

bool DoctorCommand::Chosen() const { return parser_->parsed(); }

bool DoctorCommand::LookAtOpenCl(const std::string& server, bool answers) const {
  std::cout << "OpenCL programs\n";
  const bool guest =
      Look("guest library",
           [&]() -> Result<std::string> {
             if (Status s = CheckGuestSide(layout_); !s.ok()) return s;
             return LoadClientLibrary(layout_.client_library);
           }) &&
      Look("platform file", [&] { return Result<std::string>(layout_.icd_directory + "/hawser.icd"); }) &&
      Look("loader", FindOpenClLoader) && Look("layers", [] {
        const char* layers = std::getenv("OPENCL_LAYERS");
        return Result<std::string>(layers == nullptr ? "none"
                                                     : std::string("OPENCL_LAYERS=") + layers + " is between the two");
      });
  return guest && LookAtDevices(answers, [&] {
           EnterGuestEnvironment(layout_, server);
           return SeeDevices();
         });
}

bool DoctorCommand::LookAtCuda(const std::string& server, bool answers) const {
  std::cout << "CUDA programs\n";
  const std::string& directory = layout_.cuda_guest_directory;
  const std::string driver = directory + "/libcuda.so.1";
  const bool guest =
      Look("guest driver",
           [&]() -> Result<std::string> {
             if (!directory.empty()) return LoadCudaDriver(driver);
             return Status(Code::kInvalid, "this installation has none: it was built without CUDA's headers");
           }) &&
      Look("runtimes", [&] { return FindRuntimes(directory); });
  return guest && LookAtDevices(answers, [&] {
           EnterGuestEnvironment(layout_, server);
           return SeeCudaDevices(driver);
         });
}

int DoctorCommand::Run() {
  const std::string server = ChosenServer(server_);
  std::cout << "hawser " << HAWSER_VERSION << "\n";
  const bool answers = Look("server", [&]() -> Result<std::string> {
    if (Status s = CheckServer(server, std::chrono::seconds(5)); !s.ok()) return s;
    return server + " answers";
  });
  const bool opencl = api_ == "cuda" || LookAtOpenCl(server, answers);
  const bool cuda = api_ == "opencl" || LookAtCuda(server, answers);
  if (opencl && cuda) {
    std::cout << "Everything is in order. Try: hawser run --server " << server
              << (api_ == "cuda" ? " ./program\n" : " clinfo -l\n");
    return 0;
  }
  if (api_.empty() && opencl != cuda) {
    std::cout << (opencl ? "OpenCL programs will run; CUDA programs will not.\n"
                         : "CUDA programs will run; OpenCL programs will not.\n");
  }
  return 1;
}

}  // namespace hawser::tools
