// SPDX-License-Identifier: Apache-2.0
#include "server/backends/opencl/bulk_transfers.h"

#include <memory>
#include <new>
#include <utility>

namespace hawser::server::ocl {

void MappedRead::Begin(Completion* mapped, const std::byte* data, uint64_t size, uint64_t transfer,
                       Handle<cl_event> through, UserEvents& user_events) {
  auto* read = new MappedRead;
  read->data_ = wire::Bytes(data, size);
  read->transfer_ = transfer;
  read->through_ = std::move(through);
  read->user_events_ = &user_events;
  mapped->action = &OnMapped;
  mapped->context = read;
  mapped->owner().Arm(mapped);
}

bool MappedRead::OnMapped(Completion& completion, int32_t status) {
  auto* read = static_cast<MappedRead*>(completion.context);
  BulkSender& sender = *completion.owner().services().bulk_out;
  if (status < 0) {
    sender.Abort(read->transfer_, status);
    // The unmap has failed with the map; this only ends the user event.
    read->user_events_->Set(read->through_.get(), CL_COMPLETE);
    delete read;
    return false;
  }
  Completion* later = &completion;
  sender.Send(read->transfer_, read->data_, [read, later, status] {
    read->user_events_->Set(read->through_.get(), CL_COMPLETE);
    delete read;
    later->owner().Conclude(later, status);
  });
  return true;
}

bool MappedWrite::Begin(Completion* mapped, std::byte* data, uint64_t size, uint64_t transfer, Handle<cl_event> through,
                        UserEvents& user_events) {
  auto* write = new MappedWrite;
  write->data_ = data;
  write->transfer_ = transfer;
  write->through_ = std::move(through);
  write->user_events_ = &user_events;
  write->size_ = size;
  BulkReceiver& receiver = *mapped->owner().services().bulk_in;
  if (!receiver.Expect(transfer, size, nullptr, [write](int32_t status) { write->OnReceived(status); })) {
    delete write;
    return false;
  }
  mapped->action = &OnMapped;
  mapped->context = write;
  mapped->owner().Arm(mapped);
  return true;
}

bool MappedWrite::OnMapped(Completion& completion, int32_t status) {
  auto* write = static_cast<MappedWrite*>(completion.context);
  // A transfer may end before its bytes have a target: with the session.
  if (!write->received_.load(std::memory_order_acquire)) {
    BulkReceiver& receiver = *completion.owner().services().bulk_in;
    if (status >= 0) {
      receiver.SetTarget(write->transfer_, write->data_);
    } else {
      // The guest sends in any case. The receiver has accepted the size.
      write->spare_.reset(new (std::nothrow) std::byte[write->size_]);
      if (write->spare_ != nullptr) receiver.SetTarget(write->transfer_, write->spare_.get());
    }
  }
  write->PartyCame();
  return false;
}

void MappedWrite::OnReceived(int32_t status) {
  status_.store(status, std::memory_order_relaxed);
  received_.store(true, std::memory_order_release);
  PartyCame();
}

void MappedWrite::PartyCame() {
  // Not before the map is done: PoCL 3.1 would forget the mapping under a map that is under way.
  if (parties_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  const std::unique_ptr<MappedWrite> self(this);
  const int32_t status = status_.load(std::memory_order_relaxed);
  user_events_->Set(through_.get(), status < 0 ? status : CL_COMPLETE);
}

void StagedRead::Begin(Completion* read, StagingPool::Owned block, uint64_t size, uint64_t transfer) {
  auto* staged = new StagedRead;
  staged->block_ = std::move(block);
  staged->size_ = size;
  staged->transfer_ = transfer;
  read->action = &OnRead;
  read->context = staged;
  read->owner().Arm(read);
}

bool StagedRead::OnRead(Completion& completion, int32_t status) {
  auto* staged = static_cast<StagedRead*>(completion.context);
  BulkSender& sender = *completion.owner().services().bulk_out;
  if (status < 0) {
    sender.Abort(staged->transfer_, status);
    delete staged;
    return false;
  }
  sender.Send(staged->transfer_, wire::Bytes(staged->block_->data, staged->size_), [staged] { delete staged; });
  // Announced now, before what waits for this read: the guest holds both back until the data has landed.
  return false;
}

StagedWrite* StagedWrite::Begin(StagingPool::Owned block, uint64_t size, uint64_t transfer, Handle<cl_event> there,
                                UserEvents& user_events) {
  auto* staged = new StagedWrite;
  staged->block_ = std::move(block);
  staged->there_ = std::move(there);
  staged->user_events_ = &user_events;
  BulkReceiver& receiver = *user_events.services().bulk_in;
  const bool taken = receiver.Expect(transfer, size, staged->block_->data, [staged](int32_t status) {
    staged->user_events_->Set(staged->there_.get(), status < 0 ? status : CL_COMPLETE);
    staged->PartyCame();
  });
  if (taken) return staged;
  delete staged;
  return nullptr;
}

void StagedWrite::Arm(Completion* write) {
  write->action = &OnWritten;
  write->context = this;
  write->owner().Arm(write);
}

bool StagedWrite::OnWritten(Completion& completion, int32_t) {
  static_cast<StagedWrite*>(completion.context)->PartyCame();
  return false;
}

void StagedWrite::PartyCame() {
  if (parties_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
}

}  // namespace hawser::server::ocl
