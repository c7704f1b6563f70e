// SPDX-License-Identifier: Apache-2.0
#include "server/worker/channel_bulk_sender.h"

#include <algorithm>
#include <utility>

#include "wire/frame.h"

namespace hawser::server {

using wire::Bytes;
using wire::Status;

ChannelBulkSender::ChannelBulkSender(wire::Channel* channel, uint32_t chunk, SessionStatsPage* stats)
    : channel_(channel), chunk_(std::clamp<uint32_t>(chunk, 1, wire::kMaxBulkChunk)), stats_(stats) {}

ChannelBulkSender::~ChannelBulkSender() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  work_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void ChannelBulkSender::Send(uint64_t transfer, Bytes data, std::function<void()> done) {
  Queue(Item{transfer, data, std::move(done), 0});
}

void ChannelBulkSender::Abort(uint64_t transfer, int32_t status) {
  // 0 would read as success.
  Queue(Item{transfer, {}, nullptr, status != 0 ? status : -5});
}

void ChannelBulkSender::Queue(Item item) {
  {
    std::lock_guard lock(mutex_);
    queue_.push_back(std::move(item));
    if (!thread_.joinable() && !stop_) thread_ = std::thread([this] { Run(); });
  }
  work_.notify_one();
}

void ChannelBulkSender::Run() {
  bool alive = true;
  std::unique_lock lock(mutex_);
  for (;;) {
    work_.wait(lock, [&] { return stop_ || !queue_.empty(); });
    if (queue_.empty()) return;
    Item item = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    // Once the guest is gone the data has no reader, but its owner still wants it back.
    if (alive) alive = Write(item).ok();
    if (item.done) item.done();
    item = Item();
    lock.lock();
  }
}

Status ChannelBulkSender::Write(const Item& item) {
  wire::BulkHeader header;
  header.transfer = item.transfer;
  if (item.abort_status != 0) {
    header.offset = static_cast<uint64_t>(int64_t{item.abort_status});
    header.flags = wire::kBulkAbort;
    return channel_->WriteAll(wire::AsBytes(&header, sizeof(header)));
  }
  size_t offset = 0;
  do {
    const size_t size = std::min<size_t>(chunk_, item.data.size() - offset);
    const bool last = offset + size == item.data.size();
    header.offset = offset;
    header.size = static_cast<uint32_t>(size);
    header.flags = last ? wire::kBulkLast : 0;
    if (Status status = channel_->WriteAll(wire::AsBytes(&header, sizeof(header)), /*flush=*/false); !status.ok()) {
      return status;
    }
    if (Status status = channel_->WriteAll(item.data.subspan(offset, size), last); !status.ok()) return status;
    offset += size;
    stats_->bulk_down_bytes.Add(sizeof(header) + size);
  } while (offset < item.data.size());
  return {};
}

}  // namespace hawser::server
