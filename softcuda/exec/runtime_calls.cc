// SPDX-License-Identifier: Apache-2.0
// Calls of the CUDA device runtime (cuda_device_runtime_api.h). Since CUDA 12 compilers write them as __cudaCDP2Name,
// before that, and in PTX by hand, they are cudaName; those that take a stream have a second form with _ptsz behind it,
// for programs in which stream 0 is the thread's own. In a kernel, that and the block's are one stream.
//
// cudaDeviceSynchronize() is not among them: CUDA 12 has taken it from kernels.
#include <array>
#include <bit>
#include <string_view>

#include "softcuda/exec/decoder.h"
#include "softcuda/exec/system_calls.h"
#include "softcuda/exec/warp.h"

namespace hawser::exec {
namespace {

// CUDART_VERSION of the runtime that programs have beside them here (interposer/cudart).
constexpr uint32_t kRuntimeVersion = 13000;

// One thread's call.
struct Call {
  Warp& w;
  const Insn& i;
  uint32_t lane;
  KernelRuntime* runtime;  // Never null.

  uint64_t operator[](size_t index) const { return Argument(w, i, index, lane); }
  std::array<uint32_t, 3> Dimensions(size_t index) const {
    std::array<uint32_t, 3> of{};
    StructureArgument(w, i, index, lane, of.data(), sizeof(of));
    return of;
  }
  // Where a call puts its answer. Success also when the thread has faulted by it.
  template <typename T>
  int32_t Put(uint64_t address, T value) const {
    if (address == 0) return RuntimeError::kInvalidValue;
    char* const place = w.Resolve(i, ptx::Space::kNone, address, sizeof(T), true, lane);
    if (place != nullptr) std::memcpy(place, &value, sizeof(T));
    return 0;
  }
  ChildLaunch Child(size_t function, size_t grid) const {
    ChildLaunch launch;
    launch.kernel = w.launch().image->KernelAt((*this)[function]);
    launch.grid = Dimensions(grid);
    launch.block = Dimensions(grid + 1);
    launch.dynamic_shared_bytes = static_cast<uint32_t>((*this)[grid + 2]);
    return launch;
  }
  GridThread Thread() const {
    const auto& block = w.launch().config->block;
    return {w.block().number, w.tid_x[lane] + block[0] * (w.tid_y[lane] + block[1] * w.tid_z[lane])};
  }
};

using Function = int32_t (*)(const Call& call);

// For each lane: what `function` answers is the call's result, and the thread's last error.
template <Function function>
void Answer(Warp& w, const Insn& i, uint32_t mask) {
  KernelRuntime* const runtime = w.launch().config->runtime;
  for (; mask != 0 && !w.faulted(); mask &= mask - 1) {
    const auto lane = static_cast<uint32_t>(std::countr_zero(mask));
    int32_t error = RuntimeError::kNotSupported;
    if (runtime != nullptr) {
      const Call call{w, i, lane, runtime};
      error = function(call);
      if (error != 0) runtime->Note(call.Thread(), error);
    }
    SetResult(w, i, lane, static_cast<uint32_t>(error));
  }
}

// For each lane: the result is an address, 0 with the thread's last error.
template <int32_t (*function)(const Call& call, uint64_t* address)>
void Address(Warp& w, const Insn& i, uint32_t mask) {
  KernelRuntime* const runtime = w.launch().config->runtime;
  for (; mask != 0 && !w.faulted(); mask &= mask - 1) {
    const auto lane = static_cast<uint32_t>(std::countr_zero(mask));
    uint64_t address = 0;
    if (runtime != nullptr) {
      const Call call{w, i, lane, runtime};
      const int32_t error = function(call, &address);
      if (error != 0) runtime->Note(call.Thread(), error);
    }
    SetResult(w, i, lane, address);
  }
}

template <bool clear>
void LastError(Warp& w, const Insn& i, uint32_t mask) {
  KernelRuntime* const runtime = w.launch().config->runtime;
  for (; mask != 0; mask &= mask - 1) {
    const auto lane = static_cast<uint32_t>(std::countr_zero(mask));
    const int32_t error = runtime != nullptr ? runtime->LastError(Call{w, i, lane, runtime}.Thread(), clear) : 0;
    SetResult(w, i, lane, static_cast<uint32_t>(error));
  }
}

// (func, gridDimension, blockDimension, sharedMemSize)
int32_t GetParameterBufferV2(const Call& call, uint64_t* address) {
  const ChildLaunch launch = call.Child(0, 1);
  return call.runtime->Reserve(&launch, 0, address);
}
// (alignment, size); what is allocated is aligned for any parameter.
int32_t GetParameterBuffer(const Call& call, uint64_t* address) {
  return call.runtime->Reserve(nullptr, call[1], address);
}
// (parameterBuffer, stream)
int32_t LaunchDeviceV2(const Call& call) { return call.runtime->Launch(call[0], nullptr, call[1]); }
// (func, parameterBuffer, gridDimension, blockDimension, sharedMemSize, stream)
int32_t LaunchDevice(const Call& call) {
  const ChildLaunch launch = call.Child(0, 2);
  return call.runtime->Launch(call[1], &launch, call[5]);
}

template <int32_t (KernelRuntime::*make)(uint32_t, uint64_t*)>
int32_t Make(const Call& call) {
  if (call[0] == 0) return RuntimeError::kInvalidValue;
  uint64_t handle = 0;
  const int32_t error = (call.runtime->*make)(static_cast<uint32_t>(call[1]), &handle);
  return error != 0 ? error : call.Put(call[0], handle);
}
int32_t StreamDestroy(const Call& call) { return call.runtime->EndStream(call[0]); }
int32_t StreamWaitEvent(const Call& call) { return call.runtime->WaitForEvent(call[0], call[1]); }
int32_t EventRecord(const Call& call) { return call.runtime->RecordEvent(call[0], call[1]); }
int32_t EventDestroy(const Call& call) { return call.runtime->EndEvent(call[0]); }

// (dst, src, count, kind, stream)
int32_t MemcpyAsync(const Call& call) {
  ChildCopy copy;
  copy.target = call[0];
  copy.source = call[1];
  copy.width = call[2];
  return call.runtime->Copy(copy, call[4]);
}
// (dst, dpitch, src, spitch, width, height, kind, stream)
int32_t Memcpy2DAsync(const Call& call) {
  return call.runtime->Copy({call[0], call[1], call[2], call[3], call[4], call[5]}, call[7]);
}
// (devPtr, value, count, stream)
int32_t MemsetAsync(const Call& call) {
  ChildFill fill;
  fill.target = call[0];
  fill.value = static_cast<uint8_t>(call[1]);
  fill.width = call[2];
  return call.runtime->Fill(fill, call[3]);
}
// (devPtr, pitch, value, width, height, stream)
int32_t Memset2DAsync(const Call& call) {
  return call.runtime->Fill({call[0], call[1], static_cast<uint8_t>(call[2]), call[3], call[4]}, call[5]);
}

// Memory of kernels' malloc(), as the guide says.
int32_t Malloc(const Call& call) {
  DeviceHeap* const heap = call.w.launch().config->heap;
  const uint64_t size = call[1];
  const uint64_t address = heap != nullptr ? heap->Allocate(size) : 0;
  if (address == 0 && size != 0) return RuntimeError::kMemoryAllocation;
  return call.Put(call[0], address);
}
int32_t Free(const Call& call) {
  DeviceHeap* const heap = call.w.launch().config->heap;
  return call[0] == 0 || (heap != nullptr && heap->Free(call[0])) ? 0 : RuntimeError::kInvalidValue;
}

int32_t GetDevice(const Call& call) { return call.Put(call[0], call.runtime->Device()); }
int32_t GetDeviceCount(const Call& call) { return call.Put(call[0], call.runtime->DeviceCount()); }
int32_t RuntimeGetVersion(const Call& call) { return call.Put(call[0], kRuntimeVersion); }
int32_t DeviceGetAttribute(const Call& call) {
  int32_t value = 0;
  const int32_t error =
      call.runtime->DeviceAttribute(static_cast<int32_t>(call[1]), static_cast<int32_t>(call[2]), &value);
  return error != 0 ? error : call.Put(call[0], value);
}
int32_t DeviceGetLimit(const Call& call) {
  uint64_t value = 0;
  const int32_t error = call.runtime->Limit(static_cast<int32_t>(call[1]), &value);
  return error != 0 ? error : call.Put(call[0], value);
}

constexpr uint32_t kDim3 = 12;

struct RuntimeCall {
  std::string_view name;
  SystemCall call;
  bool takes_stream = false;  // There is a second name.
};

constexpr std::array kCalls = {
    RuntimeCall{"DeviceGetAttribute", {Answer<DeviceGetAttribute>, 3, {}}},
    RuntimeCall{"DeviceGetLimit", {Answer<DeviceGetLimit>, 2, {}}},
    RuntimeCall{"EventCreateWithFlags", {Answer<Make<&KernelRuntime::NewEvent>>, 2, {}}},
    RuntimeCall{"EventDestroy", {Answer<EventDestroy>, 1, {}}},
    RuntimeCall{"EventRecord", {Answer<EventRecord>, 2, {}}, true},
    RuntimeCall{"EventRecordWithFlags", {Answer<EventRecord>, 3, {}}, true},
    RuntimeCall{"Free", {Answer<Free>, 1, {}}},
    RuntimeCall{"GetDevice", {Answer<GetDevice>, 1, {}}},
    RuntimeCall{"GetDeviceCount", {Answer<GetDeviceCount>, 1, {}}},
    RuntimeCall{"GetLastError", {LastError<true>, 0, {}}},
    RuntimeCall{"GetParameterBuffer", {Address<GetParameterBuffer>, 2, {}}},
    RuntimeCall{"GetParameterBufferV2", {Address<GetParameterBufferV2>, 4, {0, kDim3, kDim3}}},
    RuntimeCall{"LaunchDevice", {Answer<LaunchDevice>, 6, {0, 0, kDim3, kDim3}}, true},
    RuntimeCall{"LaunchDeviceV2", {Answer<LaunchDeviceV2>, 2, {}}, true},
    RuntimeCall{"Malloc", {Answer<Malloc>, 2, {}}},
    RuntimeCall{"Memcpy2DAsync", {Answer<Memcpy2DAsync>, 8, {}}, true},
    RuntimeCall{"MemcpyAsync", {Answer<MemcpyAsync>, 5, {}}, true},
    RuntimeCall{"Memset2DAsync", {Answer<Memset2DAsync>, 6, {}}, true},
    RuntimeCall{"MemsetAsync", {Answer<MemsetAsync>, 4, {}}, true},
    RuntimeCall{"PeekAtLastError", {LastError<false>, 0, {}}},
    RuntimeCall{"RuntimeGetVersion", {Answer<RuntimeGetVersion>, 1, {}}},
    RuntimeCall{"StreamCreateWithFlags", {Answer<Make<&KernelRuntime::NewStream>>, 2, {}}},
    RuntimeCall{"StreamDestroy", {Answer<StreamDestroy>, 1, {}}},
    RuntimeCall{"StreamWaitEvent", {Answer<StreamWaitEvent>, 3, {}}, true},
};

bool TakeAway(std::string_view* name, std::string_view prefix) {
  if (!name->starts_with(prefix)) return false;
  name->remove_prefix(prefix.size());
  return true;
}

}  // namespace

const SystemCall* FindRuntimeCall(std::string_view name) {
  constexpr std::string_view kPerThread = "_ptsz";
  if (!TakeAway(&name, "__cudaCDP2") && !TakeAway(&name, "cuda")) return nullptr;
  const bool per_thread = name.ends_with(kPerThread);
  if (per_thread) name.remove_suffix(kPerThread.size());
  for (const RuntimeCall& known : kCalls) {
    if (known.name == name && (!per_thread || known.takes_stream)) return &known.call;
  }
  return nullptr;
}

}  // namespace hawser::exec
