// SPDX-License-Identifier: Apache-2.0
// What the ICD loader asks for by name. The library exports these three functions and nothing else; all others are
// reached through the dispatch table of an object.
#include <cstring>

#include "interposer/opencl/entry.h"
#include "proto/opencl/guest_entries.h"

namespace hawser::ocl {
namespace {

/// Commands, bytes up, bytes down, waits, bulk bytes up, bulk bytes down of this process so far; zeros before the
/// first connection. For `hawser bench`.
void CL_API_CALL GetStats(uint64_t out[6]) {
  guest::Session* session = guest::Session::IfConnected();
  if (session == nullptr) {
    std::memset(out, 0, 6 * sizeof(uint64_t));
    return;
  }
  const guest::Stats& stats = session->stats();
  out[0] = stats.commands;
  out[1] = stats.bytes_up;
  out[2] = stats.bytes_down;
  out[3] = stats.waits;
  out[4] = stats.bulk_up;
  out[5] = stats.bulk_down;
}

cl_int CL_API_CALL IcdGetPlatformIDs(cl_uint num_entries, cl_platform_id* platforms, cl_uint* num_platforms) {
  return ocl::clGetPlatformIDs(num_entries, platforms, num_platforms);
}

struct Alias {
  const char* name;
  void* function;
};

/// Functions of extensions that a guest may see (extension_filter.cc): core calls under their earlier names.
void* ExtensionEntry(const char* name) {
  const Alias aliases[] = {
      {"clIcdGetPlatformIDsKHR", reinterpret_cast<void*>(&IcdGetPlatformIDs)},
      {"clCreateCommandQueueWithPropertiesKHR", reinterpret_cast<void*>(&ocl::clCreateCommandQueueWithProperties)},
      {"clCreateProgramWithILKHR", reinterpret_cast<void*>(&ocl::clCreateProgramWithIL)},
      {"clGetKernelSubGroupInfoKHR", reinterpret_cast<void*>(&ocl::clGetKernelSubGroupInfo)},
      {"hawserGetStatsHWS", reinterpret_cast<void*>(&GetStats)},
  };
  for (const Alias& alias : aliases) {
    if (std::strcmp(alias.name, name) == 0) return alias.function;
  }
  return nullptr;
}

}  // namespace

void* CL_API_CALL clGetExtensionFunctionAddress(const char* name) {
  if (name == nullptr) return nullptr;
  if (void* function = ExtensionEntry(name)) return function;
  return EntryPoint(name);
}

void* CL_API_CALL clGetExtensionFunctionAddressForPlatform(cl_platform_id platform, const char* name) {
  if (CheckHandle(platform) != CL_SUCCESS) return nullptr;
  return ocl::clGetExtensionFunctionAddress(name);
}

}  // namespace hawser::ocl

#define HAWSER_EXPORT extern "C" __attribute__((visibility("default")))

HAWSER_EXPORT CL_API_ENTRY void* CL_API_CALL clGetExtensionFunctionAddress(const char* name) {
  return hawser::ocl::clGetExtensionFunctionAddress(name);
}

HAWSER_EXPORT CL_API_ENTRY cl_int CL_API_CALL clIcdGetPlatformIDsKHR(cl_uint num_entries, cl_platform_id* platforms,
                                                                     cl_uint* num_platforms) {
  return hawser::ocl::clGetPlatformIDs(num_entries, platforms, num_platforms);
}

HAWSER_EXPORT CL_API_ENTRY cl_int CL_API_CALL clGetPlatformInfo(cl_platform_id platform, cl_platform_info param,
                                                                size_t size, void* value, size_t* size_ret) {
  return hawser::ocl::clGetPlatformInfo(platform, param, size, value, size_ret);
}
