// SPDX-License-Identifier: Apache-2.0
// Memory, streams, events and modules of a random CUDA program.
#include <stdlib.h>

#include <cstring>
#include <iterator>

#include "tests/random/cuda_program.h"

namespace hawser::random {

CUevent CudaProgram::AnyEvent() {
  const size_t index = options_.events ? Pick(4) : events_.size();
  if (index >= events_.size() || Chance(10)) {
    CUevent event = nullptr;
    Do("make an event", [&] { return cuEventCreate(&event, Chance(50) ? CU_EVENT_DISABLE_TIMING : CU_EVENT_DEFAULT); });
    if (index >= events_.size()) {
      events_.push_back(event);
      return event;
    }
    Do("destroy an event", [&] { return cuEventDestroy(events_[index]); });
    events_[index] = event;
  }
  return events_[index];
}

void CudaProgram::MakeStream() {
  auto stream = std::make_unique<Stream>();
  stream->agent = ++agents_;
  stream->owner = kAnybody;
  stream->blocking = Chance(30);
  const unsigned flags = stream->blocking ? CU_STREAM_DEFAULT : CU_STREAM_NON_BLOCKING;
  Do("make stream " + std::to_string(stream->agent), [&] { return cuStreamCreate(&stream->handle, flags); });
  streams_.push_back(std::move(stream));
}

void CudaProgram::DestroyStream() {
  const size_t index = Pick(streams_.size());
  Stream& stream = *streams_[index];
  if (index == 0 || stream.owner != kAnybody) return;
  for (const auto& memory : memories_) {
    if (memory->only == stream.agent) return;
  }
  // The legacy stream may wait for what is still in it.
  if (stream.blocking) OpenFor(stream.clock);
  Do("destroy stream " + std::to_string(stream.agent), [&] { return cuStreamDestroy(stream.handle); });
  gone_.Join(stream.clock);
  streams_.erase(streams_.begin() + static_cast<ptrdiff_t>(index));
}

void CudaProgram::MakeCode() {
  Code code{};
  const std::string text = ModuleText(16, static_cast<unsigned>(Pick(4)));
  Do("load a module", [&] { return cuModuleLoadData(&code.module, text.c_str()); });
  Do("find a function", [&] { return cuModuleGetFunction(&code.kernels.mix, code.module, "mix"); });
  code_.push_back(code);
}

void CudaProgram::UnloadCode() {
  if (code_.size() < 2 || !graphs_.empty()) return;
  const size_t index = Pick(code_.size());
  OpenAll();
  Do("unload a module", [&] { return cuModuleUnload(code_[index].module); });
  code_.erase(code_.begin() + static_cast<ptrdiff_t>(index));
}

Memory* CudaProgram::NewMemory(MemoryKind kind) {
  static constexpr size_t kSizes[] = {64, 300, 4096, 10000, 65536, 70001, 150000, 1 << 20, (1 << 20) + 4099};
  size_t size = kSizes[Pick(std::size(kSizes))];
  size_t width = 0;
  if (kind == MemoryKind::kArray) {
    width = 1 + Pick(300);
    size = width * (1 + Pick(200));
  }
  auto memory = std::make_unique<Memory>(kind, size, random_);
  memory->number = ++memories_made_;
  memory->width = width;
  memories_.push_back(std::move(memory));
  return memories_.back().get();
}

void CudaProgram::MakeMemory() {
  const auto kind = static_cast<MemoryKind>(Pick(kMemoryKinds));
  if (kind == MemoryKind::kManaged && !options_.mirrors) return;
  Memory& memory = *NewMemory(kind);
  const std::string name = std::string(Name(memory.kind)) + std::to_string(memory.number);
  void* host = nullptr;
  switch (memory.kind) {
    case MemoryKind::kDevice:
      Do("allocate " + name, [&] { return cuMemAlloc(&memory.device, memory.size); });
      break;
    case MemoryKind::kPooled: {
      Stream& stream = AnyStream();
      const Stamp stamp = Begin(stream);
      Do(
          "allocate " + name, [&] { return cuMemAllocAsync(&memory.device, memory.size, stream.handle); },
          stream.owner);
      memory.used.Use(0, memory.size, true, stamp);
      break;
    }
    case MemoryKind::kMapped: {
      CUmemAllocationProp properties{};
      properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
      properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
      CUmemAccessDesc access{};
      access.location = properties.location, access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
      Do("map " + name, [&] {
        size_t granularity = 0;
        CUmemGenericAllocationHandle handle = 0;
        CUresult result = cuMemGetAllocationGranularity(&granularity, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
        if (result != CUDA_SUCCESS) return result;
        memory.reserved = (memory.size + granularity - 1) / granularity * granularity;
        if ((result = cuMemAddressReserve(&memory.device, memory.reserved, 0, 0, 0)) != CUDA_SUCCESS) return result;
        if ((result = cuMemCreate(&handle, memory.reserved, &properties, 0)) != CUDA_SUCCESS) return result;
        if ((result = cuMemMap(memory.device, memory.reserved, 0, handle, 0)) != CUDA_SUCCESS) return result;
        if ((result = cuMemRelease(handle)) != CUDA_SUCCESS) return result;
        return cuMemSetAccess(memory.device, memory.reserved, &access, 1);
      });
      break;
    }
    case MemoryKind::kGlobal: {
      const std::string text = ModuleText(memory.size, static_cast<unsigned>(memory.number));
      size_t size = 0;
      Do("load " + name, [&] { return cuModuleLoadData(&memory.module, text.c_str()); });
      Do("find " + name, [&] { return cuModuleGetGlobal(&memory.device, &size, memory.module, "bytes"); });
      if (size != memory.size) Wrong("a variable's size");
      break;
    }
    case MemoryKind::kManaged:
      Do("allocate " + name, [&] { return cuMemAllocManaged(&memory.device, memory.size, CU_MEM_ATTACH_GLOBAL); });
      memory.host = reinterpret_cast<uint8_t*>(memory.device);
      break;
    case MemoryKind::kPinned:
      Do("allocate " + name, [&] {
        const CUresult result = cuMemHostAlloc(&host, memory.size, Chance(50) ? CU_MEMHOSTALLOC_DEVICEMAP : 0);
        if (result != CUDA_SUCCESS || !options_.mirrors) return result;
        return cuMemHostGetDevicePointer(&memory.device, host, 0);
      });
      memory.host = static_cast<uint8_t*>(host);
      break;
    case MemoryKind::kRegistered:
      host = aligned_alloc(4096, (memory.size + 4095) / 4096 * 4096);
      Do("register " + name, [&] {
        if (!options_.mirrors) return cuMemHostRegister(host, memory.size, 0);
        const CUresult result = cuMemHostRegister(host, memory.size, CU_MEMHOSTREGISTER_DEVICEMAP);
        return result != CUDA_SUCCESS ? result : cuMemHostGetDevicePointer(&memory.device, host, 0);
      });
      memory.host = static_cast<uint8_t*>(host);
      break;
    case MemoryKind::kPageable:
      memory.host = static_cast<uint8_t*>(malloc(memory.size));
      break;
    case MemoryKind::kArray: {
      CUDA_ARRAY_DESCRIPTOR descriptor{};
      descriptor.Width = memory.width, descriptor.Height = memory.size / memory.width;
      descriptor.Format = CU_AD_FORMAT_UNSIGNED_INT8, descriptor.NumChannels = 1;
      Do("make " + name, [&] { return cuArrayCreate(&memory.array, &descriptor); });
      break;
    }
  }
  // Nothing is read before it has been written.
  if (memory.host != nullptr) {
    WaitForIdle(memory);
    memset(memory.host, 0, memory.size);
    memory.used.Use(0, memory.size, true, host_.Tick(kTheHost));
    return;
  }
  const std::vector<uint8_t> zeros(memory.size);
  Stream& legacy = *streams_[0];
  OrderOnStream(legacy, {&memory, 0, memory.size, true});
  const Stamp stamp = Begin(legacy);
  OpenFor(legacy.clock);
  Do("clear " + name, [&] {
    if (memory.array == nullptr) return cuMemcpyHtoD(memory.device, zeros.data(), memory.size);
    CUDA_MEMCPY2D copy{};
    copy.srcMemoryType = CU_MEMORYTYPE_HOST, copy.srcHost = zeros.data(), copy.srcPitch = memory.width;
    copy.dstMemoryType = CU_MEMORYTYPE_ARRAY, copy.dstArray = memory.array;
    copy.WidthInBytes = memory.width, copy.Height = memory.size / memory.width;
    return cuMemcpy2D(&copy);
  });
  memory.used.Use(0, memory.size, true, stamp);
}

void CudaProgram::EndUses(Memory& memory) { OrderOnHost({&memory, 0, memory.size, true}); }

void CudaProgram::FreeMemory(size_t index) {
  Memory& memory = *memories_[index];
  if (memory.graphs != 0) return;
  const std::string name = std::string(Name(memory.kind)) + std::to_string(memory.number);
  if (memory.kind == MemoryKind::kPooled && Chance(70)) {
    Stream& stream = AnyStream();
    OrderOnStream(stream, {&memory, 0, memory.size, true});
    Begin(stream);
    Do(
        "free " + name, [&] { return cuMemFreeAsync(memory.device, stream.handle); }, stream.owner);
  } else {
    // Freeing a device's memory waits for what uses it.
    if (memory.kind != MemoryKind::kDevice || Chance(50)) EndUses(memory);
    if (memory.kind != MemoryKind::kPageable) OpenAll();
    Do("free " + name, [&] {
      switch (memory.kind) {
        case MemoryKind::kMapped: {
          CUresult result = cuMemUnmap(memory.device, memory.reserved);
          return result != CUDA_SUCCESS ? result : cuMemAddressFree(memory.device, memory.reserved);
        }
        case MemoryKind::kGlobal:
          return cuModuleUnload(memory.module);
        case MemoryKind::kPinned:
          return cuMemFreeHost(memory.host);
        case MemoryKind::kRegistered: {
          const CUresult result = cuMemHostUnregister(memory.host);
          free(memory.host);
          return result;
        }
        case MemoryKind::kPageable:
          free(memory.host);
          return CUDA_SUCCESS;
        case MemoryKind::kArray:
          return cuArrayDestroy(memory.array);
        default:
          return cuMemFree(memory.device);
      }
    });
  }
  memories_.erase(memories_.begin() + static_cast<ptrdiff_t>(index));
}

}  // namespace hawser::random
