// SPDX-License-Identifier: Apache-2.0
#include "server/backends/cuda/driver_table.h"

#include <dlfcn.h>
#include <link.h>

#include <climits>
#include <cstdlib>

// The name after cuda.h's macros.
#define HAWSER_TEXT(name) #name
#define HAWSER_EXPANDED_TEXT(name) HAWSER_TEXT(name)

namespace hawser::server::cuda_backend {
namespace {

using wire::Code;
using wire::Result;
using wire::Status;

/// Finds the entry points of one library.
class Finder {
 public:
  explicit Finder(void* library) : library_(library) {
    int version = 0;
    const auto get_version = reinterpret_cast<decltype(&::cuDriverGetVersion)>(::dlsym(library, "cuDriverGetVersion"));
    if (get_version != nullptr && get_version(&version) == CUDA_SUCCESS && version >= CUDA_VERSION) {
      ask_ = reinterpret_cast<decltype(&::cuGetProcAddress)>(::dlsym(library, "cuGetProcAddress_v2"));
    }
  }

  /// `symbol` is exported, `name` is what cuGetProcAddress knows it by.
  template <typename Function>
  bool Find(const char* name, const char* symbol, Function* function) const {
    void* address = ::dlsym(library_, symbol);
    if (address == nullptr && ask_ != nullptr) {
      CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
      if (ask_(name, &address, CUDA_VERSION, CU_GET_PROC_ADDRESS_DEFAULT, &found) != CUDA_SUCCESS ||
          found != CU_GET_PROC_ADDRESS_SUCCESS) {
        address = nullptr;
      }
    }
    *function = reinterpret_cast<Function>(address);
    return address != nullptr;
  }

 private:
  void* const library_;
  decltype(&::cuGetProcAddress) ask_ = nullptr;
};

std::string PathOf(void* library, const std::string& otherwise) {
  link_map* map = nullptr;
  if (::dlinfo(library, RTLD_DI_LINKMAP, static_cast<void*>(&map)) != 0 || map == nullptr || map->l_name == nullptr) {
    return otherwise;
  }
  char real[PATH_MAX];
  return ::realpath(map->l_name, real) != nullptr ? real : map->l_name;
}

}  // namespace

Result<LoadedDriver> LoadDriver(const std::string& library) {
  void* handle = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* why = ::dlerror();
    return Status(Code::kInvalid, "cannot open the CUDA driver: " + std::string(why != nullptr ? why : library));
  }
  LoadedDriver driver;
  driver.path = PathOf(handle, library);
  const Finder finder(handle);
  std::string lacking;
#define HAWSER_REQUIRE(name) \
  if (!finder.Find(#name, HAWSER_EXPANDED_TEXT(name), &driver.table.name)) lacking += " " HAWSER_EXPANDED_TEXT(name);
  HAWSER_CUDA_REQUIRED(HAWSER_REQUIRE)
#undef HAWSER_REQUIRE
  if (!lacking.empty()) {
    return Status(Code::kInvalid, "the CUDA driver " + driver.path + " lacks" + lacking);
  }
#define HAWSER_TAKE(name)                                                    \
  if (!finder.Find(#name, HAWSER_EXPANDED_TEXT(name), &driver.table.name)) { \
    driver.missing.emplace_back(HAWSER_EXPANDED_TEXT(name));                 \
  }
  HAWSER_CUDA_OPTIONAL(HAWSER_TAKE)
#undef HAWSER_TAKE
  driver.table.ElapsedTimeV1 = reinterpret_cast<PFN_cuEventElapsedTime_v2000>(::dlsym(handle, "cuEventElapsedTime"));
  if (const CUresult result = driver.table.cuDriverGetVersion(&driver.version); result != CUDA_SUCCESS) {
    return Status(Code::kInvalid,
                  "the CUDA driver " + driver.path + " does not tell its version: " + ErrorText(driver.table, result));
  }
  return driver;
}

std::string ErrorText(const DriverTable& driver, CUresult result) {
  const char* name = nullptr;
  if (driver.cuGetErrorName == nullptr || driver.cuGetErrorName(result, &name) != CUDA_SUCCESS || name == nullptr) {
    name = "CUDA error";
  }
  return std::string(name) + " (" + std::to_string(static_cast<int>(result)) + ")";
}

uint64_t ElapsedNs(const DriverTable& driver, CUevent begin, CUevent end) {
  float milliseconds = 0;
  CUresult result = CUDA_ERROR_NOT_SUPPORTED;
  if (driver.cuEventElapsedTime != nullptr) {
    result = driver.cuEventElapsedTime(&milliseconds, begin, end);
  } else if (driver.ElapsedTimeV1 != nullptr) {
    result = driver.ElapsedTimeV1(&milliseconds, begin, end);
  }
  return result == CUDA_SUCCESS && milliseconds > 0 ? static_cast<uint64_t>(static_cast<double>(milliseconds) * 1e6)
                                                    : 0;
}

}  // namespace hawser::server::cuda_backend
