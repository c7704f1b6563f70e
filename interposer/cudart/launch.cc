// SPDX-License-Identifier: Apache-2.0
#include "interposer/cudart/launch.h"

#include <atomic>

#include "interposer/cudart/entry.h"
#include "interposer/cudart/kernel_handles.h"

namespace hawser::cudart {
namespace {

std::atomic<cudaError_t> g_failed_kernel = cudaErrorInvalidDeviceFunction;

}  // namespace

bool IsLaunchable(const dim3& grid, const dim3& block) {
  Runtime& runtime = Runtime::Get();
  Device* device = runtime.device(runtime.CurrentDevice(CurrentThread()));
  const auto within = [device](unsigned value, CUdevice_attribute limit) {
    int most = 0;
    if (value == 0) return false;
    return device->Attribute(limit, &most) != cudaSuccess || value <= static_cast<unsigned>(most);
  };
  if (!within(grid.x, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X) || !within(grid.y, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y) ||
      !within(grid.z, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z) || !within(block.x, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X) ||
      !within(block.y, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y) || !within(block.z, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z)) {
    return false;
  }
  // Each is at most 1024 or so by now: no overflow.
  return within(block.x * block.y * block.z, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
}

cudaError_t Launch(const Driver& driver, CUfunction function, const dim3& grid, const dim3& block, void** arguments,
                   size_t shared_bytes, CUstream stream) {
  if (!IsLaunchable(grid, block)) return cudaErrorInvalidConfiguration;
  if (shared_bytes > UINT32_MAX) return cudaErrorInvalidValue;
  return FromDriver(driver.cuLaunchKernel(function, grid.x, grid.y, grid.z, block.x, block.y, block.z,
                                          static_cast<unsigned>(shared_bytes), stream, arguments, nullptr));
}

void RememberFailedKernel(cudaError_t error) { g_failed_kernel.store(error, std::memory_order_relaxed); }
cudaError_t FailedKernel() { return g_failed_kernel.load(std::memory_order_relaxed); }

cudaError_t ResolveKernel(const void* host, CUkernel* kernel) {
  if (host == nullptr) return cudaErrorInvalidDeviceFunction;
  Runtime& runtime = Runtime::Get();
  if (Function* function = runtime.registry().FindFunction(host, CurrentThread().functions); function != nullptr) {
    return runtime.loader().Kernel(*function, kernel);
  }
  if (KernelHandles::Get().Contains(host)) {
    *kernel = static_cast<CUkernel>(const_cast<void*>(host));
    return cudaSuccess;
  }
  return cudaErrorInvalidDeviceFunction;
}

cudaError_t ResolveFunction(const void* host, CUfunction* function) {
  CUkernel kernel = nullptr;
  const cudaError_t error = ResolveKernel(host, &kernel);
  *function = reinterpret_cast<CUfunction>(kernel);
  return error;
}

cudaError_t ResolveSymbol(const void* symbol, CUdeviceptr* address, size_t* size) {
  if (symbol == nullptr) return cudaErrorInvalidSymbol;
  Runtime& runtime = Runtime::Get();
  Variable* variable = runtime.registry().FindVariable(symbol);
  if (variable == nullptr) return cudaErrorInvalidSymbol;
  return runtime.loader().Address(*variable, runtime.CurrentEpoch(CurrentThread()), address, size);
}

}  // namespace hawser::cudart
