// SPDX-License-Identifier: Apache-2.0
// What a stream waits for that is not the device's: functions of the guest, data that has not come, and room in the
// driver's queue. None of it is given to the driver: it may run all host functions on one thread, takes about a
// thousand commands of a stream and lets whoever has more wait, and waits for all streams when something is freed. The
// stream is held instead, and what comes behind it is kept (deferral.h).
#include <algorithm>
#include <cstring>
#include <utility>

#include "server/backends/cuda/backend.h"

namespace hawser::server::cuda_backend {

Deferral::Ticket CudaBackend::HoldStream(const StreamState& stream, bool acts) {
  deferring_ = true;
  return deferral_.Hold(StreamFootprint(stream.context, stream.id), acts);
}

void CudaBackend::ReleaseLater(Deferral::Ticket ticket) {
  {
    const std::lock_guard<std::mutex> lock(news_mutex_);
    released_.push_back(ticket);
  }
  Wake();
}

void CudaBackend::ReleaseNow(Deferral::Ticket ticket) {
  (void)deferral_.Release(ticket);
  // The executor looks before its next command, or before it waits for one.
  news_.store(true, std::memory_order_release);
}

void CudaBackend::TakeReleased() {
  std::vector<Deferral::Ticket> released;
  std::vector<uint64_t> arrived;
  {
    const std::lock_guard<std::mutex> lock(news_mutex_);
    released.swap(released_);
    arrived.swap(arrived_);
  }
  for (const Deferral::Ticket ticket : released) {
    (void)deferral_.Release(ticket);
    std::erase_if(functions_, [&](const auto& each) { return each.second.hold == ticket; });
  }
  for (const uint64_t transfer : arrived) {
    auto node = waiting_writes_.extract(transfer);
    if (node.empty()) continue;
    WaitingWrite& write = node.mapped();
    const int32_t status = write.run();
    (void)deferral_.Release(write.hold);
    Report(write.header, {.status = status}, {});
  }
}

// --- functions of the guest

int32_t CudaBackend::EnqueueHostFunction(const cuda::Call& call, const cuda::EnqueueHostFunction& message) {
  // The program has been told that its callback will be called: the context may have broken since.
  const auto call_it = [&](int32_t status) {
    if (message.always == 0) return;
    cuda::RunHostFunction notice;
    notice.callback = message.callback;
    notice.run = gates_.New(nullptr).first;
    notice.status = status;
    waits_->Post([this, notice] { Notify(notice); });
  };
  const Place at = At(message.context, message.stream, Gives::kPlain);
  if (!at.ok()) {
    call_it(at.status);
    return Fail(call, at.status, {}, message.context);
  }
  if (Captures(message.stream)) {
    // The capture makes a node of it, which runs again and again.
    const CUresult result = driver_.cuLaunchHostFunc(at.native(), RunHostCall, NewHostCall(message.callback));
    return Finish(call, result, message.context);
  }
  cuda::RunHostFunction notice;
  notice.callback = message.callback;
  notice.run = gates_.NewNumber();
  const Deferral::Ticket hold = HoldStream(*at.stream);
  functions_[notice.run] = {message.context, hold};
  const auto ask = [this, notice, hold, always = message.always != 0](CUresult end) mutable {
    // A host function never runs in a context that is broken; a callback does, and is told.
    if (end != CUDA_SUCCESS && !always) return ReleaseLater(hold);
    notice.status = end;
    Notify(notice);
  };
  const CUresult result = waits_->Tell(&at.stream->lane, at.native(), at.context->events, ask);
  if (result != CUDA_SUCCESS) {
    functions_.erase(notice.run);
    ReleaseNow(hold);
    call_it(result);
  }
  return Finish(call, result, message.context);
}

int32_t CudaBackend::HostFunctionDone(const cuda::Call& call, const cuda::HostFunctionDone& message) {
  if (const auto at = functions_.find(message.run); at != functions_.end()) {
    const Deferral::Ticket hold = at->second.hold;
    functions_.erase(at);
    ReleaseNow(hold);
    return 0;
  }
  if (gates_.Open(message.run)) {
    gates_.Forget(message.run);
    return 0;
  }
  return Fail(call, Explain(CUDA_ERROR_INVALID_VALUE, "no such function is running"));
}

void CudaBackend::EndFunctions(wire::Id context) {
  std::erase_if(functions_, [&](const auto& each) {
    if (each.second.context != context) return false;
    ReleaseNow(each.second.hold);
    return true;
  });
}

// --- functions of graphs, which the driver calls

void CUDA_CB CudaBackend::RunHostCall(void* data) {
  const auto* const host_call = static_cast<const HostCall*>(data);
  CudaBackend* const backend = host_call->backend;
  const auto [run, gate] = backend->gates_.New(host_call->context);
  cuda::RunHostFunction notice;
  notice.callback = host_call->callback;
  notice.run = run;
  // From a lane: what was read before this function has to be on its way first, and no driver function may be called
  // here to find that out.
  backend->waits_->Post([backend, notice] { backend->Notify(notice); });
  gate->Wait();
  backend->gates_.Forget(notice.run);
}

// --- data

bool CudaBackend::HasCome(uint64_t transfer, const Expected& expected) {
  const std::lock_guard<std::mutex> lock(news_mutex_);
  if (expected.gate->is_open()) return true;
  awaited_.insert(transfer);
  return false;
}

void CudaBackend::NoteCome(uint64_t transfer, Gate& gate) {
  {
    const std::lock_guard<std::mutex> lock(news_mutex_);
    gate.Open();
    if (awaited_.erase(transfer) == 0) return;
    arrived_.push_back(transfer);
  }
  Wake();
}

bool CudaBackend::AwaitData(const cuda::Call& call, const Place& at, uint64_t transfer, uint64_t size,
                            std::function<int32_t()> run) {
  auto known = expected_.find(transfer);
  if (known == expected_.end()) {
    Expected expected;
    expected.status = Expect(call, *at.context, at.stream->context, transfer, size, &expected);
    known = expected_.emplace(transfer, std::move(expected)).first;
  }
  // A name that is used twice is no good to either.
  if (waiting_writes_.count(transfer) != 0) known->second.status = CUDA_ERROR_INVALID_VALUE;
  if (known->second.status != 0 || HasCome(transfer, known->second)) return false;
  WaitingWrite& write = waiting_writes_[transfer];
  write.header.opcode = call.opcode;
  write.header.flags = call.flags;
  write.header.seq = call.seq;
  write.hold = HoldStream(*at.stream, /*acts=*/true);
  write.run = std::move(run);
  concluded_later_ = true;
  return true;
}

// --- room in the driver's queue

void CudaBackend::RunsAhead(const Place& at) {
  StreamState& stream = *at.stream;
  // What is captured is given to nobody, and an event would become a part of it.
  if (captures()) return stream.ahead.Skip();
  stream.ahead.Look([&](const auto& mark) { return driver_.cuEventQuery(mark->native()) != CUDA_ERROR_NOT_READY; });
  std::shared_ptr<const PooledEvent> mark = PooledEvent::Take(at.context->events);
  if (mark == nullptr || driver_.cuEventRecord(mark->native(), at.native()) != CUDA_SUCCESS) return stream.ahead.Skip();
  stream.ahead.Put(std::move(mark));
  if (!stream.ahead.full()) return;
  const std::shared_ptr<const PooledEvent> resume = stream.ahead.ResumeAt();
  waits_->OnEvent(
      at.context->native, resume->native(), resume, [this, hold = HoldStream(stream)](CUresult) { ReleaseLater(hold); },
      &stream.lane);
}

// --- room for what is kept

void CudaBackend::TellCrowd() {
  if (crowded_ ? deferral_.few() : deferral_.many()) {
    crowded_ = !crowded_;
    cuda::Crowded notice;
    notice.crowded = crowded_ ? 1 : 0;
    Notify(notice);
  }
  if (!awaiting_room_.empty()) [[unlikely]]
    std::erase_if(awaiting_room_, [&](const auto& each) {
      const RoomFor& stream = each.second;
      const bool waits = deferral_.MustWait(StreamFootprint(stream.context, stream.stream));
      if (crowded_ && waits && !Captures(stream.stream)) return false;
      (void)ReplyStatus(each.first, 0);
      return true;
    });
}

int32_t CudaBackend::AwaitRoom(const cuda::Call& call, const cuda::AwaitRoom& message) {
  awaiting_room_.emplace_back(call, RoomFor{message.context, message.stream});
  TellCrowd();
  return 0;
}

}  // namespace hawser::server::cuda_backend
