// SPDX-License-Identifier: Apache-2.0
// Entry points: contexts, primary contexts, limits, peer access.
#include <algorithm>

#include "softcuda/driver/capture.h"
#include "softcuda/driver/entry.h"

using namespace hawser::soft;  // NOLINT(google-build-using-namespace): entry points are global.

namespace {

constexpr unsigned kApiVersion = 3020;  ///< What cuCtxGetApiVersion has said since the second generation of the API.

CUcontext Handle(const ContextPtr& context) {
  return context == nullptr ? nullptr : reinterpret_cast<CUcontext>(context->handle);
}

bool GoodFlags(unsigned flags) {
  const unsigned schedule = flags & CU_CTX_SCHED_MASK;
  const bool known = schedule == CU_CTX_SCHED_AUTO || schedule == CU_CTX_SCHED_SPIN || schedule == CU_CTX_SCHED_YIELD ||
                     schedule == CU_CTX_SCHED_BLOCKING_SYNC;
  return known && (flags & ~static_cast<unsigned>(CU_CTX_FLAGS_MASK)) == 0;
}

CUresult MakeContext(CUcontext* to, unsigned flags, CUdevice number) {
  Device* device = nullptr;
  HAWSER_TRY(GetDevice(number, &device));
  if (to == nullptr || !GoodFlags(flags)) return CUDA_ERROR_INVALID_VALUE;
  auto context = std::make_shared<Context>(device, flags, false);
  GetDriver()->contexts.Add(context);
  ThisThread().contexts.push_back(context);
  *to = Handle(context);
  return CUDA_SUCCESS;
}

/// The context of a handle; null handle: the current one.
CUresult GetContext(CUcontext handle, ContextPtr* context) {
  if (handle == nullptr) return CurrentContext(context);
  Driver* driver = nullptr;
  HAWSER_TRY(GetReady(&driver));
  *context = driver->contexts.Find(handle);
  if (*context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  return (*context)->destroyed() ? CUDA_ERROR_CONTEXT_IS_DESTROYED : CUDA_SUCCESS;
}

/// Ends a device's primary context, so that the next user gets a fresh one. Those who have retained it still have, as
/// the manual says of a reset: each releases it.
/// Who ends a context finds its work done: a kernel's output, for one, is printed all the same. Not under the mutex.
/// `always`: it is to end, whoever else retains it.
void DrainPrimary(Device* device, bool always) {
  ContextPtr context;
  {
    const std::lock_guard lock(device->primary_mutex);
    if (always || device->primary_users == 1) context = device->primary;
  }
  if (context != nullptr) context->Drain();
}

void DropPrimary(Device* device) {
  const ContextPtr context = std::exchange(device->primary, nullptr);
  if (context == nullptr) return;
  context->Destroy();
  GetDriver()->contexts.Remove(context->handle);
}

}  // namespace

extern "C" {

CUresult CUDAAPI cuCtxCreate_v2(CUcontext* context, unsigned int flags, CUdevice device) {
  return MakeContext(context, flags, device);
}

CUresult CUDAAPI cuCtxCreate(CUcontext* context, unsigned int flags, CUdevice device) {
  return MakeContext(context, flags, device);
}

CUresult CUDAAPI cuCtxCreate_v3(CUcontext* context, CUexecAffinityParam*, int affinities, unsigned int flags,
                                CUdevice device) {
  if (affinities != 0) return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
  return MakeContext(context, flags, device);
}

CUresult CUDAAPI cuCtxCreate_v4(CUcontext* context, CUctxCreateParams* params, unsigned int flags, CUdevice device) {
  if (params != nullptr && params->numExecAffinityParams != 0) return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
  if (params != nullptr && params->cigParams != nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  return MakeContext(context, flags, device);
}

CUresult CUDAAPI cuCtxDestroy_v2(CUcontext handle) {
  Driver* driver = nullptr;
  HAWSER_TRY(GetReady(&driver));
  const ContextPtr context = driver->contexts.Find(handle);
  if (context == nullptr || context->primary()) return CUDA_ERROR_INVALID_CONTEXT;
  context->Drain();
  context->Destroy();
  driver->contexts.Remove(handle);
  auto& stack = ThisThread().contexts;
  if (!stack.empty() && stack.back() == context) stack.pop_back();
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxDestroy(CUcontext context) { return cuCtxDestroy_v2(context); }

CUresult CUDAAPI cuCtxAttach(CUcontext* result, unsigned int flags) {
  ContextPtr context;
  HAWSER_TRY(CurrentContext(&context));
  if (result == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  context->attached.fetch_add(1, std::memory_order_relaxed);
  *result = Handle(context);
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxDetach(CUcontext handle) {
  ContextPtr context;
  HAWSER_TRY(GetContext(handle, &context));
  uint32_t attached = context->attached.load(std::memory_order_relaxed);
  while (attached > 1) {
    if (context->attached.compare_exchange_weak(attached, attached - 1, std::memory_order_relaxed)) return CUDA_SUCCESS;
  }
  return cuCtxDestroy_v2(handle);
}

CUresult CUDAAPI cuCtxPushCurrent_v2(CUcontext handle) {
  if (handle == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  ContextPtr context;
  HAWSER_TRY(GetContext(handle, &context));
  ThisThread().contexts.push_back(context);
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxPushCurrent(CUcontext context) { return cuCtxPushCurrent_v2(context); }

CUresult CUDAAPI cuCtxPopCurrent_v2(CUcontext* context) {
  Driver* driver = nullptr;
  HAWSER_TRY(GetReady(&driver));
  auto& stack = ThisThread().contexts;
  if (stack.empty()) return CUDA_ERROR_INVALID_CONTEXT;
  if (context != nullptr) *context = Handle(stack.back());
  stack.pop_back();
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxPopCurrent(CUcontext* context) { return cuCtxPopCurrent_v2(context); }

CUresult CUDAAPI cuCtxSetCurrent(CUcontext handle) {
  Driver* driver = nullptr;
  HAWSER_TRY(GetReady(&driver));
  auto& stack = ThisThread().contexts;
  if (handle == nullptr) {
    if (!stack.empty()) stack.pop_back();
    return CUDA_SUCCESS;
  }
  const ContextPtr context = driver->contexts.Find(handle);
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (stack.empty()) {
    stack.push_back(context);
  } else {
    stack.back() = context;
  }
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxGetCurrent(CUcontext* context) {
  Driver* driver = nullptr;
  HAWSER_TRY(GetReady(&driver));
  if (context == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto& stack = ThisThread().contexts;
  *context = stack.empty() ? nullptr : Handle(stack.back());
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxGetDevice(CUdevice* device) {
  ContextPtr context;
  HAWSER_TRY(CurrentContext(&context));
  if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *device = context->device()->ordinal();
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxGetDevice_v2(CUdevice* device, CUcontext handle) {
  ContextPtr context;
  HAWSER_TRY(GetContext(handle, &context));
  if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *device = context->device()->ordinal();
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxGetFlags(unsigned int* flags) {
  ContextPtr context;
  HAWSER_TRY(CurrentContext(&context));
  if (flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *flags = context->flags;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxSetFlags(unsigned int flags) {
  ContextPtr context;
  HAWSER_TRY(CurrentContext(&context));
  if (!GoodFlags(flags)) return CUDA_ERROR_INVALID_VALUE;
  context->flags = flags;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxGetId(CUcontext handle, unsigned long long* id) {
  ContextPtr context;
  HAWSER_TRY(GetContext(handle, &context));
  if (id == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *id = context->id();
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxGetApiVersion(CUcontext handle, unsigned int* version) {
  ContextPtr context;
  HAWSER_TRY(GetContext(handle, &context));
  if (version == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *version = kApiVersion;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxSynchronize(void) {
  ContextPtr context;
  HAWSER_TRY(CurrentContext(&context));
  HAWSER_TRY(CheckUnsafe());
  return context->Synchronize();
}

CUresult CUDAAPI cuCtxSynchronize_v2(CUcontext handle) {
  ContextPtr context;
  HAWSER_TRY(GetContext(handle, &context));
  HAWSER_TRY(CheckUnsafe());
  return context->Synchronize();
}

CUresult CUDAAPI cuCtxSetLimit(CUlimit limit, size_t value) {
  ContextPtr context;
  HAWSER_TRY(WorkingContext(&context));
  return context->SetLimit(limit, value);
}

CUresult CUDAAPI cuCtxGetLimit(size_t* value, CUlimit limit) {
  ContextPtr context;
  HAWSER_TRY(WorkingContext(&context));
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return context->GetLimit(limit, value);
}

CUresult CUDAAPI cuCtxGetCacheConfig(CUfunc_cache* config) {
  ContextPtr context;
  HAWSER_TRY(CurrentContext(&context));
  if (config == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *config = static_cast<CUfunc_cache>(context->cache_config.load());
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxSetCacheConfig(CUfunc_cache config) {
  ContextPtr context;
  HAWSER_TRY(CurrentContext(&context));
  if (config < CU_FUNC_CACHE_PREFER_NONE || config > CU_FUNC_CACHE_PREFER_EQUAL) return CUDA_ERROR_INVALID_VALUE;
  context->cache_config = config;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxGetSharedMemConfig(CUsharedconfig* config) {
  ContextPtr context;
  HAWSER_TRY(CurrentContext(&context));
  if (config == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *config = static_cast<CUsharedconfig>(context->shared_config.load());
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxSetSharedMemConfig(CUsharedconfig config) {
  ContextPtr context;
  HAWSER_TRY(CurrentContext(&context));
  if (config < CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE || config > CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  context->shared_config = config;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  ContextPtr context;
  HAWSER_TRY(CurrentContext(&context));
  if (least != nullptr) *least = 0;
  if (greatest != nullptr) *greatest = -5;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxResetPersistingL2Cache(void) {
  ContextPtr context;
  return CurrentContext(&context);
}

CUresult CUDAAPI cuCtxGetExecAffinity(CUexecAffinityParam* affinity, CUexecAffinityType type) {
  ContextPtr context;
  HAWSER_TRY(CurrentContext(&context));
  if (affinity == nullptr || type >= CU_EXEC_AFFINITY_TYPE_MAX) return CUDA_ERROR_INVALID_VALUE;
  return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
}

CUresult CUDAAPI cuDevicePrimaryCtxRetain(CUcontext* to, CUdevice number) {
  Device* device = nullptr;
  HAWSER_TRY(GetDevice(number, &device));
  if (to == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(device->primary_mutex);
  if (device->primary == nullptr) {
    device->primary = std::make_shared<Context>(device, device->primary_flags, true);
    GetDriver()->contexts.Add(device->primary);
  }
  ++device->primary_users;
  *to = Handle(device->primary);
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDevicePrimaryCtxRelease_v2(CUdevice number) {
  Device* device = nullptr;
  HAWSER_TRY(GetDevice(number, &device));
  DrainPrimary(device, /*always=*/false);
  const std::lock_guard lock(device->primary_mutex);
  if (device->primary_users == 0) return CUDA_ERROR_INVALID_CONTEXT;
  if (--device->primary_users == 0) DropPrimary(device);
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDevicePrimaryCtxRelease(CUdevice device) { return cuDevicePrimaryCtxRelease_v2(device); }

CUresult CUDAAPI cuDevicePrimaryCtxReset_v2(CUdevice number) {
  Device* device = nullptr;
  HAWSER_TRY(GetDevice(number, &device));
  DrainPrimary(device, /*always=*/true);
  const std::lock_guard lock(device->primary_mutex);
  DropPrimary(device);
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDevicePrimaryCtxReset(CUdevice device) { return cuDevicePrimaryCtxReset_v2(device); }

CUresult CUDAAPI cuDevicePrimaryCtxSetFlags_v2(CUdevice number, unsigned int flags) {
  Device* device = nullptr;
  HAWSER_TRY(GetDevice(number, &device));
  if (!GoodFlags(flags)) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(device->primary_mutex);
  device->primary_flags = flags;
  if (device->primary != nullptr) device->primary->flags = flags;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDevicePrimaryCtxSetFlags(CUdevice device, unsigned int flags) {
  return cuDevicePrimaryCtxSetFlags_v2(device, flags);
}

CUresult CUDAAPI cuDevicePrimaryCtxGetState(CUdevice number, unsigned int* flags, int* active) {
  Device* device = nullptr;
  HAWSER_TRY(GetDevice(number, &device));
  const std::lock_guard lock(device->primary_mutex);
  if (flags != nullptr) *flags = device->primary_flags;
  if (active != nullptr) *active = device->primary != nullptr ? 1 : 0;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxEnablePeerAccess(CUcontext handle, unsigned int flags) {
  ContextPtr context;
  HAWSER_TRY(WorkingContext(&context));
  ContextPtr peer;
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  if (handle == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  HAWSER_TRY(GetContext(handle, &peer));
  if (peer->device() == context->device()) return CUDA_ERROR_INVALID_CONTEXT;
  const std::lock_guard lock(context->mutex);
  const bool fresh = context->peers.insert(peer->device()->ordinal()).second;
  return fresh ? CUDA_SUCCESS : CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
}

CUresult CUDAAPI cuCtxDisablePeerAccess(CUcontext handle) {
  ContextPtr context;
  HAWSER_TRY(WorkingContext(&context));
  ContextPtr peer;
  if (handle == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  HAWSER_TRY(GetContext(handle, &peer));
  const std::lock_guard lock(context->mutex);
  const bool was = context->peers.erase(peer->device()->ordinal()) != 0;
  return was ? CUDA_SUCCESS : CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
}

}  // extern "C"
