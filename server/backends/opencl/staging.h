// SPDX-License-Identifier: Apache-2.0
// Host memory for data on its way to or from the device.
#ifndef HAWSER_SERVER_BACKENDS_OPENCL_STAGING_H_
#define HAWSER_SERVER_BACKENDS_OPENCL_STAGING_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace hawser::server::ocl {

/// Blocks of a few sizes, kept for reuse, and larger ones that are allocated each time. What is in use never
/// exceeds the limit.
///
/// Threading: one thread acquires (the executor); any thread releases, without a lock.
class StagingPool {
 public:
  struct Block {
    std::byte* data = nullptr;
    uint64_t capacity = 0;

   private:
    friend class StagingPool;
    StagingPool* pool = nullptr;
    Block* next = nullptr;
    size_t size_class = 0;
  };
  struct Releaser {
    void operator()(Block* block) const { Release(block); }
  };
  using Owned = std::unique_ptr<Block, Releaser>;

  /// The size of the blocks that small writes share.
  static constexpr uint64_t kSlab = 256u << 10;

  explicit StagingPool(uint64_t limit) : limit_(limit) {}
  /// All blocks have been released.
  ~StagingPool();
  StagingPool(const StagingPool&) = delete;
  StagingPool& operator=(const StagingPool&) = delete;

  void SetLimit(uint64_t limit) { limit_ = limit; }

  /// At least `size` bytes (0 counts as 1), aligned to 128. Null when that would exceed the limit or memory is out.
  Owned Acquire(uint64_t size);

  /// Bytes of blocks that are in use.
  uint64_t in_use() const { return in_use_.load(std::memory_order_relaxed); }

 private:
  static constexpr std::array<uint64_t, 4> kSizes = {1u << 10, 8u << 10, 64u << 10, kSlab};
  // Blocks of a class that are kept: what bursts need, without keeping what a burst once needed for ever.
  static constexpr std::array<uint32_t, 4> kKept = {4096, 1024, 256, 64};

  static void Release(Block* block);
  static void Free(Block* block);

  std::atomic<uint64_t> limit_;
  std::atomic<uint64_t> in_use_{0};
  std::array<Block*, kSizes.size()> free_{};                   ///< The executor's.
  std::array<std::atomic<Block*>, kSizes.size()> returned_{};  ///< Released, not yet in free_.
  std::array<std::atomic<uint32_t>, kSizes.size()> kept_{};    ///< In both.
};

}  // namespace hawser::server::ocl

#endif  // HAWSER_SERVER_BACKENDS_OPENCL_STAGING_H_
