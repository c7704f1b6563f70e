// SPDX-License-Identifier: Apache-2.0
// Launches as CUDA 1 and 2 had them: block shape, shared memory and arguments are said to the function one by one, then
// it is launched. They stay said for the next launch.
//
// Threading: what was said is guarded by one mutex, a leaf. Functions end as elsewhere: not while they are used.
#include <cstring>
#include <memory>
#include <mutex>
#include <vector>

#include "interposer/cuda/entry.h"
#include "interposer/cuda/module.h"

using namespace hawser;      // NOLINT(google-build-using-namespace): entry points live outside of namespaces.
using namespace hawser::cu;  // NOLINT(google-build-using-namespace)

namespace hawser::cu {

struct OlderLaunch {
  int block[3] = {1, 1, 1};
  unsigned shared = 0;
  std::vector<std::byte> arguments;
};

}  // namespace hawser::cu

namespace {

constexpr unsigned kMostArguments = 32764;  ///< Bytes: what any kernel may take.

std::mutex& Mutex() {
  static auto* const mutex = new std::mutex;  // Outlives threads that launch while the process ends.
  return *mutex;
}

/// Changes what is said about a function. The function's own context need not be the current one before the launch.
template <typename C>
CUresult Change(CUfunction handle, C change) {
  CUctx_st* context = nullptr;
  if (const CUresult error = CurrentContext(&context); error != CUDA_SUCCESS) return error;
  FunctionBase* function = nullptr;
  if (const CUresult error = CheckFunction(handle, &function); error != CUDA_SUCCESS) return error;
  const std::lock_guard lock(Mutex());
  if (function->older == nullptr) function->older = std::make_shared<OlderLaunch>();
  change(*function->older);
  return CUDA_SUCCESS;
}

CUresult SetArgument(CUfunction function, int offset, const void* value, unsigned bytes) {
  if (offset < 0 || value == nullptr || bytes > kMostArguments || static_cast<unsigned>(offset) > kMostArguments) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  return Change(function, [&](OlderLaunch& said) {
    const size_t end = static_cast<size_t>(offset) + bytes;
    if (said.arguments.size() < end) said.arguments.resize(end);
    std::memcpy(said.arguments.data() + offset, value, bytes);
  });
}

CUresult Launch(CUfunction function, int width, int height, CUstream stream) {
  if (width <= 0 || height <= 0) return CUDA_ERROR_INVALID_VALUE;
  OlderLaunch said;
  if (const CUresult error = Change(function, [&](const OlderLaunch& now) { said = now; }); error != CUDA_SUCCESS) {
    return error;
  }
  size_t bytes = said.arguments.size();
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, said.arguments.data(), CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                   CU_LAUNCH_PARAM_END};
  return cuLaunchKernel(function, static_cast<unsigned>(width), static_cast<unsigned>(height), 1,
                        static_cast<unsigned>(said.block[0]), static_cast<unsigned>(said.block[1]),
                        static_cast<unsigned>(said.block[2]), said.shared, stream, nullptr, extra);
}

}  // namespace

CUresult CUDAAPI cuFuncSetBlockShape(CUfunction function, int x, int y, int z) {
  if (x <= 0 || y <= 0 || z <= 0) return CUDA_ERROR_INVALID_VALUE;
  return Change(function, [&](OlderLaunch& said) {
    said.block[0] = x;
    said.block[1] = y;
    said.block[2] = z;
  });
}

CUresult CUDAAPI cuFuncSetSharedSize(CUfunction function, unsigned int bytes) {
  return Change(function, [&](OlderLaunch& said) { said.shared = bytes; });
}

CUresult CUDAAPI cuParamSetSize(CUfunction function, unsigned int bytes) {
  if (bytes > kMostArguments) return CUDA_ERROR_INVALID_VALUE;
  return Change(function, [&](OlderLaunch& said) { said.arguments.resize(bytes); });
}

CUresult CUDAAPI cuParamSeti(CUfunction function, int offset, unsigned int value) {
  return SetArgument(function, offset, &value, sizeof(value));
}

CUresult CUDAAPI cuParamSetf(CUfunction function, int offset, float value) {
  return SetArgument(function, offset, &value, sizeof(value));
}

CUresult CUDAAPI cuParamSetv(CUfunction function, int offset, void* value, unsigned int bytes) {
  return SetArgument(function, offset, value, bytes);
}

CUresult CUDAAPI cuLaunch(CUfunction function) { return Launch(function, 1, 1, nullptr); }

CUresult CUDAAPI cuLaunchGrid(CUfunction function, int width, int height) {
  return Launch(function, width, height, nullptr);
}

CUresult CUDAAPI cuLaunchGridAsync(CUfunction function, int width, int height, CUstream stream) {
  return Launch(function, width, height, stream);
}
