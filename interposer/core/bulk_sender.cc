// SPDX-License-Identifier: Apache-2.0
#include "interposer/core/bulk_sender.h"

#include <algorithm>

#include "wire/frame.h"

namespace hawser::guest {

BulkSender::BulkSender(wire::Channel* channel, uint32_t chunk, Stats* stats, LossListener* loss, BulkOrder* order)
    : channel_(channel), chunk_(chunk), stats_(stats), loss_(loss), order_(order) {}

bool BulkSender::Send(uint64_t transfer, uint64_t size, const Source& source) {
  return SendChunks(transfer, size, source);
}

bool BulkSender::Send(uint64_t transfer, wire::Bytes data) {
  return SendChunks(transfer, data.size(), [data](uint64_t offset, uint32_t) { return data.data() + offset; });
}

template <typename Get>
bool BulkSender::SendChunks(uint64_t transfer, uint64_t size, const Get& get) {
  if (closed_.load(std::memory_order_acquire) || !order_->Await(transfer)) return false;
  std::lock_guard lock(mutex_);
  uint64_t offset = 0;
  do {
    wire::BulkHeader header;
    header.transfer = transfer;
    header.offset = offset;
    header.size = static_cast<uint32_t>(std::min<uint64_t>(chunk_, size - offset));
    const bool last = offset + header.size == size;
    if (last) header.flags = wire::kBulkLast;
    if (wire::Status status = channel_->WriteAll(wire::AsBytes(&header, sizeof(header)), /*flush=*/header.size == 0);
        !status.ok()) {
      return Fail(status);
    }
    if (header.size != 0) {
      const wire::Bytes chunk(get(offset, header.size), header.size);
      if (wire::Status status = channel_->WriteAll(chunk, last); !status.ok()) return Fail(status);
    }
    offset += header.size;
  } while (offset < size);
  order_->Done(transfer);
  stats_->bulk_up.store(stats_->bulk_up.load(std::memory_order_relaxed) + size, std::memory_order_relaxed);
  return true;
}

bool BulkSender::Fail(const wire::Status& status) {
  if (!closed_.exchange(true, std::memory_order_acq_rel)) loss_->OnChannelEnded(status.text(), 0);
  return false;
}

}  // namespace hawser::guest
