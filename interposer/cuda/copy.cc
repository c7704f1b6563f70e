// SPDX-License-Identifier: Apache-2.0
#include "interposer/cuda/copy.h"

#include <algorithm>
#include <cstring>

#include "interposer/cuda/graph_memory.h"
#include "interposer/cuda/heap_memory.h"
#include "interposer/cuda/heap_staging.h"
#include "interposer/cuda/host_functions.h"

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

/// Between device memory and memory of this process that the device has too: as a copy on the device, because only
/// there it comes after what the stream does with it.
CUresult CopyMirrored(StreamCommand& command, CUdeviceptr to, CUdeviceptr from, size_t size, CopyMode mode) {
  const CUresult error = CopyOnDevice(command, to, from, size);
  return error != CUDA_SUCCESS || mode == CopyMode::kAsynchronous ? error : SynchronizeStream(command.stream());
}

bool IsForBoth(CUdeviceptr address) {
  const auto range = Client::Get().pointers().Find(address);
  return range && (range->is_managed() || range->mirror);
}

/// Asynchronous copies up to so many bytes are done by the caller where nothing comes before them: to wake those who
/// would do it takes longer. Of longer ones an eighth while they wake, from so many bytes to kMostAtOnce: the call is
/// to stay short.
constexpr uint64_t kAtOnce = 1u << 20;
constexpr uint64_t kMostAtOnce = 4 * kAtOnce;
/// Copies of which the caller does a part: shorter ones would keep it for too much of their time.
constexpr uint64_t kShared = 8 * kAtOnce;

/// Between the session's heap and device memory that lies there too: by the caller, or a part of it. No value: it is to
/// go to the server. `copy`: copies all, or the head. `send`: gives the server all but so many bytes.
template <typename CopyFunction, typename SendFunction>
std::optional<CUresult> CopyByCaller(StreamCommand& command, size_t size, CopyMode mode, CopyFunction&& copy,
                                     SendFunction&& send) {
  if (command.capturing()) return std::nullopt;
  if (mode == CopyMode::kSynchronous) return copy(HeapMemory::Wait::kYes, nullptr);
  if (size <= kAtOnce) return copy(HeapMemory::Wait::kNo, nullptr);
  if (size < kShared) return std::nullopt;
  const uint64_t part = std::clamp<uint64_t>(size / 8 / kAtOnce * kAtOnce, kAtOnce, kMostAtOnce);
  const HeapMemory::Head head{part, [&] {
                                const CUresult error = send(part);
                                command.session()->Flush();
                                return error;
                              }};
  return copy(HeapMemory::Wait::kNo, &head);
}

/// Slots are few, and all streams share them: behind a function of the program they might be kept for as long as it
/// likes, and a copy in another stream waits for nobody.
bool GoesBySlots(const StreamCommand& command, size_t size) {
  return size > command.session()->inline_limit() && !HostFunctions::Get().pending() && HeapStaging::Get().Usable();
}

bool IsHost(const std::optional<PointerRange>& range) { return !range || range->is_host(); }

}  // namespace

CUresult CopyToDevice(StreamCommand& command, CUdeviceptr to, const void* from, size_t size, CopyMode mode) {
  if (size == 0) return CUDA_SUCCESS;
  if (from == nullptr || to == 0) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult error = Mirrors::Get().BeforeCopy(command.stream()); error != CUDA_SUCCESS) return error;
  if (const uint64_t mirrored = Mirrors::Get().DeviceAddress(from, size); mirrored != 0) {
    return CopyMirrored(command, to, mirrored, size, mode);
  }
  const uint64_t heap = Client::Get().HeapOffset(from, size);
  // Whatever its size: kernels may write there, and the copy comes after those before it.
  if (heap != guest::Session::kNoHeap) {
    const auto done = CopyByCaller(
        command, size, mode,
        [&](HeapMemory::Wait wait, const HeapMemory::Head* head) {
          return HeapMemory::Get().Write(command, to, static_cast<const std::byte*>(from), size, wait, head);
        },
        [&](size_t part) { return CopyHeap(command, to + part, heap + part, size - part, /*to_heap=*/false, mode); });
    return done ? *done : CopyHeap(command, to, heap, size, /*to_heap=*/false, mode);
  }
  const HostRegion region = HostRegion::Linear(const_cast<void*>(from), size);
  if (command.capturing()) return CaptureWrite(command, to, region);
  cuda::Write message;
  message.address = to;
  message.size = size;
  if (mode == CopyMode::kSynchronous) {
    if (const CUresult error = AwaitChanges(command.stream(), region); error != CUDA_SUCCESS) return error;
  } else if (IsStillChanged(command.stream(), region)) {
    return SendWrite(command, message, region);
  }
  // What a program calls asynchronous never waits for the device.
  const bool may_wait = mode == CopyMode::kSynchronous && size > command.session()->inline_limit();
  const auto wait_to_write = may_wait ? HeapMemory::Wait::kYes : HeapMemory::Wait::kNo;
  if (const auto done = HeapMemory::Get().Write(command, to, region.base, size, wait_to_write)) return *done;
  if (GoesBySlots(command, size)) {
    return HeapStaging::Get().Write(command, to, region.base, size);
  }
  return SendWrite(command, message, region);
}

CUresult CopyFromDevice(StreamCommand& command, void* to, CUdeviceptr from, size_t size, CopyMode mode) {
  if (size == 0) return CUDA_SUCCESS;
  if (from == 0 || to == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult error = Mirrors::Get().BeforeCopy(command.stream()); error != CUDA_SUCCESS) return error;
  if (const uint64_t mirrored = Mirrors::Get().DeviceAddress(to, size); mirrored != 0) {
    return CopyMirrored(command, mirrored, from, size, mode);
  }
  const uint64_t heap = Client::Get().HeapOffset(to, size);
  const bool small = mode == CopyMode::kSynchronous && size <= command.session()->inline_limit();
  if (heap != guest::Session::kNoHeap && !small) {
    const auto done = CopyByCaller(
        command, size, mode,
        [&](HeapMemory::Wait wait, const HeapMemory::Head* head) {
          return HeapMemory::Get().Read(command, static_cast<std::byte*>(to), from, size, wait, head);
        },
        [&](size_t part) { return CopyHeap(command, from + part, heap + part, size - part, /*to_heap=*/true, mode); });
    return done ? *done : CopyHeap(command, from, heap, size, /*to_heap=*/true, mode);
  }
  const HostRegion region = HostRegion::Linear(to, size);
  if (command.capturing()) return CaptureRead(command, from, region);
  cuda::Read message;
  message.address = from;
  message.size = size;
  const bool wait = mode == CopyMode::kSynchronous || !IsPinned(to);
  if (wait) {
    // What comes into the same memory before it, and travels another way, must not come in later.
    const CUresult error = AwaitLandings(Overlapping(LandingsBefore(command.stream()), region));
    if (error != CUDA_SUCCESS) return error;
    const auto wait_to_read = size > command.session()->inline_limit() ? HeapMemory::Wait::kYes : HeapMemory::Wait::kNo;
    if (const auto done = HeapMemory::Get().Read(command, region.base, from, size, wait_to_read)) return *done;
  }
  const uint64_t mark = Mirrors::Get().Mark();
  const bool staged = wait && GoesBySlots(command, size);
  const CUresult error =
      staged ? HeapStaging::Get().Read(command, region.base, from, size) : SendRead(command, message, region, wait);
  return error != CUDA_SUCCESS || !wait ? error : AfterWork(command.stream(), mark);
}

CUresult CopyOnDevice(StreamCommand& command, CUdeviceptr to, CUdeviceptr from, size_t size) {
  if (size == 0) return CUDA_SUCCESS;
  if (to == 0 || from == 0) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult error = Mirrors::Get().BeforeCopy(command.stream()); error != CUDA_SUCCESS) return error;
  cuda::CopyLinear message;
  message.destination = to;
  message.source = from;
  message.size = size;
  return command.Send(message);
}

CUresult OnHost(StreamCommand& command, std::function<void()> copy) {
  if (command.capturing()) {
    return HostFunctions::Get().Enqueue(
        command, [copy = std::move(copy)](CUresult) { copy(); }, LandingsBefore(command.stream()),
        HostFunctions::Calls::kOursOften);
  }
  const CUresult error = SynchronizeStream(command.stream(), Until::kTurn);
  if (error == CUDA_SUCCESS) copy();
  return error;
}

bool IsHostMemory(CUdeviceptr address) { return IsHost(Client::Get().pointers().Find(address)); }

CUresult CopyUnified(StreamCommand& command, CUdeviceptr to, CUdeviceptr from, size_t size, CopyMode mode) {
  const PointerMap& pointers = Client::Get().pointers();
  const bool to_host = IsHost(pointers.Find(to));
  const bool from_host = IsHost(pointers.Find(from));
  if (to_host && from_host) {
    // In stream order: after what the stream does with either side.
    return OnHost(command, [to, from, size] {
      std::memmove(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), size);
    });
  }
  if (to_host) return CopyFromDevice(command, reinterpret_cast<void*>(to), from, size, mode);
  if (from_host) return CopyToDevice(command, to, reinterpret_cast<const void*>(from), size, mode);
  // The host may look at such memory as soon as the call has returned.
  const bool for_both = IsForBoth(to) || IsForBoth(from);
  return CopyMirrored(command, to, from, size, for_both ? mode : CopyMode::kAsynchronous);
}

}  // namespace hawser::cu
