// SPDX-License-Identifier: Apache-2.0
#include "wire/ring.h"

#include <algorithm>
#include <cstring>

#include "wire/futex.h"

namespace hawser::wire {
namespace {

/// Large writes and reads move in pieces of this size, so that both sides copy at the same time.
constexpr size_t kPiece = 64u << 10;

/// Wakes the owner of `parked` if it sleeps or is about to.
inline void WakeIfParked(std::atomic<uint32_t>& parked) {
  if (parked.load(std::memory_order_seq_cst) == 0) [[likely]]
    return;
  // Clearing first makes a sleeper-to-be see that something changed.
  if (parked.exchange(0, std::memory_order_seq_cst) != 0) FutexWake(parked);
}

}  // namespace

void RingProducer::Refresh(std::memory_order order) {
  const uint64_t head = control_->head.load(order);
  // It only grows, and never past our tail. In unsigned arithmetic one comparison says both.
  if (head - head_ > tail_ - head_) [[unlikely]] {
    broken_ = true;
    return;
  }
  head_ = head;
}

size_t RingProducer::Write(Bytes bytes) {
  size_t written = 0;
  while (written < bytes.size()) {
    const size_t wanted = std::min(bytes.size() - written, kPiece);
    if (room() < wanted) Refresh(std::memory_order_acquire);
    const size_t size = std::min(wanted, room());
    if (size == 0 || broken_) break;
    const size_t at = static_cast<size_t>(tail_ & (capacity_ - 1));
    const size_t first = std::min(size, capacity_ - at);
    std::memcpy(data_ + at, bytes.data() + written, first);
    if (first < size) [[unlikely]]
      std::memcpy(data_, bytes.data() + written + first, size - first);
    tail_ += size;
    written += size;
    control_->tail.store(tail_, std::memory_order_seq_cst);
    WakeIfParked(control_->consumer_parked);
  }
  return written;
}

bool RingProducer::HasRoom() {
  Refresh(std::memory_order_seq_cst);
  return room() != 0;
}

void RingConsumer::Refresh(std::memory_order order) {
  const uint64_t tail = control_->tail.load(order);
  // It only grows, and never further than one capacity ahead of us.
  if (tail - tail_ > capacity_ - (tail_ - head_)) [[unlikely]] {
    broken_ = true;
    return;
  }
  tail_ = tail;
}

size_t RingConsumer::Read(std::span<std::byte> buffer) {
  // One look per call: chasing a producer byte by byte would take the line of its position away from
  // it again and again.
  if (tail_ - head_ < buffer.size()) Refresh(std::memory_order_acquire);
  if (broken_) [[unlikely]]
    return 0;
  const size_t total = std::min(buffer.size(), static_cast<size_t>(tail_ - head_));
  for (size_t done = 0; done < total;) {
    const size_t size = std::min(total - done, kPiece);
    const size_t at = static_cast<size_t>(head_ & (capacity_ - 1));
    const size_t first = std::min(size, capacity_ - at);
    std::memcpy(buffer.data() + done, data_ + at, first);
    if (first < size) [[unlikely]]
      std::memcpy(buffer.data() + done + first, data_, size - first);
    head_ += size;
    done += size;
    control_->head.store(head_, std::memory_order_seq_cst);
    if (control_->producer_parked.load(std::memory_order_seq_cst) != 0) [[unlikely]] {
      // A producer sleeps because the ring was full. Waking it for a few bytes of room would make the
      // two take turns; it is woken once a quarter is free. Reading on always gets there.
      Refresh(std::memory_order_seq_cst);
      if (tail_ - head_ <= capacity_ - capacity_ / 4) WakeIfParked(control_->producer_parked);
    }
  }
  return total;
}

bool RingConsumer::HasBytes() {
  Refresh(std::memory_order_seq_cst);
  return tail_ != head_;
}

}  // namespace hawser::wire
