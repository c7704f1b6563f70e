// SPDX-License-Identifier: Apache-2.0
// Linear and managed memory, and what may be said about it.
#include <algorithm>
#include <chrono>

#include "server/backends/cuda/backend.h"

namespace hawser::server::cuda_backend {
namespace {

/// An allocation that finds no memory waits so long for what is being freed.
constexpr std::chrono::seconds kLongestFree(10);

}  // namespace

bool CudaBackend::FreesWait() {
  if (!chosen_.soft || deferring_ || HostCallsDue() || captures()) return true;
  // Asking each of many streams, and each context's, would take longer than the other thread does.
  constexpr uint32_t kMost = 16;
  uint32_t asked = 0;
  bool busy = false;
  objects_->Table<Context>().ForEach([&](wire::Id, const Context& context) {
    busy = busy || (context.error == 0 && context.native != current_) ||
           (context.error == 0 && driver_.cuStreamQuery(nullptr) != CUDA_SUCCESS);
  });
  objects_->Table<Stream>().ForEach([&](wire::Id, const Stream& stream) {
    busy =
        busy || ++asked > kMost || (stream.error == 0 && driver_.cuStreamQuery(stream.state->native()) != CUDA_SUCCESS);
  });
  for (const auto& stream : ending_streams_) {
    busy = busy || ++asked > kMost || driver_.cuStreamQuery(stream->native()) != CUDA_SUCCESS;
  }
  return busy;
}

bool CudaBackend::AwaitFrees(uint64_t wanted) {
  // Who frees waits for the device, and the device may wait for a function of a graph, of whose end we would hear.
  FreePostponed();
  if (HostCallsDue() || freeing_.load(std::memory_order_relaxed) == 0) return false;
  // Nor is there a reason to wait where even all memory would not do.
  const uint64_t limit = ledger_->counters().limit;
  size_t free = 0, total = 0;
  if ((limit != 0 && wanted > limit) || driver_.cuMemGetInfo(&free, &total) != CUDA_SUCCESS) return false;
  if (wanted > total) return false;
  return disposals_.DrainFor(kLongestFree);
}

template <typename AllocateFunction>
int32_t CudaBackend::NewMemory(wire::Id context, uint64_t size, uint64_t charge, MemoryKind kind,
                               AllocateFunction&& allocate, uint64_t* address) {
  if (charge < size || (!ledger_->Reserve(charge) && !(AwaitFrees(charge) && ledger_->Reserve(charge)))) {
    return Explain(CUDA_ERROR_OUT_OF_MEMORY, "the session would hold more device memory than it may");
  }
  CUdeviceptr pointer = 0;
  CUresult result = allocate(&pointer);
  if (result == CUDA_ERROR_OUT_OF_MEMORY && AwaitFrees(charge)) result = allocate(&pointer);
  if (result != CUDA_SUCCESS) {
    ledger_->Cancel(charge);
    Note(context, result);
    return result;
  }
  ledger_->Commit(charge);
  MemoryRange range;
  range.address = pointer;
  range.size = size;
  range.kind = kind;
  range.charge = charge;
  range.owner = context;
  if (!memory_.Add(range)) {
    // Memory of a pool may come back before the stream has reached its end.
    memory_.RemoveIf([&](const MemoryRange& old) {
      const bool overlaps = (old.kind == MemoryKind::kPooled || old.kind == MemoryKind::kGraph) &&
                            old.address < pointer + size && pointer < old.address + old.size;
      if (overlaps) ledger_->Release(old.charge);
      return overlaps;
    });
    (void)memory_.Add(range);
  }
  *address = pointer;
  return 0;
}

void CudaBackend::ForgetMemory(uint64_t address) {
  if (const MemoryRange* range = memory_.At(address); range != nullptr) ledger_->Release(range->charge);
  memory_.Remove(address);
}

std::function<void()> CudaBackend::ForgetUntil(uint64_t address, std::function<void()> free) {
  const MemoryRange* range = memory_.At(address);
  const uint64_t charge = range != nullptr ? range->charge : 0;
  memory_.Remove(address);
  freeing_.fetch_add(charge, std::memory_order_relaxed);
  return [this, charge, free = std::move(free)] {
    free();
    ledger_->Release(charge);
    freeing_.fetch_sub(charge, std::memory_order_relaxed);
  };
}

void CudaBackend::FreeLater(wire::Id context, uint64_t address) {
  // A driver's own allocator waits for the device by itself, but then it may keep others from calling it.
  const bool behind_all = linear_.InChunks(address) || !chosen_.soft;
  PostponedFree later{context, current_, behind_all,
                      ForgetUntil(address, [this, address] { (void)linear_.Free(address); })};
  // A capture would not survive that its streams are asked for, or that the context is waited for.
  if (behind_all && captures()) {
    postponed_frees_.push_back(std::move(later));
  } else {
    FreeBehind(std::move(later));
  }
}

void CudaBackend::FreeBehind(PostponedFree later) {
  std::vector<std::shared_ptr<const PooledEvent>> marks;
  int32_t status = 0;
  Context* const context = later.behind_all ? Enter(later.context, &status) : nullptr;
  bool marked = context != nullptr;
  if (context != nullptr) {
    const auto mark = [&](CUstream stream) {
      auto event = PooledEvent::Take(context->events);
      marked = marked && event != nullptr && driver_.cuEventRecord(event->native(), stream) == CUDA_SUCCESS;
      if (event != nullptr) marks.push_back(std::move(event));
    };
    mark(WatcherOf(*context));
    ForEachStream(later.context, [&](const StreamState& stream) { mark(stream.native()); });
  }
  const CUcontext native = later.native;
  disposals_.Add(native, [this, marks = std::move(marks), marked, later = std::move(later)] {
    CUresult result = CUDA_SUCCESS;
    for (const auto& event : marks) {
      if (result == CUDA_SUCCESS) result = driver_.cuEventSynchronize(event->native());
    }
    if (later.behind_all && !marked) result = driver_.cuCtxSynchronize();
    // In a context that is broken nothing runs any more. Else something may, and then its memory stays.
    if (result != CUDA_SUCCESS && !BreaksContext(result)) {
      Log("warning", "freed memory stays, because its context cannot be waited for: " + ErrorText(driver_, result));
      return;
    }
    later.free();
  });
}

void CudaBackend::FreePostponed() {
  if (postponed_frees_.empty() || captures()) return;
  for (PostponedFree& later : std::exchange(postponed_frees_, {})) FreeBehind(std::move(later));
}

bool CudaBackend::Offered(const Context& context, uint64_t size, HeapPages* pages) {
  if (pages->size == 0) return true;
  std::string why;
  if (!heap_memory_.Usable(context.native, &why)) {
    *pages = {};
    return true;
  }
  return heap_memory_.Fits(*pages, size);
}

int32_t CudaBackend::NewLinear(wire::Id id, const Context& context, uint64_t size, const HeapPages& pages,
                               uint64_t* address, uint32_t* in_heap) {
  const auto allocate = [&](CUdeviceptr* pointer) {
    *in_heap = pages.size != 0 && heap_memory_.Allocate(context.native, pages, size, pointer) == CUDA_SUCCESS ? 1 : 0;
    return *in_heap != 0 ? CUDA_SUCCESS : linear_.Allocate(context.device, size, pointer);
  };
  return NewMemory(id, size, linear_.Footprint(context.device, size), MemoryKind::kLinear, allocate, address);
}

int32_t CudaBackend::Allocate(const cuda::Call& call, const cuda::Allocate& message) {
  cuda::Address reply;
  if (const Context* context = Enter(message.context, &reply.status); context != nullptr) {
    HeapPages pages{message.heap_offset, message.heap_size};
    if (!Offered(*context, message.size, &pages)) {
      reply.status = CUDA_ERROR_INVALID_VALUE;
    } else if (message.kind == 0) {
      reply.status = NewLinear(message.context, *context, message.size, pages, &reply.address, &reply.in_heap);
    } else if (driver_.cuMemAllocManaged == nullptr) {
      reply.status = kNotSupported;
    } else {
      reply.status = NewMemory(
          message.context, message.size, message.size, MemoryKind::kManaged,
          [&](CUdeviceptr* address) { return driver_.cuMemAllocManaged(address, message.size, message.flags); },
          &reply.address);
    }
  }
  Reply(call, reply);
  return 0;
}

int32_t CudaBackend::AllocatePitch(const cuda::Call& call, const cuda::AllocatePitch& message) {
  cuda::PitchedAddress reply;
  const Context* context = Enter(message.context, &reply.status);
  if (context == nullptr) {
    Reply(call, reply);
    return 0;
  }
  const CUdevice device = context->device;
  size_t pitch = 0;
  uint64_t size = 0;
  HeapPages pages{message.heap_offset, message.heap_size};
  if (pages.size != 0 &&
      LinearMemory::RowPitch(message.width, message.height, message.element, &pitch) == CUDA_SUCCESS &&
      !__builtin_mul_overflow(pitch, message.height, &size) && Offered(*context, size, &pages) && pages.size != 0) {
    reply.pitch = pitch;
    reply.status = NewLinear(message.context, *context, size, pages, &reply.address, &reply.in_heap);
    Reply(call, reply);
    return 0;
  }
  // How much it is, is known only afterwards; charged is what it is.
  CUdeviceptr pointer = 0;
  reply.status = linear_.AllocatePitch(device, message.width, message.height, message.element, &pointer, &pitch, &size);
  if (reply.status == 0) {
    reply.status = NewMemory(
        message.context, size, linear_.Footprint(device, size), MemoryKind::kLinear,
        [&](CUdeviceptr* address) {
          *address = pointer;
          return CUDA_SUCCESS;
        },
        &reply.address);
    if (reply.status != 0) (void)linear_.Free(pointer);
    reply.pitch = pitch;
  }
  Reply(call, reply);
  return 0;
}

int32_t CudaBackend::Free(const cuda::Call& call, const cuda::Free& message) {
  int32_t status = 0;
  FreePostponed();
  if (Enter(message.context, &status) == nullptr) return Fail(call, status);
  const MemoryRange* range = memory_.At(message.address);
  if (range == nullptr || range->kind == MemoryKind::kGlobal || range->kind == MemoryKind::kHeap ||
      range->kind == MemoryKind::kMapped || range->kind == MemoryKind::kImported) {
    return Fail(call, Explain(CUDA_ERROR_INVALID_VALUE, "no allocation begins there"), {}, message.context);
  }
  if (range->kind == MemoryKind::kGraph) {
    // Its place stays the graph's, for the next launch, which must come behind this; so the executor does it itself.
    if (!HostCallsDue()) return Finish(call, driver_.cuMemFree(message.address), message.context);
    disposals_.Add(current_, [this, address = message.address] { (void)driver_.cuMemFree(address); });
    return 0;
  }
  if (FreesWait() || linear_.InChunks(message.address)) {
    FreeLater(message.context, message.address);
    return 0;
  }
  const CUresult result = linear_.Free(message.address);
  if (result == CUDA_SUCCESS) ForgetMemory(message.address);
  return Finish(call, result, message.context);
}

int32_t CudaBackend::FreeInHeap(const cuda::Call& call, const cuda::FreeInHeap& message) {
  int32_t status = 0;
  if (Enter(message.context, &status) == nullptr) return ReplyStatus(call, status);
  const MemoryRange* range = memory_.At(message.address);
  if (range == nullptr || range->kind != MemoryKind::kLinear) return ReplyStatus(call, CUDA_ERROR_INVALID_VALUE);
  const uint64_t address = message.address;
  if (FreesWait()) {
    disposals_.Add(current_, ForgetUntil(address, [this, call, address] {
                     ReplyStatus(call, static_cast<int32_t>(linear_.Free(address)));
                   }));
    return 0;
  }
  const CUresult result = linear_.Free(address);
  if (result == CUDA_SUCCESS) ForgetMemory(address);
  Note(message.context, result);
  return ReplyStatus(call, static_cast<int32_t>(result));
}

int32_t CudaBackend::GetMemoryInfo(const cuda::Call& call, const cuda::GetMemoryInfo& message) {
  cuda::MemoryInfo reply;
  if (Enter(message.context, &reply.status) != nullptr) {
    size_t free = 0, total = 0;
    reply.status = driver_.cuMemGetInfo(&free, &total);
    // What the program has freed is free, as it sees it.
    const uint64_t freeing = freeing_.load(std::memory_order_relaxed);
    reply.free = std::min<uint64_t>(free + freeing, total);
    reply.total = total;
    const memmgr::LedgerCounters counters = ledger_->counters();
    if (counters.limit != 0) {
      const uint64_t charged = counters.held + counters.reserved;
      const uint64_t held = charged - std::min(charged, freeing);
      reply.free = std::min(reply.free, counters.limit - std::min(counters.limit, held));
      reply.total = std::min(reply.total, counters.limit);
    }
  }
  Reply(call, reply);
  return 0;
}

int32_t CudaBackend::Memset(const cuda::Call& call, const cuda::Memset& message) {
  const Place at = At(message.context, message.stream, Gives::kPlain);
  if (!at.ok()) return Fail(call, at.status, {}, message.context);
  if (message.width == 0 || message.height == 0) return 0;
  uint64_t bytes = 0;
  const bool rows = message.height > 1 || message.pitch != 0;
  if (__builtin_mul_overflow(message.width, uint64_t{message.element}, &bytes) ||
      (message.height > 1 && message.pitch < bytes) ||
      !memory_.HoldsRegion(message.address, bytes, message.height, message.pitch, 1, 0)) {
    return Fail(call, Explain(CUDA_ERROR_INVALID_VALUE, "the memory is not the session's"), {}, message.context);
  }
  CUresult result = CUDA_ERROR_NOT_SUPPORTED;
  const auto value8 = static_cast<unsigned char>(message.value);
  const auto value16 = static_cast<unsigned short>(message.value);  // NOLINT(google-runtime-int): CUDA's type.
  if (!rows) {
    switch (message.element) {
      case 1:
        result = driver_.cuMemsetD8Async(message.address, value8, message.width, at.native());
        break;
      case 2:
        result = driver_.cuMemsetD16Async(message.address, value16, message.width, at.native());
        break;
      default:
        result = driver_.cuMemsetD32Async(message.address, message.value, message.width, at.native());
    }
  } else if (driver_.cuMemsetD2D8Async != nullptr && driver_.cuMemsetD2D16Async != nullptr &&
             driver_.cuMemsetD2D32Async != nullptr) {
    const uint64_t pitch = message.pitch != 0 ? message.pitch : bytes;
    switch (message.element) {
      case 1:
        result = driver_.cuMemsetD2D8Async(message.address, pitch, value8, message.width, message.height, at.native());
        break;
      case 2:
        result =
            driver_.cuMemsetD2D16Async(message.address, pitch, value16, message.width, message.height, at.native());
        break;
      default:
        result = driver_.cuMemsetD2D32Async(message.address, pitch, message.value, message.width, message.height,
                                            at.native());
    }
  }
  return Finish(call, result, message.context);
}

int32_t CudaBackend::Prefetch(const cuda::Call& call, const cuda::Prefetch& message) {
  const Place at = At(message.context, message.stream);
  if (!at.ok()) return Fail(call, at.status, {}, message.context);
  if (driver_.cuMemPrefetchAsync == nullptr) return Fail(call, kNotSupported, {}, message.context);
  if (!Owns(message.address, message.size)) return Fail(call, CUDA_ERROR_INVALID_VALUE, {}, message.context);
  CUmemLocation location{};
  location.type = static_cast<CUmemLocationType>(message.location);
  location.id = message.location_id;
  return Finish(call, driver_.cuMemPrefetchAsync(message.address, message.size, location, 0, at.native()),
                message.context);
}

int32_t CudaBackend::Advise(const cuda::Call& call, const cuda::Advise& message) {
  if (driver_.cuMemAdvise == nullptr) return Fail(call, kNotSupported);
  if (!Owns(message.address, message.size)) return Fail(call, CUDA_ERROR_INVALID_VALUE);
  CUmemLocation location{};
  location.type = static_cast<CUmemLocationType>(message.location);
  location.id = message.location_id;
  return Finish(
      call, driver_.cuMemAdvise(message.address, message.size, static_cast<CUmem_advise>(message.advice), location));
}

// --- pools

int32_t CudaBackend::CreatePool(const cuda::Call& call, const cuda::CreatePool& message) {
  if (message.device >= devices_.size()) return Fail(call, CUDA_ERROR_INVALID_DEVICE, message.pool);
  Pool pool;
  pool.device = devices_[message.device];
  if (message.which != 0) {
    if (driver_.cuDeviceGetDefaultMemPool == nullptr) return Fail(call, kNotSupported, message.pool);
    const CUresult result = driver_.cuDeviceGetDefaultMemPool(&pool.native, pool.device);
    if (result != CUDA_SUCCESS) return Fail(call, result, message.pool);
  } else {
    if (driver_.cuMemPoolCreate == nullptr) return Fail(call, kNotSupported, message.pool);
    CUmemPoolProps properties{};
    properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.handleTypes = CU_MEM_HANDLE_TYPE_NONE;
    properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    properties.location.id = pool.device;
    properties.maxSize = message.max_size;
    properties.usage = static_cast<unsigned short>(message.usage);  // NOLINT(google-runtime-int): CUDA's type.
    const CUresult result = driver_.cuMemPoolCreate(&pool.native, &properties);
    if (result != CUDA_SUCCESS) return Fail(call, result, message.pool);
    pool.owned = OwnedPool(&driver_, pool.native);
  }
  const int32_t status = Keep(message.pool, std::move(pool));
  return status == 0 ? 0 : Fail(call, status);
}

int32_t CudaBackend::AllocateAsync(const cuda::Call& call, const cuda::AllocateAsync& message) {
  cuda::Address reply;
  const Place at = At(message.context, message.stream);
  reply.status = at.status;
  CUmemoryPool pool = nullptr;
  if (at.ok() && message.pool) {
    const Pool* object = Use<Pool>(message.pool, &reply.status);
    if (object != nullptr) pool = object->native;
  }
  if (reply.status == 0 && (driver_.cuMemAllocAsync == nullptr || driver_.cuMemAllocFromPoolAsync == nullptr)) {
    reply.status = kNotSupported;
  }
  if (reply.status == 0) {
    // What is allocated in a capture is the graph's.
    CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
    if (driver_.cuStreamIsCapturing != nullptr) (void)driver_.cuStreamIsCapturing(at.native(), &capture);
    const MemoryKind kind = capture == CU_STREAM_CAPTURE_STATUS_NONE ? MemoryKind::kPooled : MemoryKind::kGraph;
    reply.status = NewMemory(
        message.context, message.size, message.size, kind,
        [&](CUdeviceptr* address) {
          return pool != nullptr ? driver_.cuMemAllocFromPoolAsync(address, message.size, pool, at.native())
                                 : driver_.cuMemAllocAsync(address, message.size, at.native());
        },
        &reply.address);
  }
  Reply(call, reply);
  return 0;
}

int32_t CudaBackend::FreeAsync(const cuda::Call& call, const cuda::FreeAsync& message) {
  const Place at = At(message.context, message.stream);
  if (!at.ok()) return Fail(call, at.status, {}, message.context);
  const MemoryRange* range = memory_.At(message.address);
  if (range == nullptr ||
      (range->kind != MemoryKind::kPooled && range->kind != MemoryKind::kLinear && range->kind != MemoryKind::kGraph)) {
    return Fail(call, Explain(CUDA_ERROR_INVALID_VALUE, "no allocation begins there"), {}, message.context);
  }
  if (linear_.InChunks(message.address)) {
    if (at.stream->captures || at.stream->capture_mark != nullptr) {
      return Fail(call, Explain(CUDA_ERROR_INVALID_VALUE, "no graph has allocated that memory"), {}, message.context);
    }
    const uint64_t address = message.address;
    const auto free = ForgetUntil(address, [this, address] { (void)linear_.Free(address); });
    // When the context is broken nobody knows when the device is done with it: it goes with the session.
    return Finish(call,
                  waits_->After(&at.stream->lane, at.native(), at.context->events, false,
                                [free](CUresult result) {
                                  if (result == CUDA_SUCCESS) free();
                                }),
                  message.context);
  }
  if (driver_.cuMemFreeAsync == nullptr) return Fail(call, kNotSupported, {}, message.context);
  const bool graph = range->kind == MemoryKind::kGraph;
  const CUresult result = driver_.cuMemFreeAsync(message.address, at.native());
  if (result == CUDA_SUCCESS && !graph) ForgetMemory(message.address);
  return Finish(call, result, message.context);
}

int32_t CudaBackend::SetPool(const cuda::Call& call, const cuda::SetPool& message) {
  int32_t status = 0;
  const Pool* pool = Use<Pool>(message.pool, &status);
  if (pool == nullptr) return Fail(call, status);
  if (message.device >= devices_.size()) return Fail(call, CUDA_ERROR_INVALID_DEVICE);
  if (driver_.cuDeviceSetMemPool == nullptr) return Fail(call, kNotSupported);
  return Finish(call, driver_.cuDeviceSetMemPool(devices_[message.device], pool->native));
}

int32_t CudaBackend::SetPoolAttribute(const cuda::Call& call, const cuda::SetPoolAttribute& message) {
  int32_t status = 0;
  const Pool* pool = Use<Pool>(message.pool, &status);
  if (pool == nullptr) return ReplyStatus(call, status);
  if (driver_.cuMemPoolSetAttribute == nullptr) return ReplyStatus(call, kNotSupported);
  uint64_t value = message.value;  // An int is its first half.
  return ReplyStatus(
      call, driver_.cuMemPoolSetAttribute(pool->native, static_cast<CUmemPool_attribute>(message.attribute), &value));
}

int32_t CudaBackend::GetPoolAttribute(const cuda::Call& call, const cuda::GetPoolAttribute& message) {
  cuda::Value reply;
  const Pool* pool = Use<Pool>(message.pool, &reply.status);
  if (pool != nullptr) {
    reply.status = driver_.cuMemPoolGetAttribute == nullptr
                       ? kNotSupported
                       : driver_.cuMemPoolGetAttribute(
                             pool->native, static_cast<CUmemPool_attribute>(message.attribute), &reply.value);
  }
  Reply(call, reply);
  return 0;
}

int32_t CudaBackend::GraphMemory(const cuda::Call& call, const cuda::GraphMemory& message) {
  cuda::Value reply;
  const auto attribute = static_cast<CUgraphMem_attribute>(message.attribute);
  if (message.device >= devices_.size()) {
    reply.status = CUDA_ERROR_INVALID_DEVICE;
  } else if (driver_.cuDeviceGetGraphMemAttribute == nullptr || driver_.cuDeviceSetGraphMemAttribute == nullptr ||
             driver_.cuDeviceGraphMemTrim == nullptr) {
    reply.status = kNotSupported;
  } else if (const CUdevice device = devices_[message.device]; message.action == 0) {
    reply.status = driver_.cuDeviceGetGraphMemAttribute(device, attribute, &reply.value);
  } else if (message.action == 1) {
    uint64_t value = message.value;
    reply.status = driver_.cuDeviceSetGraphMemAttribute(device, attribute, &value);
  } else {
    reply.status = driver_.cuDeviceGraphMemTrim(device);
  }
  Reply(call, reply);
  return 0;
}

int32_t CudaBackend::TrimPool(const cuda::Call& call, const cuda::TrimPool& message) {
  int32_t status = 0;
  const Pool* pool = Use<Pool>(message.pool, &status);
  if (pool == nullptr) return Fail(call, status);
  if (driver_.cuMemPoolTrimTo == nullptr) return Fail(call, kNotSupported);
  return Finish(call, driver_.cuMemPoolTrimTo(pool->native, message.keep));
}

int32_t CudaBackend::SetPoolAccess(const cuda::Call& call, const cuda::SetPoolAccess& message) {
  int32_t status = 0;
  const Pool* pool = Use<Pool>(message.pool, &status);
  if (pool == nullptr) return ReplyStatus(call, status);
  if (driver_.cuMemPoolSetAccess == nullptr) return ReplyStatus(call, kNotSupported);
  if (message.devices.size() != message.flags.size()) return ReplyStatus(call, CUDA_ERROR_INVALID_VALUE);
  std::vector<CUmemAccessDesc> list(message.devices.size());
  for (uint32_t i = 0; i < message.devices.size(); ++i) {
    if (message.devices[i] >= devices_.size()) return ReplyStatus(call, CUDA_ERROR_INVALID_DEVICE);
    list[i].location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    list[i].location.id = devices_[message.devices[i]];
    list[i].flags = static_cast<CUmemAccess_flags>(message.flags[i]);
  }
  return ReplyStatus(call, driver_.cuMemPoolSetAccess(pool->native, list.data(), list.size()));
}

}  // namespace hawser::server::cuda_backend
