// SPDX-License-Identifier: Apache-2.0
#include "interposer/cuda/transfer.h"

#include <cstring>

namespace hawser::cu {

void RemoteRead::OnReply(wire::Bytes payload) {
  wire::Reader reader(payload);
  cuda::ReadReply reply;
  if (!reply.Decode(reader)) {
    wire::Reader head(payload);
    const auto status = head.Get<int32_t>();
    Conclude(head.failed() || status == 0 ? CUDA_ERROR_UNKNOWN : FromWire(status), false);
  } else if (reply.status != 0) {
    Conclude(FromWire(reply.status), false);
  } else if (reply.data.size() != region_.bytes()) {
    Conclude(CUDA_ERROR_UNKNOWN, false);
  } else {
    if (aside_ != nullptr) {
      std::memcpy(aside_->data(), reply.data.data(), reply.data.size());
    } else {
      region_.Scatter(0, reply.data.size(), reply.data.data());
    }
    Conclude(CUDA_SUCCESS, false);
  }
}

void RemoteRead::OnLost() { Conclude(Client::Get().Lost(), false); }

std::byte* RemoteRead::Place(uint64_t offset, uint32_t size) {
  const uint64_t total = region_.bytes();
  if (offset > total || size > total - offset) return nullptr;
  if (aside_ != nullptr) return aside_->data() + offset;
  if (region_.contiguous()) return region_.base + offset;
  if (chunk_.size() < size) chunk_.resize(size);
  return chunk_.data();
}

void RemoteRead::OnChunk(uint64_t offset, uint32_t size) {
  if (aside_ == nullptr && !region_.contiguous()) region_.Scatter(offset, size, chunk_.data());
}

void RemoteRead::OnEnd(int32_t status) { Conclude(FromWire(status), true); }

void RemoteRead::Conclude(CUresult status, bool bulk) {
  status_ = status;
  done_.store(true, std::memory_order_release);
  if (landing_ != nullptr) {
    if (status != CUDA_SUCCESS) {
      int32_t none = 0;
      context_->pending.compare_exchange_strong(none, status);
    }
    const auto land = [session = session_, landing = landing_, bulk] {
      landing->Land();
      if (bulk) session->Wake();  // Those who wait for completions receive on the other channel.
    };
    if (aside_ == nullptr || status != CUDA_SUCCESS) {
      land();
    } else {
      WhenLanded(earlier_, [land, session = session_, region = region_, aside = aside_] {
        region.Scatter(0, aside->size(), aside->data());
        land();
        session->Wake();
      });
    }
  }
  Unref();
}

CUresult ConcludeRead(guest::Session* session, RemoteRead* read, CUresult sent, uint64_t transfer, bool wait) {
  if (sent != CUDA_SUCCESS) {
    // The sink is told here, unless the transfer's own end, a loss at this moment, tells it.
    if (transfer == 0 || session->CancelBulk(transfer)) read->OnLost();
    read->Unref();
    return sent;
  }
  if (!wait) {
    read->Unref();
    if (transfer != 0) session->ReceiveBulkInBackground();
    return CUDA_SUCCESS;
  }
  auto done = [read] { return read->done(); };
  CUresult error = FromWire(transfer != 0 ? session->WaitBulkUntil(done) : session->WaitUntil(done));
  if (error == CUDA_SUCCESS) error = read->status();
  read->Unref();
  return error;
}

CUresult SendBulk(guest::Session* session, uint64_t transfer, const HostRegion& region) {
  if (region.contiguous()) return FromWire(session->SendBulk(transfer, wire::Bytes(region.base, region.bytes())));
  std::vector<std::byte> chunk;
  return FromWire(session->SendBulkFrom(transfer, region.bytes(), [&](uint64_t offset, uint32_t size) {
    if (chunk.size() < size) chunk.resize(size);
    region.Gather(offset, size, chunk.data());
    return static_cast<const std::byte*>(chunk.data());
  }));
}

}  // namespace hawser::cu
