// SPDX-License-Identifier: Apache-2.0
// The receiving side of the command channel: answers to their sinks, notices to the API layer.
#ifndef HAWSER_INTERPOSER_CORE_COMMAND_PUMP_H_
#define HAWSER_INTERPOSER_CORE_COMMAND_PUMP_H_

#include <atomic>
#include <string>

#include "interposer/core/api.h"
#include "interposer/core/receiver.h"
#include "interposer/core/reply_table.h"
#include "interposer/core/session.h"
#include "wire/channel.h"
#include "wire/frame_reader.h"

namespace hawser::guest {

/// Hears that a channel has ended, and why. Any thread; may be called more than once.
class LossListener {
 public:
  /// `cause`: the API's error that the server gave for it; 0: none.
  virtual void OnChannelEnded(const std::string& reason, uint32_t cause) = 0;

 protected:
  ~LossListener() = default;
};

/// Used by the holder of the receive role.
class CommandPump final : public Pump {
 public:
  /// All borrowed. `life_over` becomes true when the session is over.
  CommandPump(wire::Channel* channel, wire::SpinPolicy spin, ReplyTable* replies, Stats* stats, LossListener* loss,
              const Api& api);

  Outcome Deliver() override;
  void Park(bool spin) override;
  void Interrupt() override { channel_->InterruptRead(); }

  /// May be set while another thread receives.
  void SetNoticeSink(NoticeSink* sink) { notices_.store(sink, std::memory_order_release); }
  NoticeSink* notice_sink() const { return notices_.load(std::memory_order_acquire); }
  /// From now on nothing is delivered.
  void Close() { closed_.store(true, std::memory_order_release); }

 private:
  void Dispatch(const wire::FrameHeader& header, wire::Bytes payload);
  Outcome End(const std::string& reason, uint32_t cause = 0);

  wire::Channel* const channel_;
  const wire::SpinPolicy spin_;
  ReplyTable* const replies_;
  Stats* const stats_;
  LossListener* const loss_;
  const Api& api_;
  wire::FrameReader reader_;
  std::atomic<NoticeSink*> notices_{nullptr};
  std::atomic<bool> closed_{false};
};

}  // namespace hawser::guest

#endif  // HAWSER_INTERPOSER_CORE_COMMAND_PUMP_H_
