// SPDX-License-Identifier: Apache-2.0
// A CUDA driver for tests that takes machine code, as NVIDIA's does: the software device, which is asked to run the
// text in the file $HAWSER_TEST_CUBIN_TEXT wherever a module is machine code. A server that is given this library with
// --cuda-driver does not know it for the software device.
#include <cuda.h>
#include <dlfcn.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>

namespace {

// What the program's machine code was compiled from.
const std::string& Text() {
  static const std::string text = [] {
    const char* const path = std::getenv("HAWSER_TEST_CUBIN_TEXT");
    std::ifstream file(path != nullptr ? path : "", std::ios::binary);
    return std::string((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  }();
  return text;
}

// A cubin, or a fatbin whose only entry is one.
bool IsMachineCode(const void* image) {
  constexpr uint32_t kElf = 0x464c457f, kFatbin = 0xba55ed50;
  uint32_t magic = 0;
  uint16_t kind = 0;
  std::memcpy(&magic, image, sizeof(magic));
  if (magic == kElf) return true;
  if (magic != kFatbin) return false;
  std::memcpy(&kind, static_cast<const std::byte*>(image) + 16, sizeof(kind));
  return kind == 2;
}

template <typename Function>
Function Next(const char* name) {
  return reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" {

// Whoever asks what device this is (redirect/nvrtc.h) must not take it for the software device either.
CUresult CUDAAPI cuDeviceGetName(char* name, int size, CUdevice device) {
  static const auto next = Next<decltype(&cuDeviceGetName)>("cuDeviceGetName");
  const CUresult result = next(name, size, device);
  if (result == CUDA_SUCCESS) std::snprintf(name, static_cast<size_t>(size), "device with machine code");
  return result;
}

CUresult CUDAAPI cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned int count, CUjit_option* options,
                                    void** values) {
  static const auto next = Next<decltype(&cuModuleLoadDataEx)>("cuModuleLoadDataEx");
  return next(module, IsMachineCode(image) ? Text().c_str() : image, count, options, values);
}

CUresult CUDAAPI cuLibraryLoadData(CUlibrary* library, const void* image, CUjit_option* options, void** values,
                                   unsigned int count, CUlibraryOption* library_options, void** library_values,
                                   unsigned int library_count) {
  static const auto next = Next<decltype(&cuLibraryLoadData)>("cuLibraryLoadData");
  return next(library, IsMachineCode(image) ? Text().c_str() : image, options, values, count, library_options,
              library_values, library_count);
}

}  // extern "C"
