// SPDX-License-Identifier: Apache-2.0
// Entry points: earlier forms that programs still use, as far as they mean the same as today's: launches that set their
// arguments one by one, context counts, operations on memory words.
#include <cstring>
#include <map>
#include <mutex>
#include <vector>

#include "softcuda/driver/entry.h"

using namespace hawser::soft;  // NOLINT(google-build-using-namespace): entry points are global.

namespace {

/// What cuFuncSet* and cuParamSet* say about a function until it is launched.
struct Pending {
  unsigned block[3] = {1, 1, 1};
  unsigned shared = 0;
  std::vector<uint8_t> arguments;
};

constexpr unsigned kMostArguments = 32764;

struct AllPending {
  std::mutex mutex;
  std::map<uint64_t, Pending> functions;
};

AllPending& All() {
  static auto* const all = new AllPending;
  return *all;
}

/// Changes what is said about a function.
template <typename C>
CUresult Change(CUfunction handle, C change) {
  ContextPtr context;
  HAWSER_TRY(WorkingContext(&context));
  FunctionPtr function;
  if (handle == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  HAWSER_TRY(ResolveFunction(handle, &function));
  const std::lock_guard lock(All().mutex);
  return change(&All().functions[Number(handle)]);
}

CUresult SetArgument(CUfunction function, int offset, const void* value, unsigned bytes) {
  if (offset < 0 || value == nullptr || bytes > kMostArguments || static_cast<unsigned>(offset) > kMostArguments) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  return Change(function, [&](Pending* pending) {
    const size_t end = static_cast<size_t>(offset) + bytes;
    if (pending->arguments.size() < end) pending->arguments.resize(end);
    std::memcpy(pending->arguments.data() + offset, value, bytes);
    return CUDA_SUCCESS;
  });
}

CUresult Launch(CUfunction function, int width, int height, CUstream stream) {
  Pending pending;
  if (width <= 0 || height <= 0) return CUDA_ERROR_INVALID_VALUE;
  HAWSER_TRY(Change(function, [&](Pending* said) {
    pending = *said;
    return CUDA_SUCCESS;
  }));
  size_t bytes = pending.arguments.size();
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, pending.arguments.data(), CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                   CU_LAUNCH_PARAM_END};
  return cuLaunchKernel(function, static_cast<unsigned>(width), static_cast<unsigned>(height), 1, pending.block[0],
                        pending.block[1], pending.block[2], pending.shared, stream, nullptr, extra);
}

}  // namespace

extern "C" {

CUresult CUDAAPI cuFuncSetBlockShape(CUfunction function, int x, int y, int z) {
  if (x <= 0 || y <= 0 || z <= 0) return CUDA_ERROR_INVALID_VALUE;
  return Change(function, [&](Pending* pending) {
    pending->block[0] = static_cast<unsigned>(x);
    pending->block[1] = static_cast<unsigned>(y);
    pending->block[2] = static_cast<unsigned>(z);
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuFuncSetSharedSize(CUfunction function, unsigned int bytes) {
  return Change(function, [&](Pending* pending) {
    pending->shared = bytes;
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuParamSetSize(CUfunction function, unsigned int bytes) {
  if (bytes > kMostArguments) return CUDA_ERROR_INVALID_VALUE;
  return Change(function, [&](Pending* pending) {
    pending->arguments.resize(bytes);
    return CUDA_SUCCESS;
  });
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

CUresult CUDAAPI cuStreamWaitValue32(CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned int flags) {
  return cuStreamWaitValue32_v2(stream, address, value, flags);
}

CUresult CUDAAPI cuStreamWaitValue64(CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned int flags) {
  return cuStreamWaitValue64_v2(stream, address, value, flags);
}

CUresult CUDAAPI cuStreamWriteValue32(CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned int flags) {
  return cuStreamWriteValue32_v2(stream, address, value, flags);
}

CUresult CUDAAPI cuStreamWriteValue64(CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned int flags) {
  return cuStreamWriteValue64_v2(stream, address, value, flags);
}

CUresult CUDAAPI cuStreamBatchMemOp(CUstream stream, unsigned int count, CUstreamBatchMemOpParams* operations,
                                    unsigned int flags) {
  return cuStreamBatchMemOp_v2(stream, count, operations, flags);
}

}  // extern "C"
