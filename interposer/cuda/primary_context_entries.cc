// SPDX-License-Identifier: Apache-2.0
// cuDevicePrimaryCtx*: the context of a device that the runtime and libraries share. Counted in the guest; the handle
// stays the same when the context ends and begins again.
#include "interposer/cuda/context.h"
#include "interposer/cuda/entry.h"
#include "interposer/cuda/pool.h"

using namespace hawser;      // NOLINT(google-build-using-namespace): entry points live outside of namespaces.
using namespace hawser::cu;  // NOLINT(google-build-using-namespace)

namespace {

CUresult FindDevice(CUdevice ordinal, Device** device) {
  if (const CUresult error = Client::Get().Check(); error != CUDA_SUCCESS) return error;
  *device = Client::Get().device(ordinal);
  return *device != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

/// Not under the device's mutex. `always`: it is to end, whoever else retains it.
void AwaitWorkOfPrimary(Device* device, bool always) {
  CUctx_st* context = nullptr;
  {
    std::lock_guard lock(device->mutex);
    if (device->primary == nullptr || !device->primary->active.load()) return;
    if (always || device->primary_references == 1) context = device->primary;
  }
  if (context != nullptr) AwaitWork(context);
}

/// Under the device's mutex. `message`: what ends it on the server.
template <typename Message>
CUresult End(Device* device, const Message& message) {
  CUctx_st* context = device->primary;
  guest::Session* session = Client::Get().session();
  const int32_t error = SendEnd(context, message);
  context->active.store(false, std::memory_order_release);
  ForgetContents(context);
  if (device->default_pool != nullptr) device->default_pool->settings.ForgetAll();  // It may begin anew, too.
  session->FreeId(context->id);
  return FromWire(error);
}

}  // namespace

CUresult CUDAAPI cuDevicePrimaryCtxRetain(CUcontext* result, CUdevice ordinal) {
  Device* device = nullptr;
  if (const CUresult error = FindDevice(ordinal, &device); error != CUDA_SUCCESS) return error;
  if (result == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::lock_guard lock(device->mutex);
  if (device->primary == nullptr) {
    device->primary = NewContext(ordinal, device->primary_flags, /*primary=*/true);
    device->primary->active.store(false);
  }
  if (!device->primary->active.load()) {
    device->primary->flags = device->primary_flags;
    if (const CUresult error = StartContext(device->primary); error != CUDA_SUCCESS) return error;
  }
  ++device->primary_references;
  *result = device->primary;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDevicePrimaryCtxRelease_v2(CUdevice ordinal) {
  Device* device = nullptr;
  if (const CUresult error = FindDevice(ordinal, &device); error != CUDA_SUCCESS) return error;
  AwaitWorkOfPrimary(device, /*always=*/false);
  std::lock_guard lock(device->mutex);
  if (device->primary_references == 0) return CUDA_ERROR_INVALID_CONTEXT;
  if (--device->primary_references != 0 || !device->primary->active.load()) return CUDA_SUCCESS;
  cuda::Release message;
  message.object = device->primary->id;
  return End(device, message);
}

CUresult CUDAAPI cuDevicePrimaryCtxRelease(CUdevice device) { return cuDevicePrimaryCtxRelease_v2(device); }

CUresult CUDAAPI cuDevicePrimaryCtxReset_v2(CUdevice ordinal) {
  Device* device = nullptr;
  if (const CUresult error = FindDevice(ordinal, &device); error != CUDA_SUCCESS) return error;
  AwaitWorkOfPrimary(device, /*always=*/true);
  std::lock_guard lock(device->mutex);
  if (device->primary == nullptr || !device->primary->active.load()) return CUDA_SUCCESS;
  cuda::ResetPrimary message;
  message.context = device->primary->id;
  return End(device, message);
}

CUresult CUDAAPI cuDevicePrimaryCtxReset(CUdevice device) { return cuDevicePrimaryCtxReset_v2(device); }

CUresult CUDAAPI cuDevicePrimaryCtxSetFlags_v2(CUdevice ordinal, unsigned int flags) {
  Device* device = nullptr;
  if (const CUresult error = FindDevice(ordinal, &device); error != CUDA_SUCCESS) return error;
  if ((flags & ~CU_CTX_FLAGS_MASK) != 0) return CUDA_ERROR_INVALID_VALUE;
  std::lock_guard lock(device->mutex);
  device->primary_flags = flags;
  if (device->primary == nullptr || !device->primary->active.load()) return CUDA_SUCCESS;
  device->primary->flags = flags;
  cuda::SetContextFlags message;
  message.context = device->primary->id;
  message.flags = flags;
  return FromWire(Client::Get().session()->Send(message));
}

CUresult CUDAAPI cuDevicePrimaryCtxSetFlags(CUdevice device, unsigned int flags) {
  return cuDevicePrimaryCtxSetFlags_v2(device, flags);
}

CUresult CUDAAPI cuDevicePrimaryCtxGetState(CUdevice ordinal, unsigned int* flags, int* active) {
  Device* device = nullptr;
  if (const CUresult error = FindDevice(ordinal, &device); error != CUDA_SUCCESS) return error;
  std::lock_guard lock(device->mutex);
  if (flags != nullptr) *flags = device->primary_flags;
  if (active != nullptr) *active = device->primary != nullptr && device->primary->active.load() ? 1 : 0;
  return CUDA_SUCCESS;
}
