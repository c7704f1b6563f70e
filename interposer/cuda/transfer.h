// SPDX-License-Identifier: Apache-2.0
// Data between the application's memory and the server: how the reads and writes of every kind are carried out.
//
// A write's data is staged when the call returns: in the command itself up to the session's inline limit, else on the
// bulk channel (but see late_write.h). A read waits for its data, or leaves a Landing in its stream.
#ifndef HAWSER_INTERPOSER_CUDA_TRANSFER_H_
#define HAWSER_INTERPOSER_CUDA_TRANSFER_H_

#include <algorithm>
#include <atomic>
#include <memory>
#include <utility>
#include <vector>

#include "interposer/cuda/entry.h"
#include "interposer/cuda/host_region.h"
#include "interposer/cuda/late_write.h"

namespace hawser::cu {

/// A read on its way: receives its data as a reply or on the bulk channel and spreads it.
/// Counted: one reference for the session (until one of the sinks' last functions was called), one for the caller.
/// Threading: the sinks' functions run on whichever thread receives the channel.
class RemoteRead final : public guest::ReplySink, public guest::BulkSink {
 public:
  /// `landing` null: the caller waits. `context`: who hears of a failure that nobody waits for.
  /// `earlier`: what comes into the same memory before it; only of reads with a landing.
  RemoteRead(guest::Session* session, const HostRegion& region, std::shared_ptr<Landing> landing, CUctx_st* context,
             Landings earlier = {})
      : session_(session),
        region_(region),
        landing_(std::move(landing)),
        context_(context),
        earlier_(std::move(earlier)) {
    if (!earlier_.empty()) aside_ = std::make_shared<std::vector<std::byte>>(region.bytes());
  }

  void OnReply(wire::Bytes payload) override;
  void OnLost() override;
  std::byte* Place(uint64_t offset, uint32_t size) override;
  void OnChunk(uint64_t offset, uint32_t size) override;
  void OnEnd(int32_t status) override;

  bool done() const { return done_.load(std::memory_order_acquire); }
  CUresult status() const { return status_; }
  void Unref() {
    if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }

 private:
  void Conclude(CUresult status, bool bulk);

  guest::Session* const session_;
  const HostRegion region_;
  const std::shared_ptr<Landing> landing_;
  CUctx_st* const context_;
  const Landings earlier_;
  std::shared_ptr<std::vector<std::byte>> aside_;  ///< Data that waits for them, or null.
  std::vector<std::byte> chunk_;                   ///< Of strided targets.
  CUresult status_ = CUDA_SUCCESS;
  std::atomic<bool> done_{false};
  std::atomic<int> references_{2};
};

/// What comes after a read's command was sent (`sent`: what sending returned).
CUresult ConcludeRead(guest::Session* session, RemoteRead* read, CUresult sent, uint64_t transfer, bool wait);
/// Sends a write's bulk data.
CUresult SendBulk(guest::Session* session, uint64_t transfer, const HostRegion& region);

/// Reads `region` by `message`, which names everything but stream and transfer.
template <typename Message>
CUresult SendRead(StreamCommand& command, Message& message, const HostRegion& region, bool wait) {
  guest::Session* session = command.session();
  const bool bulk = region.bytes() > session->inline_limit();
  std::shared_ptr<Landing> landing;
  Landings earlier = Overlapping(LandingsBefore(command.stream()), region);
  if (wait) {
    if (const CUresult error = AwaitLandings(std::exchange(earlier, {})); error != CUDA_SUCCESS) return error;
  } else {
    // One that is set aside for an earlier one lands where that does.
    const auto on_bulk = [](const auto& each) { return each->bulk; };
    landing = std::make_shared<Landing>(region, bulk && std::all_of(earlier.begin(), earlier.end(), on_bulk));
    command.stream()->Follow(landing);
  }
  auto* read = new RemoteRead(session, region, landing, command.context(), std::move(earlier));
  command.Address(message);
  command.NoteCommand();
  int32_t sent;
  if (bulk) {
    message.transfer = session->NewTransfer();
    session->ExpectBulk(message.transfer, read);
    sent = session->Send(message);
  } else {
    message.transfer = 0;
    sent = session->SendForReply(Message::kOpcode, message, read);
  }
  return ConcludeRead(session, read, FromWire(sent), message.transfer, wait);
}

/// Writes `region` by `message`. The data is taken when this returns.
template <typename Message>
CUresult SendWriteNow(StreamCommand& command, Message& message, const HostRegion& region) {
  guest::Session* session = command.session();
  if (region.bytes() <= session->inline_limit()) {
    std::vector<std::byte> packed;
    if (region.contiguous()) {
      message.data = wire::Bytes(region.base, region.bytes());
    } else {
      packed.resize(region.bytes());
      region.Gather(0, packed.size(), packed.data());
      message.data = packed;
    }
    return command.Send(message);
  }
  message.transfer = session->NewTransfer();
  return command.SendThen(message, [&] { return SendBulk(session, message.transfer, region); });
}

/// The same, of which the data is taken when the stream gets here.
template <typename Message>
CUresult SendWriteLate(StreamCommand& command, Message& message, const HostRegion& region) {
  return WriteLate(command, region,
                   [message, region](StreamCommand& then) mutable { return SendWriteNow(then, message, region); });
}

/// At once, unless what comes before in the stream is still to change pinned memory.
template <typename Message>
CUresult SendWrite(StreamCommand& command, Message& message, const HostRegion& region) {
  return IsStillChanged(command.stream(), region) ? SendWriteLate(command, message, region)
                                                  : SendWriteNow(command, message, region);
}

}  // namespace hawser::cu

#endif  // HAWSER_INTERPOSER_CUDA_TRANSFER_H_
