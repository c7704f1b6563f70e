// SPDX-License-Identifier: Apache-2.0
#include "interposer/cudart/redirect/our_runtime.h"

#include <dlfcn.h>

#include <cstring>
#include <mutex>

#include "interposer/core/log.h"

namespace hawser::redirect {
namespace {

using guest::Log;
using guest::LogLevel;

// The answer of every function when our runtime cannot be opened: cudaErrorInsufficientDriver.
int64_t Unavailable() { return 35; }

// Our runtime lies beside this library.
std::string PathOf(int major) {
  Dl_info info{};
  std::string name = "libcudart.so." + std::to_string(major);
  if (dladdr(reinterpret_cast<void*>(&Unavailable), &info) == 0 || info.dli_fname == nullptr) return name;
  const char* slash = std::strrchr(info.dli_fname, '/');
  return slash == nullptr ? name : std::string(info.dli_fname, slash + 1) + name;
}

class Runtime : public Destination {
 public:
  explicit Runtime(int major) : major_(major) {}

  uintptr_t Find(const std::string& name) override {
    std::call_once(opened_, [this] { Open(); });
    void* function = library_ != nullptr ? dlsym(library_, name.c_str()) : nullptr;
    if (library_ != nullptr && function == nullptr) Log(LogLevel::kError, "%s is missing", name.c_str());
    return function != nullptr ? reinterpret_cast<uintptr_t>(function) : reinterpret_cast<uintptr_t>(&Unavailable);
  }

 private:
  void Open() {
    library_ = dlopen(PathOf(major_).c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library_ == nullptr) Log(LogLevel::kError, "cannot open the CUDA runtime of Hawser: %s", dlerror());
  }

  const int major_;
  std::once_flag opened_;
  void* library_ = nullptr;
};

}  // namespace

Destination* OurRuntime(int major) {
  // Never destroyed: programs call CUDA while they end.
  static auto* const runtime12 = new Runtime(12);
  static auto* const runtime13 = new Runtime(13);
  return major == 12 ? runtime12 : runtime13;
}

}  // namespace hawser::redirect
