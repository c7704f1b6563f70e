// SPDX-License-Identifier: Apache-2.0
#include "interposer/core/bulk_pump.h"

#include "interposer/core/log.h"
#include "interposer/core/server_order.h"

namespace hawser::guest {
namespace {

std::string Number(uint64_t value) { return std::to_string(value); }

}  // namespace

BulkPump::BulkPump(wire::Channel* channel, wire::SpinPolicy spin, TransferTable* transfers, Stats* stats,
                   LossListener* loss)
    : channel_(channel), spin_(spin), transfers_(transfers), stats_(stats), loss_(loss) {}

Pump::Outcome BulkPump::Deliver() {
  // At most one chunk (wire::kMaxBulkChunk), so that the role's holder can look at its own condition.
  if (closed_.load(std::memory_order_acquire)) return End("");
  if (!in_chunk_) {
    if (const Outcome outcome = Fill(reinterpret_cast<std::byte*>(&header_), sizeof(header_));
        outcome != Outcome::kProgress) {
      return outcome;
    }
    return BeginChunk();
  }
  const Outcome outcome = Fill(place_, header_.size);
  return outcome == Outcome::kProgress ? EndChunk() : outcome;
}

Pump::Outcome BulkPump::Fill(std::byte* to, size_t size) {
  while (have_ < size) {
    const wire::Result<size_t> got = channel_->TryRead({to + have_, size - have_});
    if (!got.ok()) return End(got.status().text());
    if (got.value() == 0) return Outcome::kIdle;
    have_ += got.value();
  }
  have_ = 0;
  return Outcome::kProgress;
}

Pump::Outcome BulkPump::BeginChunk() {
  BehindServer();
  const uint64_t transfer = header_.transfer;
  if ((header_.flags & wire::kBulkAbort) != 0) {
    if (header_.size != 0) return End("the server sent data with the abort of transfer " + Number(transfer));
    BulkSink* sink = transfers_->Use(transfer);
    if (sink == nullptr) {
      Log(LogLevel::kDebug, "the server aborted transfer %llu, which nobody expects",
          static_cast<unsigned long long>(transfer));
      return Outcome::kProgress;
    }
    const auto code = static_cast<int32_t>(static_cast<int64_t>(header_.offset));
    sink->OnEnd(code != 0 ? code : Session::lost_code());
    transfers_->Release(transfer, /*ended=*/true);
    return Outcome::kProgress;
  }
  if (header_.size > wire::kMaxBulkChunk) {
    return End("the server announced a chunk of " + Number(header_.size) + " bytes in transfer " + Number(transfer));
  }
  sink_ = transfers_->Use(transfer);
  if (sink_ == nullptr) return End("the server sent data of transfer " + Number(transfer) + ", which nobody expects");
  in_chunk_ = true;
  if (header_.size == 0) return EndChunk();
  place_ = sink_->Place(header_.offset, header_.size);
  if (place_ == nullptr) {
    return End("the server sent bytes " + Number(header_.offset) + " to " + Number(header_.offset + header_.size) +
               " of transfer " + Number(transfer) + ", which is shorter");
  }
  return Outcome::kProgress;
}

Pump::Outcome BulkPump::EndChunk() {
  in_chunk_ = false;
  // Only the holder of the role counts these.
  stats_->bulk_down.store(stats_->bulk_down.load(std::memory_order_relaxed) + header_.size, std::memory_order_relaxed);
  const bool last = (header_.flags & wire::kBulkLast) != 0;
  if (header_.size != 0) sink_->OnChunk(header_.offset, header_.size);
  if (last) sink_->OnEnd(0);
  sink_ = nullptr;
  transfers_->Release(header_.transfer, last);
  return Outcome::kProgress;
}

Pump::Outcome BulkPump::End(const std::string& reason) {
  if (in_chunk_) {
    in_chunk_ = false;
    sink_ = nullptr;
    transfers_->Release(header_.transfer, /*ended=*/false);
  }
  if (!closed_.exchange(true, std::memory_order_acq_rel)) loss_->OnChannelEnded(reason, 0);
  return Outcome::kEnded;
}

void BulkPump::Park(bool spin) {
  // An error shows again in the next Deliver().
  (void)channel_->WaitReadable(spin ? spin_ : wire::SpinPolicy{}, std::nullopt);
}

}  // namespace hawser::guest
