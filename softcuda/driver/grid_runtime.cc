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

// Of cudaError_t (driver_types.h).
constexpr int32_t kInvalidValue = 1;
constexpr int32_t kInvalidConfiguration = 9;
constexpr int32_t kInvalidPitch = 12;
constexpr int32_t kMaxDepthExceeded = 65;
constexpr int32_t kInvalidDeviceFunction = 98;
constexpr int32_t kInvalidDevice = 101;
constexpr int32_t kUnsupportedLimit = 215;
constexpr int32_t kInvalidHandle = 400;
constexpr int32_t kOutOfResources = 701;

// Of cudaStream_t, in a kernel: the block's own, by three names, and two that are every thread's.
constexpr uint64_t kPerThreadStream = 2;
constexpr uint64_t kTailLaunch = 3;
constexpr uint64_t kFireAndForget = 4;

constexpr uint32_t kNonBlocking = 1;    // cudaStreamNonBlocking
constexpr uint32_t kDisableTiming = 2;  // cudaEventDisableTiming

}  // namespace

namespace {
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
    return kInvalidDeviceFunction;
  }
  work->function = module->functions[static_cast<size_t>(launch.kernel)];
  work->handle = work->function->handle;
  work->grid = launch.grid;
  work->block = launch.block;
  work->shared_bytes = launch.dynamic_shared_bytes;
  const soft::Device& device = *context_->device();
  const bool good = ChooseCluster(device, {}, work) == CUDA_SUCCESS && CheckLaunch(device, *work) == CUDA_SUCCESS;
  return good ? 0 : kInvalidConfiguration;
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
  if (heap == nullptr || reserved_.size() >= kMaxOpen) return kOutOfResources;
  *address = heap->Allocate(std::max<uint64_t>(bytes, 1));
  if (*address == 0) return kOutOfResources;
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
  if (found == reserved_.end() || (launch == nullptr && !found->second.known)) return kInvalidValue;
  if (!IsStream(stream)) return kInvalidHandle;
  if (launch == nullptr) work = std::move(found->second.work);
  const uint64_t bytes = work.function->info().parameter_bytes;
  const uint64_t reserved = found->second.bytes;
  reserved_.erase(found);
  const auto* const begin = reinterpret_cast<const uint8_t*>(address);
  if (reserved >= bytes) work.parameters.assign(begin, begin + bytes);
  context_->heap()->Free(address);
  if (reserved < bytes) return kInvalidValue;
  // What is in the tail stream follows its parent instead of being below it.
  if (stream != kTailLaunch && depth_ + 1 >= kMaxDepth) return kMaxDepthExceeded;
  return Add(std::move(work), stream);
}

namespace {

/// What a kernel gives is anything: a box that is larger than the address space would look small, and be carried out.
int32_t CheckBox(uint64_t pitch, uint64_t width, uint64_t height) {
  if (height > 1 && pitch < width) return kInvalidPitch;
  uint64_t bytes = 0;
  const bool too_large = __builtin_mul_overflow(height - 1, pitch, &bytes) ||
                         __builtin_add_overflow(bytes, width, &bytes) || bytes > uint64_t{1} << 47;
  return too_large ? kInvalidValue : 0;
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
  if (!IsStream(stream)) return kInvalidHandle;
  if (!pending_->Add(work)) return kOutOfResources;
  (stream == kTailLaunch ? tails_ : children_).push_back(std::move(work));
  return 0;
}

int32_t GridRuntime::NewStream(uint32_t flags, uint64_t* stream) {
  if (flags != kNonBlocking) return kInvalidValue;
  const std::lock_guard lock(mutex_);
  *stream = next_handle_++;
  streams_.insert(*stream);
  return 0;
}

int32_t GridRuntime::EndStream(uint64_t stream) {
  const std::lock_guard lock(mutex_);
  return streams_.erase(stream) != 0 ? 0 : kInvalidHandle;
}

int32_t GridRuntime::NewEvent(uint32_t flags, uint64_t* event) {
  if (flags != kDisableTiming) return kInvalidValue;
  const std::lock_guard lock(mutex_);
  *event = next_handle_++;
  events_.insert(*event);
  return 0;
}

int32_t GridRuntime::EndEvent(uint64_t event) {
  const std::lock_guard lock(mutex_);
  return events_.erase(event) != 0 ? 0 : kInvalidHandle;
}

int32_t GridRuntime::RecordEvent(uint64_t event, uint64_t stream) {
  if (stream > kPerThreadStream && stream <= kFireAndForget) return kInvalidValue;
  const std::lock_guard lock(mutex_);
  return events_.contains(event) && IsStream(stream) ? 0 : kInvalidHandle;
}

int32_t GridRuntime::WaitForEvent(uint64_t stream, uint64_t event) { return RecordEvent(event, stream); }

int32_t GridRuntime::DeviceCount() const { return static_cast<int32_t>(GetDriver()->devices.size()); }

int32_t GridRuntime::Device() const { return context_->device()->ordinal(); }

int32_t GridRuntime::DeviceAttribute(int32_t attribute, int32_t device, int32_t* value) const {
  if (device < 0 || device >= DeviceCount()) return kInvalidDevice;
  const soft::Device& asked = *GetDriver()->devices[static_cast<size_t>(device)];
  return asked.Attribute(static_cast<CUdevice_attribute>(attribute), value) == CUDA_SUCCESS ? 0 : kInvalidValue;
}

int32_t GridRuntime::Limit(int32_t limit, uint64_t* value) const {
  size_t size = 0;
  if (context_->GetLimit(static_cast<CUlimit>(limit), &size) != CUDA_SUCCESS) return kUnsupportedLimit;
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
  if (errors_.size() >= kMaxOpen) return;
  errors_[KeyOf(thread)] = error;
  has_errors_.store(true, std::memory_order_relaxed);
}

}  // namespace hawser::soft
