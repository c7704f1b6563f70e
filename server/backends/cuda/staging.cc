// SPDX-License-Identifier: Apache-2.0
#include "server/backends/cuda/staging.h"

#include <sys/mman.h>

#include <bit>

namespace hawser::server::cuda_backend {
namespace {

/// Free blocks are kept up to so many bytes; registering memory costs more than copying it.
constexpr uint64_t kKeep = 256u << 20;

}  // namespace

StagingPool::~StagingPool() {
  for (size_t i = 0; i < kClasses; ++i) {
    for (std::byte* data : free_[i]) Drop(data, kSmallest << i, !retired_);
  }
}

void StagingPool::Trim() {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (size_t i = 0; i < kClasses; ++i) {
    const uint64_t capacity = kSmallest << i;
    for (std::byte* data : free_[i]) {
      if (retired_ || !budget_->Leave(capacity)) {
        Drop(data, capacity, !retired_);
        continue;
      }
      disposals_->Add(context_, [driver = driver_, budget = budget_, data, capacity] {
        (void)driver->cuMemHostUnregister(data);
        ::munmap(data, capacity);
        budget->Left(capacity);
      });
    }
    free_[i].clear();
  }
  kept_ = 0;
}

StagingPool::Block StagingPool::Take(uint64_t size) {
  if (size > kSmallest << (kClasses - 1)) return {};
  const uint64_t rounded = std::bit_ceil(size < kSmallest ? kSmallest : size);
  const size_t index = static_cast<size_t>(std::countr_zero(rounded) - std::countr_zero(kSmallest));
  bool too_many = false;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!free_[index].empty()) {
      std::byte* data = free_[index].back();
      free_[index].pop_back();
      kept_ -= rounded;
      return Block(shared_from_this(), data, rounded);
    }
    too_many = kept_ > kKeep;
  }
  if (too_many) Trim();
  if (!budget_->Take(rounded)) {
    Trim();
    if (!budget_->Take(rounded)) return {};
  }
  void* memory = ::mmap(nullptr, rounded, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    budget_->Give(rounded);
    return {};
  }
  if (driver_->cuMemHostRegister(memory, rounded, CU_MEMHOSTREGISTER_PORTABLE) != CUDA_SUCCESS) {
    ::munmap(memory, rounded);
    budget_->Give(rounded);
    return {};
  }
  return Block(shared_from_this(), static_cast<std::byte*>(memory), rounded);
}

void StagingPool::Return(std::byte* data, uint64_t capacity) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (retired_) return Drop(data, capacity, false);
  // The thread that gives a block back may have no context, so nothing is unregistered here, but in Take().
  free_[static_cast<size_t>(std::countr_zero(capacity) - std::countr_zero(kSmallest))].push_back(data);
  kept_ += capacity;
}

void StagingPool::Retire() {
  const std::lock_guard<std::mutex> lock(mutex_);
  retired_ = true;
  for (size_t i = 0; i < kClasses; ++i) {
    for (std::byte* data : free_[i]) Drop(data, kSmallest << i, false);
    free_[i].clear();
  }
  kept_ = 0;
}

void StagingPool::Drop(std::byte* data, uint64_t capacity, bool registered) {
  if (registered) (void)driver_->cuMemHostUnregister(data);
  ::munmap(data, capacity);
  budget_->Give(capacity);
}

}  // namespace hawser::server::cuda_backend
