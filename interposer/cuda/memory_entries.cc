// SPDX-License-Identifier: Apache-2.0
// cuMemAlloc*, cuMemFree, cuMemGetInfo: device memory whose address the server gives.
#include "interposer/cuda/capture.h"
#include "interposer/cuda/entry.h"
#include "interposer/cuda/heap_memory.h"

using namespace hawser;      // NOLINT(google-build-using-namespace): entry points live outside of namespaces.
using namespace hawser::cu;  // NOLINT(google-build-using-namespace)

namespace {

CUresult BeginMemory(CUctx_st** context, bool earlier = true) {
  if (const CUresult error = CurrentContext(context, earlier); error != CUDA_SUCCESS) return error;
  return Captures::Get().CheckUnsafeCall();
}

/// New device memory, and the pages of the heap that it was offered: it has them now, or nobody.
void Remember(CUctx_st* context, uint64_t address, uint64_t size, const HeapPages& pages, bool in_heap) {
  PointerRange range;
  range.begin = address;
  range.size = size;
  range.kind = PointerKind::kDevice;
  range.device = context->device;
  range.context = context->id.raw();
  range.in_heap = in_heap && pages.size != 0;
  if (range.in_heap) {
    range.heap_pages = pages.offset;
  } else {
    HeapMemory::Get().Give(pages);
  }
  Client::Get().pointers().Add(range);
}

/// Device memory that has pages of its own, and the same pages of this process.
CUresult AllocateMirrored(CUctx_st* context, uint64_t size, unsigned flags, uint64_t* address) {
  constexpr uint64_t kPage = 4096;
  if (size > UINT64_MAX - 2 * kPage) return CUDA_ERROR_OUT_OF_MEMORY;
  const uint64_t pages = (size + kPage - 1) / kPage * kPage;
  guest::Session* session = Client::Get().session();
  cuda::Allocate message;
  message.context = context->id;
  message.size = pages + kPage;
  // Of several devices each must reach it.
  message.kind = Client::Get().device_count() > 1 ? 1 : 0;
  message.flags = flags;
  Answer<cuda::Address> answer;
  if (const CUresult error = answer.Ask(session, message); error != CUDA_SUCCESS) return error;
  *address = (answer->address + kPage - 1) / kPage * kPage;
  const CUresult error = Mirrors::Get().AddManaged({context, *address, *address, size, answer->address});
  if (error == CUDA_SUCCESS) return CUDA_SUCCESS;
  cuda::Free free;
  free.context = context->id;
  free.address = answer->address;
  (void)session->Send(free);
  if (error != CUDA_ERROR_NOT_SUPPORTED) return error;
  static std::atomic_flag said;
  return RefuseOnce("cuMemAllocManaged", "this process has something else at the server's address of it", &said);
}

}  // namespace

CUresult CUDAAPI cuMemAlloc_v2(CUdeviceptr* result, size_t size) {
  CUctx_st* context = nullptr;
  if (const CUresult error = BeginMemory(&context); error != CUDA_SUCCESS) return error;
  if (result == nullptr || size == 0) return CUDA_ERROR_INVALID_VALUE;
  cuda::Allocate message;
  message.context = context->id;
  message.size = size;
  const HeapPages pages = HeapMemory::Get().Take(size);
  message.heap_offset = pages.offset;
  message.heap_size = pages.size;
  Answer<cuda::Address> answer;
  if (const CUresult error = answer.Ask(Client::Get().session(), message); error != CUDA_SUCCESS) {
    HeapMemory::Get().Give(pages);
    return error;
  }
  Remember(context, answer->address, size, pages, answer->in_heap != 0);
  *result = answer->address;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemAllocPitch_v2(CUdeviceptr* result, size_t* pitch, size_t width, size_t height,
                                    unsigned int element) {
  CUctx_st* context = nullptr;
  if (const CUresult error = BeginMemory(&context); error != CUDA_SUCCESS) return error;
  if (result == nullptr || pitch == nullptr || width == 0 || height == 0) return CUDA_ERROR_INVALID_VALUE;
  if (element != 4 && element != 8 && element != 16) return CUDA_ERROR_INVALID_VALUE;
  cuda::AllocatePitch message;
  message.context = context->id;
  message.width = width;
  message.height = height;
  message.element = element;
  // The server takes the pages if they are what rows of its pitch need.
  constexpr size_t kLikelyPitch = 512;
  size_t bytes = 0;
  const bool fits = width <= SIZE_MAX - kLikelyPitch &&
                    !__builtin_mul_overflow((width + kLikelyPitch - 1) / kLikelyPitch * kLikelyPitch, height, &bytes);
  const HeapPages pages = fits ? HeapMemory::Get().Take(bytes) : HeapPages{};
  message.heap_offset = pages.offset;
  message.heap_size = pages.size;
  Answer<cuda::PitchedAddress> answer;
  if (const CUresult error = answer.Ask(Client::Get().session(), message); error != CUDA_SUCCESS) {
    HeapMemory::Get().Give(pages);
    return error;
  }
  Remember(context, answer->address, answer->pitch * height, pages, answer->in_heap != 0);
  *result = answer->address;
  *pitch = answer->pitch;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemFree_v2(CUdeviceptr address) {
  CUctx_st* context = nullptr;
  if (const CUresult error = BeginMemory(&context, /*earlier=*/false); error != CUDA_SUCCESS) return error;
  if (address == 0) return CUDA_SUCCESS;
  if (Client::Get().pointers().IsGraphs(address)) {
    // Whether it is to be freed only the server knows.
    cuda::Free message;
    message.context = context->id;
    message.address = address;
    return FromWire(Client::Get().session()->SendAndWait(message));
  }
  const auto range =
      Client::Get().pointers().Remove(address, {PointerKind::kDevice, PointerKind::kPool, PointerKind::kManaged});
  if (!range) return CUDA_ERROR_INVALID_VALUE;
  guest::Session* session = Client::Get().session();
  if (range->kind == PointerKind::kManaged) Client::Get().hints().Forget(range->begin, range->size);
  if (range->kind == PointerKind::kManaged && range->heap_offset != guest::Session::kNoHeap) {
    // Managed memory in the heap: freeing it waits for what uses it, as a driver does.
    cuda::SynchronizeContext message;
    message.context = context->id;
    const CUresult error = AskStatus(session, message);
    session->HeapFree(range->heap_offset, range->size);
    return error;
  }
  const wire::Id owner = range->context != 0 ? wire::Id(range->context) : context->id;
  if (range->has_heap_pages()) return HeapMemory::Get().Free(owner, *range);
  cuda::Free message;
  message.context = owner;
  message.address = address;
  MirrorRange mirrored;
  if (range->kind == PointerKind::kManaged && Mirrors::Get().Remove(address, &mirrored)) {
    message.address = mirrored.allocation;
  }
  return FromWire(session->Send(message));
}

CUresult CUDAAPI cuMemGetInfo_v2(size_t* free, size_t* total) {
  CUctx_st* context = nullptr;
  if (const CUresult error = CurrentContext(&context); error != CUDA_SUCCESS) return error;
  cuda::GetMemoryInfo message;
  message.context = context->id;
  Answer<cuda::MemoryInfo> answer;
  if (const CUresult error = answer.Ask(Client::Get().session(), message); error != CUDA_SUCCESS) return error;
  if (free != nullptr) *free = answer->free;
  if (total != nullptr) *total = answer->total;
  return CUDA_SUCCESS;
}

// Managed memory lies in the session's heap where guest, server and kernels have it at one address (shared memory, and
// the place was free in this process). Elsewhere it is device memory, mirrored in this process at the same address.
CUresult CUDAAPI cuMemAllocManaged(CUdeviceptr* result, size_t size, unsigned int flags) {
  CUctx_st* context = nullptr;
  if (const CUresult error = BeginMemory(&context); error != CUDA_SUCCESS) return error;
  if (result == nullptr || size == 0) return CUDA_ERROR_INVALID_VALUE;
  if (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST) return CUDA_ERROR_INVALID_VALUE;
  Client& client = Client::Get();
  guest::Session* session = client.session();
  const uint64_t offset = client.managed_in_heap() ? session->HeapAllocate(size) : guest::Session::kNoHeap;
  PointerRange range;
  if (offset == guest::Session::kNoHeap) {
    if (const CUresult error = AllocateMirrored(context, size, flags, &range.begin); error != CUDA_SUCCESS)
      return error;
  } else {
    range.begin = client.heap_address() + offset;
  }
  range.size = size;
  range.kind = PointerKind::kManaged;
  range.device = context->device;
  range.context = context->id.raw();
  range.flags = flags;
  range.heap_offset = offset;
  client.hints().Forget(range.begin, range.size);  // Of memory that ended with its context.
  client.pointers().Add(range);
  *result = range.begin;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemGetAddressRange_v2(CUdeviceptr* base, size_t* size, CUdeviceptr address) {
  CUctx_st* context = nullptr;
  if (const CUresult error = CurrentContext(&context, /*earlier=*/false); error != CUDA_SUCCESS) return error;
  const auto range = Client::Get().pointers().Find(address);
  if (!range || range->kind == PointerKind::kRegistered) return CUDA_ERROR_NOT_FOUND;
  if (base != nullptr) *base = range->begin;
  if (size != nullptr) *size = range->size;
  return CUDA_SUCCESS;
}
