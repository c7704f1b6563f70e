// SPDX-License-Identifier: Apache-2.0
// The sending side of the bulk channel.
#ifndef HAWSER_INTERPOSER_CORE_BULK_SENDER_H_
#define HAWSER_INTERPOSER_CORE_BULK_SENDER_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>

#include "interposer/core/bulk_order.h"
#include "interposer/core/command_pump.h"
#include "interposer/core/session.h"
#include "wire/channel.h"

namespace hawser::guest {

/// Sends one transfer after the other, in the order of their commands: its mutex is held for a whole transfer, chunk by
/// chunk. Lock order: this mutex, then BulkOrder's.
class BulkSender {
 public:
  using Source = std::function<const std::byte*(uint64_t offset, uint32_t size)>;

  /// All borrowed. `chunk`: bytes, at most wire::kMaxBulkChunk.
  BulkSender(wire::Channel* channel, uint32_t chunk, Stats* stats, LossListener* loss, BulkOrder* order);

  /// Waits for its turn, sends and flushes. False when the session ended before all was sent.
  bool Send(uint64_t transfer, uint64_t size, const Source& source);
  bool Send(uint64_t transfer, wire::Bytes data);
  void Close() { closed_.store(true, std::memory_order_release); }

 private:
  template <typename Get>
  bool SendChunks(uint64_t transfer, uint64_t size, const Get& get);
  bool Fail(const wire::Status& status);

  wire::Channel* const channel_;
  const uint32_t chunk_;
  Stats* const stats_;
  LossListener* const loss_;
  BulkOrder* const order_;
  std::atomic<bool> closed_{false};
  std::mutex mutex_;
};

}  // namespace hawser::guest

#endif  // HAWSER_INTERPOSER_CORE_BULK_SENDER_H_
