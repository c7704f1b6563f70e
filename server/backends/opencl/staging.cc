// SPDX-License-Identifier: Apache-2.0
#include "server/backends/opencl/staging.h"

#include <cstdlib>
#include <new>
#include <utility>

namespace hawser::server::ocl {
namespace {

constexpr uint64_t kAlignment = 128;  // The largest of OpenCL's types.

}  // namespace

StagingPool::~StagingPool() {
  for (size_t i = 0; i < kSizes.size(); ++i) {
    for (Block* list : {free_[i], returned_[i].exchange(nullptr, std::memory_order_acquire)}) {
      while (list != nullptr) Free(std::exchange(list, list->next));
    }
  }
}

StagingPool::Owned StagingPool::Acquire(uint64_t size) {
  size_t size_class = 0;
  while (size_class < kSizes.size() && kSizes[size_class] < size) ++size_class;
  const bool pooled = size_class < kSizes.size();
  if (size > UINT64_MAX - kAlignment) return nullptr;
  const uint64_t capacity = pooled ? kSizes[size_class] : (size + kAlignment - 1) / kAlignment * kAlignment;
  // Only this thread adds, so nobody else can pass the limit in between.
  const uint64_t limit = limit_.load(std::memory_order_relaxed);
  if (capacity > limit || in_use_.load(std::memory_order_relaxed) > limit - capacity) return nullptr;

  Block* block = nullptr;
  if (pooled) {
    if (free_[size_class] == nullptr)
      free_[size_class] = returned_[size_class].exchange(nullptr, std::memory_order_acquire);
    block = free_[size_class];
    if (block != nullptr) {
      free_[size_class] = block->next;
      kept_[size_class].fetch_sub(1, std::memory_order_relaxed);
    }
  }
  if (block == nullptr) {
    auto* data = static_cast<std::byte*>(std::aligned_alloc(kAlignment, capacity));
    if (data == nullptr) return nullptr;
    block = new (std::nothrow) Block;
    if (block == nullptr) {
      std::free(data);
      return nullptr;
    }
    block->data = data;
    block->capacity = capacity;
    block->pool = this;
    block->size_class = size_class;
  }
  in_use_.fetch_add(capacity, std::memory_order_relaxed);
  return Owned(block);
}

void StagingPool::Release(Block* block) {
  StagingPool* pool = block->pool;
  const size_t size_class = block->size_class;
  const uint64_t capacity = block->capacity;
  if (size_class >= kSizes.size() ||
      pool->kept_[size_class].fetch_add(1, std::memory_order_relaxed) >= kKept[size_class]) {
    if (size_class < kSizes.size()) pool->kept_[size_class].fetch_sub(1, std::memory_order_relaxed);
    Free(block);
    pool->in_use_.fetch_sub(capacity, std::memory_order_release);
    return;
  }
  // One thread pops, and it takes the whole list: no block can come back in between (no ABA).
  block->next = pool->returned_[size_class].load(std::memory_order_relaxed);
  while (!pool->returned_[size_class].compare_exchange_weak(block->next, block, std::memory_order_release,
                                                            std::memory_order_relaxed)) {
  }
  pool->in_use_.fetch_sub(capacity, std::memory_order_release);
}

void StagingPool::Free(Block* block) {
  std::free(block->data);
  delete block;
}

}  // namespace hawser::server::ocl
