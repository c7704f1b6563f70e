// SPDX-License-Identifier: Apache-2.0
// The receiving side of the bulk channel: data goes from the channel straight to where it belongs.
#ifndef HAWSER_INTERPOSER_CORE_BULK_PUMP_H_
#define HAWSER_INTERPOSER_CORE_BULK_PUMP_H_

#include <atomic>
#include <string>

#include "interposer/core/command_pump.h"
#include "interposer/core/receiver.h"
#include "interposer/core/session.h"
#include "interposer/core/transfer_table.h"
#include "wire/channel.h"
#include "wire/frame.h"

namespace hawser::guest {

/// Used by the holder of the bulk receive role.
class BulkPump final : public Pump {
 public:
  /// All borrowed.
  BulkPump(wire::Channel* channel, wire::SpinPolicy spin, TransferTable* transfers, Stats* stats, LossListener* loss);

  Outcome Deliver() override;
  void Park(bool spin) override;
  void Interrupt() override { channel_->InterruptRead(); }
  void Close() { closed_.store(true, std::memory_order_release); }

 private:
  /// kProgress: the part is complete.
  Outcome Fill(std::byte* to, size_t size);
  Outcome BeginChunk();
  Outcome EndChunk();
  Outcome End(const std::string& reason);

  wire::Channel* const channel_;
  const wire::SpinPolicy spin_;
  TransferTable* const transfers_;
  Stats* const stats_;
  LossListener* const loss_;
  std::atomic<bool> closed_{false};

  wire::BulkHeader header_;
  bool in_chunk_ = false;  ///< The header is complete, `place_` is where the bytes go.
  std::byte* place_ = nullptr;
  size_t have_ = 0;           ///< Bytes of the header or of the chunk so far.
  BulkSink* sink_ = nullptr;  ///< In use while in_chunk_.
};

}  // namespace hawser::guest

#endif  // HAWSER_INTERPOSER_CORE_BULK_PUMP_H_
