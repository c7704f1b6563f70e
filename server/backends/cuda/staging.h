// SPDX-License-Identifier: Apache-2.0
// Host memory for data that passes through the worker, registered with the driver so that copies are asynchronous.
//
// A driver waits for the device before it lets memory go (cuMemHostUnregister), and the device may wait for the guest;
// so blocks that are not needed any more leave by disposals.h, and whoever takes one does not wait for that, unless as
// much as the session's limit is on its way already.
//
// Threads: any. Lock: the pool's mutex_, under which nothing is called but the system's allocator, the driver's
// registration, and the disposals.
#ifndef HAWSER_SERVER_BACKENDS_CUDA_STAGING_H_
#define HAWSER_SERVER_BACKENDS_CUDA_STAGING_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "server/backends/cuda/disposals.h"
#include "server/backends/cuda/driver_table.h"

namespace hawser::server::cuda_backend {

/// Bytes of all pools of a session. Thread-safe.
class StagingBudget {
 public:
  explicit StagingBudget(uint64_t limit) : limit_(limit) {}
  bool Take(uint64_t bytes) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (bytes > limit_ - used_) return false;
    used_ += bytes;
    return true;
  }
  void Give(uint64_t bytes) {
    const std::lock_guard<std::mutex> lock(mutex_);
    used_ -= bytes;
  }
  /// Of what is used so much will be given back, but not at once; until then it does not count. False: too much is on
  /// its way already, and it counts.
  bool Leave(uint64_t bytes) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (bytes > limit_ - leaving_) return false;
    leaving_ += bytes;
    used_ -= bytes;
    return true;
  }
  void Left(uint64_t bytes) {
    const std::lock_guard<std::mutex> lock(mutex_);
    leaving_ -= bytes;
  }
  uint64_t used() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return used_;
  }

 private:
  const uint64_t limit_;
  mutable std::mutex mutex_;
  uint64_t used_ = 0;
  uint64_t leaving_ = 0;
};

/// Blocks of one context. Their memory is the worker's own and only registered with the driver, so that it outlives the
/// context: a block in flight is never pulled away.
class StagingPool : public std::enable_shared_from_this<StagingPool> {
 public:
  /// Owns a block, and the pool with it.
  class Block {
   public:
    Block() = default;
    Block(std::shared_ptr<StagingPool> pool, std::byte* data, uint64_t capacity)
        : pool_(std::move(pool)), data_(data), capacity_(capacity) {}
    Block(Block&& other) noexcept
        : pool_(std::move(other.pool_)), data_(std::exchange(other.data_, nullptr)), capacity_(other.capacity_) {}
    Block& operator=(Block&& other) noexcept {
      std::swap(pool_, other.pool_);
      std::swap(data_, other.data_);
      std::swap(capacity_, other.capacity_);
      return *this;
    }
    ~Block() {
      if (data_ != nullptr) pool_->Return(data_, capacity_);
    }
    std::byte* data() const { return data_; }
    uint64_t capacity() const { return capacity_; }
    explicit operator bool() const { return data_ != nullptr; }

   private:
    std::shared_ptr<StagingPool> pool_;
    std::byte* data_ = nullptr;
    uint64_t capacity_ = 0;
  };

  /// Of this context. All but it outlive the pool, and the disposals are drained before the context ends.
  StagingPool(const DriverTable* driver, CUcontext context, StagingBudget* budget, Disposals* disposals)
      : driver_(driver), context_(context), budget_(budget), disposals_(disposals) {}
  ~StagingPool();

  /// At least `size` bytes, on a thread whose current context is the pool's. Null block: there is no more.
  Block Take(uint64_t size);
  /// The context is gone, and the registrations with it: what comes back is freed.
  void Retire();

 private:
  static constexpr uint64_t kSmallest = 4096;
  static constexpr size_t kClasses = 37;  ///< Up to 256 TiB; nobody asks for more.

  /// Lets all free blocks go. Waits for that only when too many are on their way.
  void Trim();
  void Return(std::byte* data, uint64_t capacity);
  void Drop(std::byte* data, uint64_t capacity, bool registered);

  const DriverTable* const driver_;
  const CUcontext context_;
  StagingBudget* const budget_;
  Disposals* const disposals_;
  std::mutex mutex_;
  bool retired_ = false;
  uint64_t kept_ = 0;                                   ///< Bytes in free blocks.
  std::array<std::vector<std::byte*>, kClasses> free_;  ///< By size: kSmallest << class.
};

}  // namespace hawser::server::cuda_backend

#endif  // HAWSER_SERVER_BACKENDS_CUDA_STAGING_H_
