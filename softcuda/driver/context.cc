// SPDX-License-Identifier: Apache-2.0
#include "softcuda/driver/context.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "softcuda/driver/driver.h"
#include "softcuda/driver/thread_state.h"

namespace hawser::soft {
namespace {

uint64_t NextContextId() {
  static std::atomic<uint64_t> next{1};
  return next.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

void PrintBuffer::Write(std::string_view text) {
  const std::lock_guard lock(mutex_);
  // The oldest output goes when the buffer is full, as with a device's.
  text_.append(text);
  const size_t capacity = capacity_;
  if (text_.size() > capacity) text_.erase(0, text_.size() - capacity);
}

void PrintBuffer::Flush() {
  std::string text;
  {
    const std::lock_guard lock(mutex_);
    text.swap(text_);
  }
  if (text.empty()) return;
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

Context::Context(Device* device, unsigned initial_flags, bool primary)
    : flags(initial_flags), device_(device), primary_(primary), id_(NextContextId()) {
  limits_ = {{CU_LIMIT_STACK_SIZE, 1024},
             {CU_LIMIT_PRINTF_FIFO_SIZE, size_t{1} << 20},
             {CU_LIMIT_MALLOC_HEAP_SIZE, size_t{8} << 20},
             {CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH, 2},
             {CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT, 2048},
             {CU_LIMIT_MAX_L2_FETCH_GRANULARITY, 128},
             {CU_LIMIT_PERSISTING_L2_CACHE_SIZE, 0}};
}

Context::~Context() = default;

StreamPtr Context::legacy_stream() {
  {
    const std::lock_guard lock(mutex);
    if (legacy_ != nullptr) return legacy_;
  }
  auto stream = std::make_shared<Stream>(shared_from_this(), 0, 0);
  stream->legacy = true;
  const std::lock_guard lock(mutex);
  if (legacy_ != nullptr) return legacy_;  // Another thread was faster; ours goes when the lock is free again.
  legacy_ = stream;
  streams_.push_back(stream.get());
  return stream;
}

StreamPtr Context::thread_stream() {
  const uint64_t number = ThisThread().number;
  {
    const std::lock_guard lock(mutex);
    const auto found = per_thread_.find(number);
    if (found != per_thread_.end()) return found->second;
  }
  auto stream = std::make_shared<Stream>(shared_from_this(), 0, 0);
  const std::lock_guard lock(mutex);
  per_thread_[number] = stream;
  streams_.push_back(stream.get());
  return stream;
}

void Context::AddStream(const StreamPtr& stream) {
  const std::lock_guard lock(mutex);
  streams_.push_back(stream.get());
}

void Context::RemoveStream(const Stream* stream) {
  Driver* const driver = GetDriver();
  const std::lock_guard lock(mutex);
  std::erase(streams_, stream);
  if (driver == nullptr) return;
  std::erase_if(orphans_, [driver](const Orphan& orphan) { return driver->queue.Done(orphan.tail); });
  if (!driver->queue.Done(stream->tail)) orphans_.push_back({stream->tail, stream->blocking()});
}

std::vector<OperationPtr> Context::Dependencies(const Stream& stream) {
  std::vector<OperationPtr> after{stream.tail};
  if (standstill != nullptr) after.push_back(standstill);
  if (held != nullptr && GetDriver()->queue.Done(held)) held = nullptr;
  if (held != nullptr) after.push_back(held);
  if (stream.legacy) {
    for (const Stream* other : streams_) {
      if (other->blocking()) after.push_back(other->tail);
    }
    for (const Orphan& orphan : orphans_) {
      if (orphan.blocking) after.push_back(orphan.tail);
    }
  } else if (stream.blocking() && legacy_ != nullptr) {
    after.push_back(legacy_->tail);
  }
  return after;
}

std::vector<OperationPtr> Context::AllTails() {
  std::vector<OperationPtr> tails;
  tails.reserve(streams_.size());
  for (const Stream* stream : streams_) tails.push_back(stream->tail);
  for (const Orphan& orphan : orphans_) tails.push_back(orphan.tail);
  return tails;
}

void Context::Drain() {
  Queue& queue = GetDriver()->queue;
  OperationPtr all;
  {
    const std::lock_guard lock(mutex);
    all = queue.Submit(nullptr, AllTails());
  }
  queue.Wait(all);
}

CUresult Context::Synchronize() {
  Drain();
  print.Flush();
  return error();
}

void Context::Fail(CUresult error) {
  int none = CUDA_SUCCESS;
  error_.compare_exchange_strong(none, error, std::memory_order_acq_rel);
}

void Context::Destroy() {
  if (destroyed_.exchange(true)) return;
  cancelled_.store(true);
  Drain();
  print.Flush();
  Driver* const driver = GetDriver();
  if (driver == nullptr) return;
  const auto mine = [this](const std::weak_ptr<Context>& owner) { return owner.lock().get() == this; };
  for (const ModulePtr& module : driver->modules.RemoveIf([&](const Module& m) { return mine(m.context); })) {
    UnloadModule(module);
  }
  driver->streams.RemoveIf([&](const Stream& stream) { return mine(stream.context); });
  driver->events.RemoveIf([&](const Event& event) { return mine(event.context); });
  driver->arrays.RemoveIf([this](const Array& array) { return array.context == handle; });
  driver->external_memory.RemoveIf([this](const ExternalMemory& memory) { return memory.context == handle; });
  const uint64_t self = handle;
  const auto owned =
      driver->memory.Select([self](const Allocation& a) { return a.context == self && a.kind != MemoryKind::kMapped; });
  for (const AllocationPtr& allocation : owned) driver->Release(allocation);
  StreamPtr legacy;
  std::map<uint64_t, StreamPtr> per_thread;
  {
    const std::lock_guard lock(mutex);
    legacy.swap(legacy_);
    per_thread.swap(per_thread_);
  }
}

exec::DeviceHeap* Context::heap() {
  size_t size = 0;
  GetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, &size);
  const std::lock_guard lock(heap_mutex_);
  if (heap_tried_) return heap_.get();
  heap_tried_ = true;
  AllocationPtr region;
  if (GetDriver()->Allocate(device_, size, 0, MemoryKind::kModule, handle, &region) != CUDA_SUCCESS) return nullptr;
  heap_ = std::make_unique<exec::DeviceHeap>(region->begin, region->size);
  return heap_.get();
}

CUresult Context::SetLimit(CUlimit limit, size_t value) {
  {
    const std::lock_guard lock(heap_mutex_);
    if (limit == CU_LIMIT_MALLOC_HEAP_SIZE && heap_ != nullptr) return CUDA_ERROR_INVALID_VALUE;
  }
  const std::lock_guard lock(mutex);
  const auto found = limits_.find(limit);
  if (found == limits_.end()) return CUDA_ERROR_UNSUPPORTED_LIMIT;
  if (limit == CU_LIMIT_STACK_SIZE && value > (size_t{512} << 10)) return CUDA_ERROR_INVALID_VALUE;
  if (limit == CU_LIMIT_MALLOC_HEAP_SIZE) value = std::max(value, size_t{1} << 20);
  if (limit == CU_LIMIT_MAX_L2_FETCH_GRANULARITY && value > 128) return CUDA_ERROR_INVALID_VALUE;
  if (limit == CU_LIMIT_PRINTF_FIFO_SIZE) print.set_capacity(std::max(value, size_t{4096}));
  if (limit != CU_LIMIT_PERSISTING_L2_CACHE_SIZE) found->second = value;  // There is no such cache: it stays 0.
  return CUDA_SUCCESS;
}

CUresult Context::GetLimit(CUlimit limit, size_t* value) {
  const std::lock_guard lock(mutex);
  const auto found = limits_.find(limit);
  if (found == limits_.end()) return CUDA_ERROR_UNSUPPORTED_LIMIT;
  *value = found->second;
  return CUDA_SUCCESS;
}

uint32_t Context::stack_bytes() {
  size_t bytes = 0;
  GetLimit(CU_LIMIT_STACK_SIZE, &bytes);
  return std::max(device_->properties().stack_bytes, static_cast<uint32_t>(bytes));
}

}  // namespace hawser::soft
