// SPDX-License-Identifier: Apache-2.0
// A channel over two rings. Internal to wire/.
//
// Threads: the reader uses `in_`, the writer `out_`; each parks on the parked flag of its own ring
// and direction. Shutdown() may come from any thread: it sets the ended flags and wakes all four
// parked flags. No locks.
#ifndef HAWSER_WIRE_SHM_CHANNEL_H_
#define HAWSER_WIRE_SHM_CHANNEL_H_

#include <atomic>
#include <memory>
#include <optional>

#include "wire/channel.h"
#include "wire/shm_layout.h"

namespace hawser::wire {

class ShmChannel final : public Channel {
 public:
  /// Where one ring's bytes are.
  struct RingPlace {
    RingControl* control;
    std::byte* data;
    uint32_t capacity;
  };

  ShmChannel(std::shared_ptr<ShmMapping> mapping, ChannelControl* control, RingPlace in, RingPlace out, int liveness);
  ~ShmChannel() override;

  Result<size_t> TryRead(std::span<std::byte> buffer) override;
  Status WaitReadable(SpinPolicy spin, std::optional<std::chrono::nanoseconds> timeout) override;
  void InterruptRead() override;
  Result<size_t> TryWrite(Bytes bytes) override;
  Result<bool> TryFlush() override { return true; }
  Status WaitWritable(std::optional<std::chrono::nanoseconds> timeout) override;
  size_t unflushed() const override { return 0; }
  void Shutdown() override;
  void Abandon() override;

 private:
  /// Whether this side or the peer ended the channel, or the peer was found dead.
  bool Ended(std::memory_order order) const { return ended_.load(order) || control_->ended.load(order) != 0; }
  /// Spins, then parks on `parked`, until ready() or the timeout.
  template <typename Ready>
  Status WaitUntil(std::atomic<uint32_t>& parked, SpinPolicy spin, std::optional<std::chrono::nanoseconds> timeout,
                   Ready ready);
  /// Looks at the liveness socket; a hang-up ends the channel on this side.
  void CheckPeer();

  std::shared_ptr<ShmMapping> mapping_;  ///< Null once abandoned.
  ChannelControl* control_;
  const int liveness_;
  std::atomic<bool> ended_{false};  ///< Private, so that a hostile peer cannot take it back.

  std::atomic<bool> interrupted_{false};  ///< The reader shall stop waiting.

  alignas(64) RingConsumer in_;
  alignas(64) RingProducer out_;
};

}  // namespace hawser::wire

#endif  // HAWSER_WIRE_SHM_CHANNEL_H_
