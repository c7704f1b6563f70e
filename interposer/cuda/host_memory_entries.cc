// SPDX-License-Identifier: Apache-2.0
// cuMemHost*: pinned host memory. With a heap that the server's devices reach it lies there and copies take no detour;
// otherwise it is ordinary memory, known as pinned so that asynchronous reads into it do not wait.
#include <sys/mman.h>

#include "interposer/cuda/capture.h"
#include "interposer/cuda/entry.h"
#include "interposer/cuda/host_mirror.h"

using namespace hawser;      // NOLINT(google-build-using-namespace): entry points live outside of namespaces.
using namespace hawser::cu;  // NOLINT(google-build-using-namespace)

namespace {

constexpr unsigned kHostFlags = CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED;
constexpr unsigned kRegisterFlags = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP |
                                    CU_MEMHOSTREGISTER_IOMEMORY | CU_MEMHOSTREGISTER_READ_ONLY;

constexpr uint64_t kPage = 4096;

/// What an allocation takes. The page behind it, which is never touched, keeps its end from being the beginning of
/// another: a kernel may be given either, and what it means must be known (host_mirror.h).
uint64_t Pages(uint64_t size) { return ((size + kPage - 1) & ~(kPage - 1)) + kPage; }

}  // namespace

CUresult CUDAAPI cuMemHostAlloc(void** result, size_t size, unsigned int flags) {
  CUctx_st* context = nullptr;
  if (const CUresult error = CurrentContext(&context); error != CUDA_SUCCESS) return error;
  if (result == nullptr || size == 0 || (flags & ~kHostFlags) != 0) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult error = Captures::Get().CheckUnsafeCall(); error != CUDA_SUCCESS) return error;
  Client& client = Client::Get();
  PointerRange range;
  range.size = size;
  range.kind = PointerKind::kHost;
  range.device = context->device;
  range.context = context->id.raw();
  range.flags = flags;
  if (client.heap_usable()) range.heap_offset = client.session()->HeapAllocate(size);
  if (range.heap_offset != guest::Session::kNoHeap) {
    range.begin = reinterpret_cast<uintptr_t>(client.session()->heap_base()) + range.heap_offset;
    range.device_alias = client.heap_address() + range.heap_offset;
  } else {
    void* memory = size > UINT64_MAX - 2 * kPage
                       ? MAP_FAILED
                       : ::mmap(nullptr, Pages(size), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
    range.begin = reinterpret_cast<uintptr_t>(memory);
  }
  client.pointers().Add(range);
  *result = reinterpret_cast<void*>(range.begin);
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemAllocHost_v2(void** result, size_t size) {
  return cuMemHostAlloc(result, size, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP);
}

CUresult CUDAAPI cuMemAllocHost(void** result, unsigned int size) { return cuMemAllocHost_v2(result, size); }

CUresult CUDAAPI cuMemFreeHost(void* pointer) {
  CUctx_st* context = nullptr;
  if (const CUresult error = CurrentContext(&context, /*earlier=*/false); error != CUDA_SUCCESS) return error;
  if (pointer == nullptr) return CUDA_SUCCESS;
  if (const CUresult error = Captures::Get().CheckUnsafeCall(); error != CUDA_SUCCESS) return error;
  Client& client = Client::Get();
  const auto range = client.pointers().Remove(reinterpret_cast<uintptr_t>(pointer), {PointerKind::kHost});
  if (!range) return CUDA_ERROR_INVALID_VALUE;
  const CUresult ended = EndMirror(context, range->begin);
  // A driver waits for what still uses the memory; so does this.
  const Landings landings = LandingsOf(context);
  cuda::SynchronizeContext message;
  message.context = context->id;
  CUresult error = AskStatus(client.session(), message);
  if (error == CUDA_SUCCESS) error = AwaitLandings(landings);
  if (range->heap_offset != guest::Session::kNoHeap) {
    client.session()->HeapFree(range->heap_offset, range->size);
  } else {
    ::munmap(pointer, Pages(range->size));
  }
  return error != CUDA_SUCCESS ? error : ended;
}

CUresult CUDAAPI cuMemHostRegister_v2(void* pointer, size_t size, unsigned int flags) {
  CUctx_st* context = nullptr;
  if (const CUresult error = CurrentContext(&context); error != CUDA_SUCCESS) return error;
  if (pointer == nullptr || size == 0 || (flags & ~kRegisterFlags) != 0) return CUDA_ERROR_INVALID_VALUE;
  PointerRange range;
  range.begin = reinterpret_cast<uintptr_t>(pointer);
  range.size = size;
  range.kind = PointerKind::kRegistered;
  range.device = context->device;
  range.context = context->id.raw();
  range.flags = flags;
  if (Client::Get().pointers().Overlaps(range.begin, size)) return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
  Client::Get().pointers().Add(range);
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemHostRegister(void* pointer, size_t size, unsigned int flags) {
  return cuMemHostRegister_v2(pointer, size, flags);
}

CUresult CUDAAPI cuMemHostUnregister(void* pointer) {
  CUctx_st* context = nullptr;
  if (const CUresult error = CurrentContext(&context, /*earlier=*/false); error != CUDA_SUCCESS) return error;
  if (pointer == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto range = Client::Get().pointers().Remove(reinterpret_cast<uintptr_t>(pointer), {PointerKind::kRegistered});
  if (!range) return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
  const CUresult ended = EndMirror(context, range->begin);
  const CUresult error = AwaitLandings(LandingsOf(context));
  return error != CUDA_SUCCESS ? error : ended;
}

CUresult CUDAAPI cuMemHostGetDevicePointer_v2(CUdeviceptr* result, void* pointer, unsigned int flags) {
  CUctx_st* context = nullptr;
  if (const CUresult error = CurrentContext(&context, /*earlier=*/false); error != CUDA_SUCCESS) return error;
  if (result == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  const auto range = Client::Get().pointers().Find(reinterpret_cast<uintptr_t>(pointer));
  if (!range || !range->is_host()) return CUDA_ERROR_INVALID_VALUE;
  if (Client::Get().device(context->device)->attribute(CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY) == 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  return DeviceAddressOfHost(context, *range, reinterpret_cast<uintptr_t>(pointer), result);
}

CUresult CUDAAPI cuMemHostGetFlags(unsigned int* flags, void* pointer) {
  CUctx_st* context = nullptr;
  if (const CUresult error = CurrentContext(&context, /*earlier=*/false); error != CUDA_SUCCESS) return error;
  const auto range = Client::Get().pointers().Find(reinterpret_cast<uintptr_t>(pointer));
  if (flags == nullptr || !range || !range->is_host()) return CUDA_ERROR_INVALID_VALUE;
  *flags = range->flags | CU_MEMHOSTALLOC_DEVICEMAP;
  return CUDA_SUCCESS;
}
