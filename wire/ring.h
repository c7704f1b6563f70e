// SPDX-License-Identifier: Apache-2.0
// A ring of bytes with one producer and one consumer in two processes that do not trust each other.
//
// Shared memory holds only copies of the positions; each side works from its own, in private
// memory, and checks what the other side published before use. A position is the count of bytes
// since the start and never wraps in practice (64 bits).
//
// Waking: a side that is about to sleep sets its parked flag and then looks at the other's position
// once more; the other side publishes its position and then looks at the flag. All four accesses
// are sequentially consistent, so at least one of the two sees the other, and no wake-up is lost.
//
// Threading: one thread uses the producer, one the consumer.
#ifndef HAWSER_WIRE_RING_H_
#define HAWSER_WIRE_RING_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "wire/codec.h"

namespace hawser::wire {

/// The part of a ring that both processes write. Each word has a cache line of its own.
struct RingControl {
  alignas(64) std::atomic<uint64_t> head{0};             ///< Bytes consumed; written by the consumer.
  alignas(64) std::atomic<uint64_t> tail{0};             ///< Bytes produced; written by the producer.
  alignas(64) std::atomic<uint32_t> consumer_parked{0};  ///< Futex; 1: wake the consumer when bytes come.
  alignas(64) std::atomic<uint32_t> producer_parked{0};  ///< Futex; 1: wake the producer when there is room.
};
static_assert(sizeof(RingControl) == 4 * 64);
static_assert(std::atomic<uint64_t>::is_always_lock_free);

class RingProducer {
 public:
  /// `capacity` is a power of two and the size of `data`. The ring must be fresh.
  RingProducer(RingControl* control, std::byte* data, uint32_t capacity)
      : control_(control), data_(data), capacity_(capacity) {}

  /// Takes as many of `bytes` as fit, makes them visible and wakes a parked consumer.
  size_t Write(Bytes bytes);
  /// Whether at least one byte fits. For waiting: sequentially consistent.
  bool HasRoom();
  /// The peer published a position that cannot be. Nothing is written any more.
  bool broken() const { return broken_; }
  std::atomic<uint32_t>& parked() { return control_->producer_parked; }

 private:
  /// Reads and checks the consumer's position.
  void Refresh(std::memory_order order);
  size_t room() const { return capacity_ - static_cast<size_t>(tail_ - head_); }

  RingControl* const control_;
  std::byte* const data_;
  const uint32_t capacity_;
  bool broken_ = false;
  uint64_t tail_ = 0;  ///< Ours; the truth.
  uint64_t head_ = 0;  ///< The consumer's, as last read and checked.
};

class RingConsumer {
 public:
  RingConsumer(RingControl* control, const std::byte* data, uint32_t capacity)
      : control_(control), data_(data), capacity_(capacity) {}

  /// Copies out what is there when it is called, at most buffer.size(), and wakes a parked producer
  /// once there is room worth waking it for.
  size_t Read(std::span<std::byte> buffer);
  /// Whether at least one byte is there. For waiting: sequentially consistent.
  bool HasBytes();
  bool broken() const { return broken_; }
  std::atomic<uint32_t>& parked() { return control_->consumer_parked; }

 private:
  void Refresh(std::memory_order order);

  RingControl* const control_;
  const std::byte* const data_;
  const uint32_t capacity_;
  bool broken_ = false;
  uint64_t head_ = 0;  ///< Ours; the truth.
  uint64_t tail_ = 0;  ///< The producer's, as last read and checked.
};

}  // namespace hawser::wire

#endif  // HAWSER_WIRE_RING_H_
