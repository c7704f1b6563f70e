// SPDX-License-Identifier: Apache-2.0
#include "interposer/core/session.h"

#include <sys/mman.h>

#include "interposer/core/log.h"
#include "interposer/core/session_impl.h"

namespace hawser::guest {

Session::Session() = default;

int32_t Session::SendEncoded(CallFacts call, size_t size, EncodeFunction encode, const void* message, ReplySink* sink,
                             uint64_t transfer) {
  Command command{call.opcode, 0, size, encode, message, transfer};
  if (!strict_ || sink != nullptr || call.has_reply || Receiver::DeliveringHere()) [[likely]] {
    return impl_->stream.Send(command, sink) ? 0 : lost_code();
  }
  command.flags = wire::kWantStatus;
  if (transfer == 0) {
    Verdict verdict;
    return impl_->stream.Send(command, &verdict) ? impl_->Await(verdict) : lost_code();
  }
  // The server may need the data before it can tell: SendBulk() waits.
  auto verdict = std::make_unique<Verdict>();
  Verdict* const to = verdict.get();
  impl_->KeepVerdict(transfer, std::move(verdict));
  if (impl_->stream.Send(command, to)) return 0;
  impl_->DropVerdict(transfer);
  return lost_code();
}

int32_t Session::SendAndWaitEncoded(CallFacts call, size_t size, EncodeFunction encode, const void* message) {
  const Command command{call.opcode, wire::kWantStatus, size, encode, message};
  Verdict verdict;
  return impl_->stream.Send(command, &verdict) ? impl_->Await(verdict) : lost_code();
}

int32_t Session::CallEncoded(CallFacts call, size_t size, EncodeFunction encode, const void* message,
                             std::vector<std::byte>* payload) {
  KeptReply reply(payload);
  if (const int32_t error = SendEncoded(call, size, encode, message, &reply, 0); error != 0) return error;
  return WaitUntil([&reply] { return reply.done(); });
}

void Session::Flush() { impl_->stream.Flush(); }

int32_t Session::WaitUntilErased(bool (*done)(void*), void* context) {
  return impl_->Wait(impl_->receiver, done, context);
}

int32_t Session::WaitBulkUntilErased(bool (*done)(void*), void* context) {
  return impl_->Wait(impl_->bulk_receiver, done, context);
}

int32_t Session::MalformedReply(uint16_t opcode) {
  if (!lost()) impl_->End(std::string("the server's answer to ") + impl_->api.opcode_name(opcode) + " cannot be read");
  return lost_code();
}

void Session::Poll() {
  if (!lost() && !Receiver::DeliveringHere()) impl_->receiver.Poll();
}

void Session::Wake() {
  if (!lost()) impl_->receiver.Wake();
}

uint64_t Session::NewTransfer() { return impl_->next_transfer.fetch_add(1, std::memory_order_relaxed); }

uint64_t Session::NewLateTransfer() {
  const uint64_t transfer = NewTransfer();
  impl_->bulk_order.Expect(transfer);
  return transfer;
}

int32_t Session::SendBulk(uint64_t transfer, wire::Bytes data) {
  if (lost()) return lost_code();
  impl_->stream.FlushWhatFits();
  if (!impl_->bulk_sender.Send(transfer, data)) return lost_code();
  return strict_ ? impl_->AwaitVerdict(transfer) : 0;
}

int32_t Session::SendBulkFrom(uint64_t transfer, uint64_t size,
                              const std::function<const std::byte*(uint64_t offset, uint32_t size)>& source) {
  if (lost()) return lost_code();
  impl_->stream.FlushWhatFits();
  if (!impl_->bulk_sender.Send(transfer, size, source)) return lost_code();
  return strict_ ? impl_->AwaitVerdict(transfer) : 0;
}

void Session::ExpectBulk(uint64_t transfer, BulkSink* sink) {
  if (!lost()) impl_->transfers.Add(transfer, sink);
}

bool Session::CancelBulk(uint64_t transfer) {
  const Life life = life_.load(std::memory_order_acquire);
  if (life == Life::kAbandoned) return true;
  const bool cancelled = impl_->transfers.Cancel(transfer);
  // The sink may be among those that are being told.
  if (!cancelled && !Receiver::DeliveringHere()) impl_->Tell();
  return cancelled;
}

void Session::ReceiveBulkInBackground() {
  if (!lost()) impl_->transfers.ReceiveInBackground(&impl_->bulk_receiver);
}

void Session::AddListener() {
  if (!lost()) impl_->receiver.AddInterest();
}

void Session::RemoveListener() {
  if (!lost()) impl_->receiver.RemoveInterest();
}

void Session::PostCallback(std::function<void()> function) {
  if (life_.load(std::memory_order_acquire) != Life::kAbandoned) impl_->callbacks.Post(std::move(function));
}

void Session::PostChore(std::function<void()> function) {
  if (life_.load(std::memory_order_acquire) != Life::kAbandoned) impl_->chores.Post(std::move(function));
}

uint64_t Session::HeapAllocate(uint64_t size) {
  static_assert(kNoHeap == HeapExtents::kNone);
  if (heap_base_ == nullptr || lost()) return kNoHeap;
  return impl_->heap.Allocate(size);
}

void Session::HeapFree(uint64_t offset, uint64_t size) {
  if (heap_base_ != nullptr && !lost() && impl_->heap.Free(offset, size)) impl_->heap_returner.Note();
}

bool Session::MoveHeap(uint64_t address) {
  if (heap_base_ == nullptr || lost()) return false;
  auto* const wanted = reinterpret_cast<std::byte*>(address);
  if (wanted == heap_base_) return true;
  // MREMAP_FIXED would take the place of whatever is there.
  constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE;
  void* free_place = ::mmap(wanted, heap_size_, PROT_NONE, kFlags, -1, 0);
  if (free_place == MAP_FAILED) return false;
  if (free_place != wanted ||
      ::mremap(heap_base_, heap_size_, heap_size_, MREMAP_MAYMOVE | MREMAP_FIXED, wanted) == MAP_FAILED) {
    ::munmap(free_place, heap_size_);
    return false;
  }
  heap_base_ = wanted;
  impl_->heap.Rebase(wanted);
  return true;
}

void Session::SetNoticeSink(NoticeSink* sink) { impl_->command_pump.SetNoticeSink(sink); }

wire::Id Session::NewId(uint8_t type) {
  // A child of fork() may have come from the middle of an allocation.
  if (life_.load(std::memory_order_acquire) == Life::kAbandoned) return wire::Id(type, 0xffffff, 0);
  return impl_->ids.New(type);
}

void Session::FreeId(wire::Id id) {
  if (life_.load(std::memory_order_acquire) != Life::kAbandoned) impl_->ids.Free(id);
}

}  // namespace hawser::guest
