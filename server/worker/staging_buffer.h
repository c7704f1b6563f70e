// SPDX-License-Identifier: Apache-2.0
// Memory for data that has arrived before anybody knows where it goes, within one account.
#ifndef HAWSER_SERVER_WORKER_STAGING_BUFFER_H_
#define HAWSER_SERVER_WORKER_STAGING_BUFFER_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <utility>

namespace hawser::server {

/// Bytes that staging may take, and takes. Threading: the owner's lock guards it.
struct StagingAccount {
  uint64_t limit = 0;
  uint64_t used = 0;
  bool Fits(uint64_t more) const { return more <= limit - std::min(limit, used); }
};

/// A buffer that grows, charged to an account. Threading: the owner's lock guards growing and
/// releasing; the bytes belong to whoever the owner lets use them.
class StagingBuffer {
 public:
  StagingBuffer() = default;
  StagingBuffer(StagingBuffer&& other) noexcept
      : account_(std::exchange(other.account_, nullptr)),
        data_(std::exchange(other.data_, nullptr)),
        capacity_(std::exchange(other.capacity_, 0)) {}
  StagingBuffer& operator=(StagingBuffer&& other) noexcept {
    std::swap(account_, other.account_);
    std::swap(data_, other.data_);
    std::swap(capacity_, other.capacity_);
    return *this;
  }
  ~StagingBuffer() { Release(); }

  /// Room for `capacity` bytes; what is there stays. False when the account or the system has no more.
  bool Reserve(StagingAccount* account, uint64_t capacity) {
    if (capacity <= capacity_) return true;
    if (!account->Fits(capacity - capacity_)) return false;
    void* grown = std::realloc(data_, capacity);
    if (grown == nullptr) return false;
    account_ = account;
    account_->used += capacity - capacity_;
    data_ = static_cast<std::byte*>(grown);
    capacity_ = capacity;
    return true;
  }
  void Release() {
    if (account_ != nullptr) account_->used -= capacity_;
    std::free(data_);
    account_ = nullptr;
    data_ = nullptr;
    capacity_ = 0;
  }

  std::byte* data() const { return data_; }
  uint64_t capacity() const { return capacity_; }

 private:
  StagingAccount* account_ = nullptr;
  std::byte* data_ = nullptr;
  uint64_t capacity_ = 0;
};

}  // namespace hawser::server

#endif  // HAWSER_SERVER_WORKER_STAGING_BUFFER_H_
