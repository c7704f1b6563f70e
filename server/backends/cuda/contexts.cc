// SPDX-License-Identifier: Apache-2.0
// The inventory, contexts, and the end of objects.
#include <algorithm>
#include <cstring>

#include "server/backends/cuda/backend.h"

namespace hawser::server::cuda_backend {
namespace {

/// Attributes are asked for one by one up to here: those of later drivers have names of their own.
constexpr int kMaxAttribute = CU_DEVICE_ATTRIBUTE_MAX;

constexpr CUlimit kLimits[] = {CU_LIMIT_STACK_SIZE,
                               CU_LIMIT_PRINTF_FIFO_SIZE,
                               CU_LIMIT_MALLOC_HEAP_SIZE,
                               CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH,
                               CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT,
                               CU_LIMIT_MAX_L2_FETCH_GRANULARITY,
                               CU_LIMIT_PERSISTING_L2_CACHE_SIZE};

CUresult ReleasePrimary(const DriverTable& driver, const Context& context) {
  return driver.cuDevicePrimaryCtxRelease(context.device);
}
CUresult ResetPrimaryContext(const DriverTable& driver, const Context& context) {
  const CUresult result = driver.cuDevicePrimaryCtxReset(context.device);
  // That does not give back what was retained, and the guest retains it anew.
  (void)driver.cuDevicePrimaryCtxRelease(context.device);
  return result;
}
CUresult DestroyContext(const DriverTable& driver, const Context& context) {
  return driver.cuCtxDestroy(context.native);
}

/// What a DeviceInfo views.
struct DeviceText {
  std::string name, bus;
  std::vector<uint32_t> attributes, peers, limits;
  std::vector<int32_t> values;
  std::vector<uint64_t> limit_values;
};

}  // namespace

int32_t CudaBackend::GetInventory(const cuda::Call& call, const cuda::Nothing&) {
  cuda::Inventory inventory;
  inventory.driver_version = static_cast<uint32_t>(chosen_.driver.version);
  inventory.driver = chosen_.soft ? std::string_view("software device") : std::string_view(chosen_.summary);
  std::vector<DeviceText> texts(devices_.size());
  std::vector<cuda::DeviceInfo> infos(devices_.size());
  for (size_t i = 0; i < devices_.size(); ++i) {
    const CUdevice device = devices_[i];
    DeviceText& text = texts[i];
    cuda::DeviceInfo& info = infos[i];
    char name[256] = {};
    if (driver_.cuDeviceGetName(name, sizeof(name) - 1, device) == CUDA_SUCCESS) text.name = name;
    CUuuid uuid{};
    if (driver_.cuDeviceGetUuid(&uuid, device) == CUDA_SUCCESS) {
      std::memcpy(info.uuid.data(), uuid.bytes, info.uuid.size());
    }
    size_t memory = 0;
    if (driver_.cuDeviceTotalMem(&memory, device) == CUDA_SUCCESS) info.total_memory = memory;
    const uint64_t limit = ledger_->counters().limit;
    if (limit != 0) info.total_memory = std::min(info.total_memory, limit);
    for (int attribute = 1; attribute < kMaxAttribute; ++attribute) {
      int value = 0;
      if (driver_.cuDeviceGetAttribute(&value, static_cast<CUdevice_attribute>(attribute), device) != CUDA_SUCCESS) {
        continue;
      }
      if (attribute == CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED && !CanShare()) value = 0;
      text.attributes.push_back(static_cast<uint32_t>(attribute));
      text.values.push_back(value);
    }
    char bus[64] = {};
    if (driver_.cuDeviceGetPCIBusId != nullptr &&
        driver_.cuDeviceGetPCIBusId(bus, sizeof(bus) - 1, device) == CUDA_SUCCESS) {
      text.bus = bus;
    }
    // These need a context. A program that asks for devices will make one anyway.
    if (warm_[i] == nullptr && driver_.cuDevicePrimaryCtxRetain(&warm_[i], device) != CUDA_SUCCESS) warm_[i] = nullptr;
    if (warm_[i] != nullptr && EnterNative(warm_[i]) == 0) {
      int least = 0, greatest = 0;
      if (driver_.cuCtxGetStreamPriorityRange != nullptr &&
          driver_.cuCtxGetStreamPriorityRange(&least, &greatest) == CUDA_SUCCESS) {
        info.least_priority = least;
        info.greatest_priority = greatest;
      }
      for (const CUlimit each : kLimits) {
        size_t value = 0;
        if (driver_.cuCtxGetLimit == nullptr || driver_.cuCtxGetLimit(&value, each) != CUDA_SUCCESS) continue;
        text.limits.push_back(static_cast<uint32_t>(each));
        text.limit_values.push_back(value);
      }
    }
    for (size_t j = 0; j < devices_.size(); ++j) {
      int can = 0;
      if (j != i && driver_.cuDeviceCanAccessPeer != nullptr &&
          driver_.cuDeviceCanAccessPeer(&can, device, devices_[j]) == CUDA_SUCCESS && can != 0) {
        text.peers.push_back(static_cast<uint32_t>(j));
      }
    }
    info.name = text.name;
    info.pci_bus_id = text.bus;
    info.attributes = wire::ArrayView<uint32_t>(text.attributes.data(), text.attributes.size());
    info.values = wire::ArrayView<int32_t>(text.values.data(), text.values.size());
    info.peers = wire::ArrayView<uint32_t>(text.peers.data(), text.peers.size());
    info.limits = wire::ArrayView<uint32_t>(text.limits.data(), text.limits.size());
    info.limit_values = wire::ArrayView<uint64_t>(text.limit_values.data(), text.limit_values.size());
  }
  inventory.devices = wire::ListView<cuda::DeviceInfo>(std::span<const cuda::DeviceInfo>(infos));
  const AddressRanges now = AddressRanges::Reserved().Without(before_);
  std::vector<cuda::AddressRange> ranges;
  const uint64_t heap = reinterpret_cast<uint64_t>(services_.heap.base);
  for (const AddressRanges::Range& range : now.ranges()) {
    // The heap is the guest's to map, and where it lies is said below.
    if (heap != 0 && heap >= range.begin && heap < range.end) {
      if (heap - range.begin >= AddressRanges::kLeast) {
        cuda::AddressRange& before = ranges.emplace_back();
        before.address = range.begin;
        before.size = heap - range.begin;
      }
      if (heap + services_.heap.size < range.end) {
        cuda::AddressRange& after = ranges.emplace_back();
        after.address = heap + services_.heap.size;
        after.size = range.end - after.address;
      }
      continue;
    }
    cuda::AddressRange& told = ranges.emplace_back();
    told.address = range.begin;
    told.size = range.end - range.begin;
  }
  for (const LinearMemory::Range& chunks : linear_.Ranges()) {
    const bool told = std::any_of(ranges.begin(), ranges.end(), [&](const cuda::AddressRange& range) {
      return chunks.begin >= range.address && chunks.end - range.address <= range.size;
    });
    if (told) continue;
    cuda::AddressRange& range = ranges.emplace_back();
    range.address = chunks.begin;
    range.size = chunks.end - chunks.begin;
  }
  inventory.ranges = wire::ListView<cuda::AddressRange>(std::span<const cuda::AddressRange>(ranges));
  if (!devices_.empty() && warm_.front() != nullptr && heap_address_ == 0) {
    Context context;
    context.native = warm_.front();
    context.device = devices_.front();
    if (EnterNative(context.native) == 0) {
      RegisterHeap(context);
      std::string why;
      inventory.memory_in_heap = heap_memory_.Usable(context.native, &why) ? 1 : 0;
      if (!why.empty()) Log("info", "device memory does not lie in the shared heap: " + why);
    }
  }
  inventory.heap_address = heap_address_;
  // The first one's is kept, for the heap and for whoever uses one device. A context takes memory of its device, so
  // those of the others are made anew by who needs them.
  for (size_t i = 1; i < devices_.size(); ++i) {
    const CUcontext context = std::exchange(warm_[i], nullptr);
    if (context == nullptr) continue;
    if (current_ == context) {
      current_ = nullptr;
      (void)driver_.cuCtxSetCurrent(nullptr);
    }
    (void)driver_.cuDevicePrimaryCtxRelease(devices_[i]);
  }
  Reply(call, inventory);
  return 0;
}

void CudaBackend::RegisterHeap(const Context& context) {
  const Heap& heap = services_.heap;
  if (heap.base == nullptr || heap_owner_ != nullptr) return;
  const unsigned flags = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP;
  if (const CUresult result = driver_.cuMemHostRegister(heap.base, heap.size, flags); result != CUDA_SUCCESS) {
    Log("warning", "the device cannot reach the shared heap: " + ErrorText(driver_, result));
    return;
  }
  heap_owner_ = context.native;
  CUdeviceptr address = 0;
  if (driver_.cuMemHostGetDevicePointer == nullptr ||
      driver_.cuMemHostGetDevicePointer(&address, heap.base, 0) != CUDA_SUCCESS) {
    return;
  }
  heap_address_ = address;
  MemoryRange range;
  range.address = heap_address_;
  range.size = heap.size;
  range.kind = MemoryKind::kHeap;
  (void)memory_.Add(range);
}

int32_t CudaBackend::RetainPrimary(CUdevice device, CUcontext* native) {
  if (const CUresult result = driver_.cuDevicePrimaryCtxRetain(native, device); result != CUDA_SUCCESS) return result;
  for (size_t i = 0; i < devices_.size(); ++i) {
    if (devices_[i] != device || warm_[i] == nullptr) continue;
    warm_[i] = nullptr;
    (void)driver_.cuDevicePrimaryCtxRelease(device);
  }
  return 0;
}

int32_t CudaBackend::CreateContext(const cuda::Call& call, const cuda::CreateContext& message) {
  if (message.device >= devices_.size()) return Fail(call, CUDA_ERROR_INVALID_DEVICE, message.context);
  Context context;
  context.device = devices_[message.device];
  context.primary = message.primary != 0;
  if (context.primary) {
    if (message.flags != 0) (void)driver_.cuDevicePrimaryCtxSetFlags(context.device, message.flags);
    if (const int32_t status = RetainPrimary(context.device, &context.native); status != 0) {
      return Fail(call, status, message.context);
    }
  } else {
    if (driver_.cuCtxCreate == nullptr) return Fail(call, kNotSupported, message.context);
    const CUresult result = driver_.cuCtxCreate(&context.native, nullptr, message.flags, context.device);
    if (result != CUDA_SUCCESS) return Fail(call, result, message.context);
    current_ = context.native;  // A new context is current.
  }
  if (const int32_t status = EnterNative(context.native); status != 0) return Fail(call, status, message.context);
  context.staging = std::make_shared<StagingPool>(&driver_, context.native, staging_budget_.get(), &disposals_);
  context.events = std::make_shared<EventPool>(&driver_, context.native);
  context.timers = std::make_shared<EventPool>(&driver_, context.native, CU_EVENT_BLOCKING_SYNC);
  context.legacy = std::make_shared<StreamState>();
  context.legacy->context = message.context;
  context.share = &ShareOf(context.device);
  context.gate = context.share->gate;
  RegisterHeap(context);
  {
    const std::lock_guard<std::mutex> lock(faults_mutex_);
    context_names_[context.native] = message.context;
  }
  const Context copy = context;
  if (const int32_t status = Keep(message.context, std::move(context)); status != 0) {
    (void)(copy.primary ? ReleasePrimary(driver_, copy) : DestroyContext(driver_, copy));
    return Fail(call, status);
  }
  return 0;
}

void CudaBackend::EndContext(wire::Id id, Context& context,
                             CUresult (*end)(const DriverTable& driver, const Context& context)) {
  gates_.OpenAll(context.native);
  EndFunctions(id);
  if (loader_ != nullptr) {
    loader_->Drain();
    AdoptLoaded();
  }
  // With the context its captures end.
  if (EnterNative(context.native) == 0) (void)driver_.cuCtxSynchronize();
  std::erase_if(postponed_frees_, [&](PostponedFree& later) {
    if (later.context != id) return false;
    later.behind_all = false;
    FreeBehind(std::move(later));
    return true;
  });
  disposals_.Drain();
  waits_->Drain(context.native);
  if (Sharing* const shared = context.share->sharing.get(); shared != nullptr) {
    shared->units.Drain(context.native);
    shared->strays.Forget(context.native);
    if (EnterNative(context.native) == 0) shared->sliced.EndContext(context.native);
  }
  std::erase_if(left_streams_, [&](const LeftStream& left) { return left.context == id; });
  // What belongs to it, dependents first.
  std::unordered_set<uint64_t> modules;
  objects_->Table<Module>().ForEach([&](wire::Id module, Module& object) {
    if (object.context != id) return;
    modules.insert(module.raw());
    if (object.part == nullptr && object.code != nullptr) object.code->variables->End();
  });
  objects_->Table<Function>().ForEach([&](wire::Id function, Function& object) {
    if (modules.count(object.module.raw()) != 0) objects_->Table<Function>().Erase(function);
  });
  const auto erase = [&]<typename T>(LeavingTable<T>& table) {
    table.ForEach([&](wire::Id each, T& object) {
      if (object.error == 0 && object.context == id) table.Erase(each);
    });
  };
  erase(objects_->Table<Module>());
  objects_->Table<Array>().ForEach([&](wire::Id, Array& array) {
    if (array.context == id) ledger_->Release(std::exchange(array.charge, 0));
  });
  objects_->Table<Mipmap>().ForEach([&](wire::Id, Mipmap& mipmap) {
    if (mipmap.context == id) ledger_->Release(std::exchange(mipmap.charge, 0));
  });
  erase(objects_->Table<Array>());
  erase(objects_->Table<Mipmap>());
  erase(objects_->Table<Staging>());
  erase(objects_->Table<Event>());
  objects_->Table<Stream>().ForEach([&](wire::Id each, Stream& object) {
    if (object.error == 0 && object.state->context == id) objects_->Table<Stream>().Erase(each);
  });
  context.given.clear();
  std::erase_if(ending_streams_, [&](const auto& stream) { return stream->context == id; });
  std::vector<MemoryRange> chunked;  // The driver does not end it with the context.
  memory_.RemoveIf([&](const MemoryRange& range) {
    const bool gone = range.owner == id && range.kind != MemoryKind::kHeap;
    if (gone && linear_.InChunks(range.address)) {
      chunked.push_back(range);
    } else if (gone) {
      ledger_->Release(range.charge);
    }
    return gone;
  });
  if (heap_owner_ == context.native) {
    (void)driver_.cuMemHostUnregister(services_.heap.base);
    heap_owner_ = nullptr;
    memory_.Remove(heap_address_);
    heap_address_ = 0;
  }
  if (EnterNative(context.native) == 0) heap_memory_.EndContext(context.native);
  context.legacy.reset();
  context.watcher.reset();
  context.events->Retire();
  context.timers->Retire();
  const CUresult result = end(driver_, context);
  for (const MemoryRange& range : chunked) {
    (void)linear_.Free(range.address);
    ledger_->Release(range.charge);
  }
  context.staging->Retire();
  if (result != CUDA_SUCCESS) Log("info", "a context ended with " + ErrorText(driver_, result));
  {
    const std::lock_guard<std::mutex> lock(faults_mutex_);
    context_names_.erase(context.native);
  }
  current_ = nullptr;
  (void)driver_.cuCtxSetCurrent(nullptr);
  objects_->Table<Context>().Erase(id);
}

int32_t CudaBackend::ReleaseObject(const cuda::Call& call, const cuda::Release& message) {
  const wire::Id id = message.object;
  const auto type = static_cast<cuda::Handle>(id.type());
  // A name whose creation failed ends without a word: the guest has heard why.
  if (type == cuda::Handle::kContext) {
    Context* context = objects_->Table<Context>().Find(id);
    if (context == nullptr) return Fail(call, CUDA_ERROR_INVALID_CONTEXT);
    if (context->error != 0) {
      objects_->Table<Context>().Erase(id);
      return 0;
    }
    EndContext(id, *context, context->primary ? ReleasePrimary : DestroyContext);
    return 0;
  }
  if (type == cuda::Handle::kArray) {
    if (Array* array = objects_->Table<Array>().Find(id); array != nullptr) {
      int32_t status = 0;
      if (array->error == 0) (void)Enter(array->context, &status);
      ledger_->Release(array->charge);
      Dispose(std::move(array->owned));
    }
  } else if (type == cuda::Handle::kMipmap) {
    if (Mipmap* mipmap = objects_->Table<Mipmap>().Find(id); mipmap != nullptr) {
      int32_t status = 0;
      if (mipmap->error == 0) (void)Enter(mipmap->context, &status);
      ledger_->Release(mipmap->charge);
      Dispose(std::move(mipmap->owned));
    }
  } else if (type == cuda::Handle::kModule) {
    if (Module* module = objects_->Table<Module>().Find(id); module != nullptr) {
      int32_t status = 0;
      if (module->error == 0 && module->context) (void)Enter(module->context, &status);
      memory_.RemoveIf([&](const MemoryRange& range) { return range.owner == id; });
      objects_->Table<Function>().ForEach([&](wire::Id function, Function& object) {
        if (object.module == id) objects_->Table<Function>().Erase(function);
      });
      if (module->part == nullptr && module->code != nullptr) module->code->variables->End();
      Dispose(std::move(module->module));
      DisposeShared(std::move(module->library));
    }
  } else if (type == cuda::Handle::kStream) {
    if (Stream* stream = objects_->Table<Stream>().Find(id); stream != nullptr && stream->error == 0) {
      int32_t status = 0;
      if (stream->state->capture_hold != 0) ReleaseNow(std::exchange(stream->state->capture_hold, 0));
      Context* context = Enter(stream->state->context, &status);
      if (context != nullptr) LeaveOpen(*context, *stream->state);
      if (context != nullptr && stream->state->slab) {
        (void)KeepUntilDone({0, context, stream->state.get()}, std::move(stream->state->slab));
      }
      if (context != nullptr) EndStream(stream->state);
    }
  } else if (type == cuda::Handle::kEvent) {
    if (Event* event = objects_->Table<Event>().Find(id); event != nullptr && event->error == 0) {
      int32_t status = 0;
      (void)Enter(event->context, &status);
    }
  } else if (type == cuda::Handle::kNode) {
    if (Node* node = objects_->Table<Node>().Find(id); node != nullptr && node->error == 0) {
      if (Graph* graph = objects_->Table<Graph>().Find(node->graph); graph != nullptr && graph->error == 0) {
        graph->names.erase(node->native);
        if (driver_.cuGraphDestroyNode != nullptr) (void)driver_.cuGraphDestroyNode(node->native);
      }
      EndInnerGraphs(*node);
    }
  } else if (type == cuda::Handle::kGraph) {
    EndNodes(id);
  } else if (type == cuda::Handle::kStaging) {
    if (Staging* staging = objects_->Table<Staging>().Find(id); staging != nullptr && staging->error == 0) {
      KeepForGraphs(staging->context, std::move(staging->block));
    }
  }
  if (!objects_->Erase(id)) return Fail(call, Explain(CUDA_ERROR_INVALID_HANDLE, "there is no such object"));
  return 0;
}

int32_t CudaBackend::ResetPrimary(const cuda::Call& call, const cuda::ResetPrimary& message) {
  int32_t status = 0;
  Context* context = Use<Context>(message.context, &status);
  if (context == nullptr) return Fail(call, status);
  if (!context->primary) return Fail(call, Explain(CUDA_ERROR_INVALID_CONTEXT, "the context is not a primary one"));
  EndContext(message.context, *context, ResetPrimaryContext);
  return 0;
}

int32_t CudaBackend::SetContextFlags(const cuda::Call& call, const cuda::SetContextFlags& message) {
  int32_t status = 0;
  const Context* context = Enter(message.context, &status);
  if (context == nullptr) return Fail(call, status);
  if (context->primary) return Finish(call, driver_.cuDevicePrimaryCtxSetFlags(context->device, message.flags));
  if (driver_.cuCtxSetFlags == nullptr) return Fail(call, kNotSupported, {}, message.context);
  return Finish(call, driver_.cuCtxSetFlags(message.flags), message.context);
}

int32_t CudaBackend::SetLimit(const cuda::Call& call, const cuda::SetLimit& message) {
  int32_t status = 0;
  if (Enter(message.context, &status) == nullptr) return ReplyStatus(call, status);
  if (driver_.cuCtxSetLimit == nullptr) return ReplyStatus(call, kNotSupported);
  return ReplyStatus(call, driver_.cuCtxSetLimit(static_cast<CUlimit>(message.limit), message.value));
}

int32_t CudaBackend::GetLimit(const cuda::Call& call, const cuda::GetLimit& message) {
  cuda::Value reply;
  size_t value = 0;
  if (Enter(message.context, &reply.status) != nullptr) {
    reply.status = driver_.cuCtxGetLimit == nullptr
                       ? kNotSupported
                       : driver_.cuCtxGetLimit(&value, static_cast<CUlimit>(message.limit));
  }
  reply.value = value;
  Reply(call, reply);
  return 0;
}

int32_t CudaBackend::SetCacheConfig(const cuda::Call& call, const cuda::SetCacheConfig& message) {
  int32_t status = 0;
  const Context* context = Enter(message.context, &status);
  if (context == nullptr) return Fail(call, status);
  const auto config = static_cast<CUfunc_cache>(message.config);
  if (!message.function) {
    if (driver_.cuCtxSetCacheConfig == nullptr) return Fail(call, kNotSupported, {}, message.context);
    return Finish(call, driver_.cuCtxSetCacheConfig(config), message.context);
  }
  const Function* function = Use<Function>(message.function, &status);
  if (function == nullptr) return Fail(call, status, {}, message.context);
  if (function->is_kernel) {
    if (driver_.cuKernelSetCacheConfig == nullptr) return Fail(call, kNotSupported, {}, message.context);
    return Finish(call,
                  driver_.cuKernelSetCacheConfig(reinterpret_cast<CUkernel>(function->native), config, context->device),
                  message.context);
  }
  if (driver_.cuFuncSetCacheConfig == nullptr) return Fail(call, kNotSupported, {}, message.context);
  return Finish(call, driver_.cuFuncSetCacheConfig(function->native, config), message.context);
}

int32_t CudaBackend::SetPeerAccess(const cuda::Call& call, const cuda::SetPeerAccess& message) {
  int32_t status = 0;
  const Context* peer = Use<Context>(message.peer, &status);
  if (peer == nullptr || Enter(message.context, &status) == nullptr) return ReplyStatus(call, status);
  if (driver_.cuCtxEnablePeerAccess == nullptr || driver_.cuCtxDisablePeerAccess == nullptr) {
    return ReplyStatus(call, kNotSupported);
  }
  if (message.enabled == 0) return ReplyStatus(call, driver_.cuCtxDisablePeerAccess(peer->native));
  CUresult result = driver_.cuCtxEnablePeerAccess(peer->native, message.flags);
  if (result == CUDA_SUCCESS) {
    const Context* user = Use<Context>(message.context, &status);
    result = user != nullptr ? linear_.GiveAccess(peer->device, user->device) : CUDA_ERROR_INVALID_CONTEXT;
  }
  return ReplyStatus(call, result);
}

}  // namespace hawser::server::cuda_backend
