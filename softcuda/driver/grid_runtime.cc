// SPDX-License-Identifier: Apache-2.0
#include "softcuda/driver/grid_runtime.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <variant>

#include "softcuda/driver/context.h"
#include "softcuda/driver/driver.h"
#include "softcuda/driver/module_store.h"
#include "softcuda/driver/occupancy.h"

namespace hawser::soft {
namespace {

using Error = exec::RuntimeError;

// Of cudaStream_t, in a kernel: the block's own, by three names, and two that are every thread's.
constexpr uint64_t kPerThreadStream = 2;
constexpr uint64_t kTailLaunch = 3;
constexpr uint64_t kFireAndForget = 4;

constexpr uint32_t kNonBlocking = 1;    // cudaStreamNonBlocking
constexpr uint32_t kDisableTiming = 2;  // cudaEventDisableTiming

size_t ParameterBytes(const Work& work) {
  const auto* const kernel = std::get_if<KernelWork>(&work);
  return kernel != nullptr ? kernel->parameters.size() : 0;
}

}  // namespace

bool PendingWork::Add(const Work& work) {
  const size_t bytes = ParameterBytes(work);
  const size_t count = count_.fetch_add(1, std::memory_order_relaxed) + 1;
  const size_t all_bytes = bytes_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  if (count <= kMaxCount && all_bytes <= kMaxBytes) return true;
  Remove(work);
  return false;
}

void PendingWork::Remove(const Work& work) {
  count_.fetch_sub(1, std::memory_order_relaxed);
  bytes_.fetch_sub(ParameterBytes(work), std::memory_order_relaxed);
}

GridRuntime::GridRuntime(const KernelWork& parent, Context* context, PendingWork* pending, int depth)
    : parent_(parent), context_(context), pending_(pending), depth_(depth) {}

GridRuntime::~GridRuntime() {
  // What was reserved and never launched.
  for (const auto& [address, reserved] : reserved_) context_->heap()->Free(address);
}

int32_t GridRuntime::Build(const exec::ChildLaunch& launch, KernelWork* work) const {
  const ModulePtr module = parent_.function->module.lock();
  if (module == nullptr || launch.kernel < 0 || static_cast<size_t>(launch.kernel) >= module->functions.size()) {
    return Error::kInvalidDeviceFunction;
  }
  work->function = module->functions[static_cast<size_t>(launch.kernel)];
  work->handle = work->function->handle;
  work->grid = launch.grid;
  work->block = launch.block;
  work->shared_bytes = launch.dynamic_shared_bytes;
  const soft::Device& device = *context_->device();
  const bool good = ChooseCluster(device, {}, work) == CUDA_SUCCESS && CheckLaunch(device, *work) == CUDA_SUCCESS;
  return good ? 0 : Error::kInvalidConfiguration;
}

int32_t GridRuntime::Reserve(const exec::ChildLaunch* launch, uint64_t bytes, uint64_t* address) {
  Reserved reserved;
  if (launch != nullptr) {
    if (const int32_t error = Build(*launch, &reserved.work); error != 0) return error;
    reserved.known = true;
    bytes = reserved.work.function->info().parameter_bytes;
  }
  reserved.bytes = bytes;
  exec::DeviceHeap* const heap = context_->heap();
  const std::lock_guard lock(mutex_);
  if (heap == nullptr || reserved_.size() >= kMaxOpen) return Error::kLaunchOutOfResources;
  *address = heap->Allocate(std::max<uint64_t>(bytes, 1));
  if (*address == 0) return Error::kLaunchOutOfResources;
  reserved_.emplace(*address, std::move(reserved));
  return 0;
}

int32_t GridRuntime::Launch(uint64_t address, const exec::ChildLaunch* launch, uint64_t stream) {
  KernelWork work;
  if (launch != nullptr) {
    if (const int32_t error = Build(*launch, &work); error != 0) return error;
  }
  const std::lock_guard lock(mutex_);
  const auto found = reserved_.find(address);
  if (found == reserved_.end() || (launch == nullptr && !found->second.known)) return Error::kInvalidValue;
  if (!IsStream(stream)) return Error::kInvalidResourceHandle;
  if (launch == nullptr) work = std::move(found->second.work);
  const uint64_t bytes = work.function->info().parameter_bytes;
  const uint64_t reserved = found->second.bytes;
  reserved_.erase(found);
  const auto* const begin = reinterpret_cast<const uint8_t*>(address);
  if (reserved >= bytes) work.parameters.assign(begin, begin + bytes);
  context_->heap()->Free(address);
  if (reserved < bytes) return Error::kInvalidValue;
  // What is in the tail stream follows its parent instead of being below it.
  if (stream != kTailLaunch && depth_ + 1 >= kMaxDepth) return Error::kLaunchMaxDepthExceeded;
  return Add(std::move(work), stream);
}

namespace {

/// What a kernel gives is anything: a box that is larger than the address space would look small, and be carried out.
int32_t CheckBox(uint64_t pitch, uint64_t width, uint64_t height) {
  if (height > 1 && pitch < width) return Error::kInvalidPitchValue;
  uint64_t bytes = 0;
  const bool too_large = __builtin_mul_overflow(height - 1, pitch, &bytes) ||
                         __builtin_add_overflow(bytes, width, &bytes) || bytes > uint64_t{1} << 47;
  return too_large ? Error::kInvalidValue : 0;
}

}  // namespace

int32_t GridRuntime::Copy(const exec::ChildCopy& copy, uint64_t stream) {
  if (copy.width == 0 || copy.height == 0) return 0;
  for (const uint64_t pitch : {copy.target_pitch, copy.source_pitch}) {
    if (const int32_t error = CheckBox(pitch, copy.width, copy.height); error != 0) return error;
  }
  CopyWork work;
  CUDA_MEMCPY3D& box = work.copy;
  box.srcMemoryType = box.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  box.srcDevice = copy.source;
  box.srcPitch = copy.source_pitch;
  box.dstDevice = copy.target;
  box.dstPitch = copy.target_pitch;
  box.srcHeight = box.dstHeight = box.Height = copy.height;
  box.WidthInBytes = copy.width;
  box.Depth = 1;
  work.known_source = work.known_target = true;
  const std::lock_guard lock(mutex_);
  return Add(std::move(work), stream);
}

int32_t GridRuntime::Fill(const exec::ChildFill& fill, uint64_t stream) {
  if (fill.width == 0 || fill.height == 0) return 0;
  if (const int32_t error = CheckBox(fill.pitch, fill.width, fill.height); error != 0) return error;
  MemsetWork work;
  work.set.dst = fill.target;
  work.set.pitch = fill.pitch;
  work.set.value = fill.value;
  work.set.elementSize = 1;
  work.set.width = fill.width;
  work.set.height = fill.height;
  const std::lock_guard lock(mutex_);
  return Add(work, stream);
}

bool GridRuntime::IsStream(uint64_t stream) const { return stream <= kFireAndForget || streams_.contains(stream); }

int32_t GridRuntime::Add(Work work, uint64_t stream) {
  if (!IsStream(stream)) return Error::kInvalidResourceHandle;
  if (!pending_->Add(work)) return Error::kLaunchOutOfResources;
  (stream == kTailLaunch ? tails_ : children_).push_back(std::move(work));
  return 0;
}

int32_t GridRuntime::New(Handles* handles, bool good, uint64_t* handle) {
  if (!good) return Error::kInvalidValue;
  const std::lock_guard lock(mutex_);
  *handle = next_handle_++;
  handles->insert(*handle);
  return 0;
}

int32_t GridRuntime::End(Handles* handles, uint64_t handle) {
  const std::lock_guard lock(mutex_);
  return handles->erase(handle) != 0 ? 0 : Error::kInvalidResourceHandle;
}

int32_t GridRuntime::NewStream(uint32_t flags, uint64_t* stream) {
  return New(&streams_, flags == kNonBlocking, stream);
}

int32_t GridRuntime::EndStream(uint64_t stream) { return End(&streams_, stream); }

int32_t GridRuntime::NewEvent(uint32_t flags, uint64_t* event) { return New(&events_, flags == kDisableTiming, event); }

int32_t GridRuntime::EndEvent(uint64_t event) { return End(&events_, event); }

int32_t GridRuntime::RecordEvent(uint64_t event, uint64_t stream) {
  if (stream > kPerThreadStream && stream <= kFireAndForget) return Error::kInvalidValue;
  const std::lock_guard lock(mutex_);
  return events_.contains(event) && IsStream(stream) ? 0 : Error::kInvalidResourceHandle;
}

int32_t GridRuntime::WaitForEvent(uint64_t stream, uint64_t event) { return RecordEvent(event, stream); }

int32_t GridRuntime::DeviceCount() const { return static_cast<int32_t>(GetDriver()->devices.size()); }

int32_t GridRuntime::Device() const { return context_->device()->ordinal(); }

int32_t GridRuntime::DeviceAttribute(int32_t attribute, int32_t device, int32_t* value) const {
  if (device < 0 || device >= DeviceCount()) return Error::kInvalidDevice;
  const soft::Device& asked = *GetDriver()->devices[static_cast<size_t>(device)];
  return asked.Attribute(static_cast<CUdevice_attribute>(attribute), value) == CUDA_SUCCESS ? 0 : Error::kInvalidValue;
}

int32_t GridRuntime::Limit(int32_t limit, uint64_t* value) const {
  size_t size = 0;
  if (context_->GetLimit(static_cast<CUlimit>(limit), &size) != CUDA_SUCCESS) return Error::kUnsupportedLimit;
  *value = size;
  return 0;
}

namespace {
uint64_t KeyOf(const exec::GridThread& thread) {
  return thread.block << 10 | thread.thread;
}  // At most 1024 in a block.
}  // namespace

int32_t GridRuntime::LastError(const exec::GridThread& thread, bool clear) {
  if (!has_errors_.load(std::memory_order_relaxed)) return 0;
  const std::lock_guard lock(mutex_);
  const auto found = errors_.find(KeyOf(thread));
  if (found == errors_.end()) return 0;
  const int32_t error = found->second;
  if (clear) errors_.erase(found);
  return error;
}

void GridRuntime::Note(const exec::GridThread& thread, int32_t error) {
  const std::lock_guard lock(mutex_);
  // A grid of any size may fail in all its threads; what is kept is bounded.
  if (errors_.size() >= kMaxOpen && !errors_.contains(KeyOf(thread))) return;
  errors_[KeyOf(thread)] = error;
  has_errors_.store(true, std::memory_order_relaxed);
}

}  // namespace hawser::soft
