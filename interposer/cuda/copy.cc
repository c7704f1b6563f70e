// SPDX-License-Identifier: Apache-2.0
#include "interposer/cuda/copy.h"

#include <cstring>

#include "interposer/cuda/graph_memory.h"

namespace hawser::cu {
namespace {

/// Between a device and the session's heap, in place.
CUresult CopyHeap(StreamCommand& command, CUdeviceptr address, uint64_t offset, size_t size, bool to_heap,
                  CopyMode mode) {
  cuda::CopyHeap message;
  message.address = address;
  message.heap_offset = offset;
  message.size = size;
  message.to_heap = to_heap ? 1 : 0;
  const CUresult error = command.Send(message);
  if (error != CUDA_SUCCESS || mode == CopyMode::kAsynchronous) return error;
  return SynchronizeStream(command.stream());
}

bool IsHost(const std::optional<PointerRange>& range) { return !range || range->is_host(); }

}  // namespace

bool IsPinned(const void* pointer) {
  const auto range = Client::Get().pointers().Find(reinterpret_cast<uintptr_t>(pointer));
  return range && range->is_host();
}

CUresult CopyToDevice(StreamCommand& command, CUdeviceptr to, const void* from, size_t size, CopyMode mode) {
  if (size == 0) return CUDA_SUCCESS;
  if (from == nullptr || to == 0) return CUDA_ERROR_INVALID_VALUE;
  guest::Session* session = command.session();
  const uint64_t heap = Client::Get().HeapOffset(from, size);
  // Small data that is taken at once spares the wait for the copy.
  const bool in_place =
      heap != guest::Session::kNoHeap && (mode == CopyMode::kAsynchronous || size > session->inline_limit());
  if (in_place) return CopyHeap(command, to, heap, size, /*to_heap=*/false, mode);
  const HostRegion region = HostRegion::Linear(const_cast<void*>(from), size);
  if (command.capturing()) return CaptureWrite(command, to, region);
  cuda::Write message;
  message.address = to;
  message.size = size;
  return SendWrite(command, message, region);
}

CUresult CopyFromDevice(StreamCommand& command, void* to, CUdeviceptr from, size_t size, CopyMode mode) {
  if (size == 0) return CUDA_SUCCESS;
  if (from == 0 || to == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const uint64_t heap = Client::Get().HeapOffset(to, size);
  const bool small = mode == CopyMode::kSynchronous && size <= command.session()->inline_limit();
  if (heap != guest::Session::kNoHeap && !small) return CopyHeap(command, from, heap, size, /*to_heap=*/true, mode);
  const HostRegion region = HostRegion::Linear(to, size);
  if (command.capturing()) return CaptureRead(command, from, region);
  cuda::Read message;
  message.address = from;
  message.size = size;
  const bool wait = mode == CopyMode::kSynchronous || !IsPinned(to);
  CUresult error = SendRead(command, message, region, wait);
  if (error == CUDA_SUCCESS && wait) error = AwaitLandings(LandingsBefore(command.stream()));
  return error != CUDA_SUCCESS || !wait ? error : TakePending(command.context());
}

CUresult CopyOnDevice(StreamCommand& command, CUdeviceptr to, CUdeviceptr from, size_t size) {
  if (size == 0) return CUDA_SUCCESS;
  if (to == 0 || from == 0) return CUDA_ERROR_INVALID_VALUE;
  cuda::CopyLinear message;
  message.destination = to;
  message.source = from;
  message.size = size;
  return command.Send(message);
}

CUresult CopyUnified(StreamCommand& command, CUdeviceptr to, CUdeviceptr from, size_t size, CopyMode mode) {
  const PointerMap& pointers = Client::Get().pointers();
  const bool to_host = IsHost(pointers.Find(to));
  const bool from_host = IsHost(pointers.Find(from));
  if (to_host && from_host) {
    // In stream order: after what the stream does with either side.
    if (command.capturing()) return CUDA_ERROR_NOT_SUPPORTED;
    const CUresult error = SynchronizeStream(command.stream());
    if (error == CUDA_SUCCESS) std::memmove(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), size);
    return error;
  }
  if (to_host) return CopyFromDevice(command, reinterpret_cast<void*>(to), from, size, mode);
  if (from_host) return CopyToDevice(command, to, reinterpret_cast<const void*>(from), size, mode);
  return CopyOnDevice(command, to, from, size);
}

}  // namespace hawser::cu
