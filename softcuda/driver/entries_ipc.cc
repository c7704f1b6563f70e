// SPDX-License-Identifier: Apache-2.0
// Entry points: memory and events of other processes.
#include <bit>
#include <cstring>

#include "softcuda/driver/entry.h"
#include "softcuda/driver/shared_event.h"

using namespace hawser::soft;  // NOLINT(google-build-using-namespace): entry points are global.

extern "C" {

CUresult CUDAAPI cuIpcGetMemHandle(CUipcMemHandle* handle, CUdeviceptr address) {
  ContextPtr context;
  HAWSER_TRY(WorkingContext(&context));
  Driver* const driver = GetDriver();
  const AllocationPtr allocation = driver->memory.Find(address);
  const bool own = allocation != nullptr && allocation->begin == address && allocation->kind == MemoryKind::kDevice;
  if (handle == nullptr || !own) return CUDA_ERROR_INVALID_VALUE;
  SharedHandle shared;
  HAWSER_TRY(driver->sharing.Export(allocation, &shared));
  std::memcpy(handle, &shared, sizeof(*handle));
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuIpcOpenMemHandle_v2(CUdeviceptr* address, CUipcMemHandle handle, unsigned int flags) {
  ContextPtr context;
  HAWSER_TRY(WorkingContext(&context));
  if (address == nullptr || (flags & ~static_cast<unsigned>(CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS)) != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  uint64_t begin = 0;
  HAWSER_TRY(GetDriver()->sharing.Import(std::bit_cast<SharedHandle>(handle), context.get(), &begin));
  *address = begin;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuIpcOpenMemHandle(CUdeviceptr* address, CUipcMemHandle handle, unsigned int flags) {
  return cuIpcOpenMemHandle_v2(address, handle, flags);
}

CUresult CUDAAPI cuIpcCloseMemHandle(CUdeviceptr address) {
  ContextPtr context;
  HAWSER_TRY(WorkingContext(&context));
  Driver* const driver = GetDriver();
  AllocationPtr last;
  HAWSER_TRY(driver->sharing.Close(address, &last));
  if (last == nullptr) return CUDA_SUCCESS;
  DrainAll();
  driver->Release(last);
  return context->error();
}

CUresult CUDAAPI cuIpcGetEventHandle(CUipcEventHandle* handle, CUevent event_handle) {
  Driver* driver = nullptr;
  HAWSER_TRY(GetReady(&driver));
  const EventPtr event = driver->events.Find(event_handle);
  if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (handle == nullptr || event->shared == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const ContextPtr context = event->context.lock();
  if (context == nullptr) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  SharedHandle shared;
  HAWSER_TRY(event->shared->Describe(context->device()->ordinal(), &shared));
  std::memcpy(handle, &shared, sizeof(*handle));
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuIpcOpenEventHandle(CUevent* to, CUipcEventHandle handle) {
  ContextPtr context;
  HAWSER_TRY(WorkingContext(&context));
  if (to == nullptr) return CUDA_ERROR_INVALID_VALUE;
  auto event = std::make_shared<Event>();
  HAWSER_TRY(SharedEvent::Open(std::bit_cast<SharedHandle>(handle), &event->shared));
  event->context = context;
  event->flags = CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS;
  *to = reinterpret_cast<CUevent>(GetDriver()->events.Add(event));
  return CUDA_SUCCESS;
}

}  // extern "C"
