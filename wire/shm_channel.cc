// SPDX-License-Identifier: Apache-2.0
#include "wire/shm_channel.h"

#include <poll.h>
#include <sched.h>

#include <algorithm>

#include "wire/deadline.h"
#include "wire/futex.h"
#include "wire/spin.h"

namespace hawser::wire {
namespace {

/// A sleeper looks at the peer's liveness this often.
constexpr std::chrono::milliseconds kSlice{100};

Status Closed() { return Status(Code::kClosed, "the shared-memory channel has ended"); }
Status Broken() { return Status(Code::kProtocol, "the peer published an impossible position in a shared-memory ring"); }

}  // namespace

ShmChannel::ShmChannel(std::shared_ptr<ShmMapping> mapping, ChannelControl* control, RingPlace in, RingPlace out,
                       int liveness)
    : mapping_(std::move(mapping)),
      control_(control),
      liveness_(liveness),
      in_(in.control, in.data, in.capacity),
      out_(out.control, out.data, out.capacity) {}

ShmChannel::~ShmChannel() {
  if (mapping_ != nullptr && mapping_->MappedHere()) Shutdown();
}

Result<size_t> ShmChannel::TryRead(std::span<std::byte> buffer) {
  if (mapping_ == nullptr) [[unlikely]]
    return Closed();
  size_t got = in_.Read(buffer);
  if (got != 0 || buffer.empty()) [[likely]]
    return got;
  if (Ended(std::memory_order_acquire)) [[unlikely]] {
    // The peer may have written and then ended the channel since we looked.
    got = in_.Read(buffer);
    if (got == 0 && !in_.broken()) return Closed();
  }
  if (in_.broken()) [[unlikely]]
    return Broken();
  return got;
}

Result<size_t> ShmChannel::TryWrite(Bytes bytes) {
  if (mapping_ == nullptr || Ended(std::memory_order_relaxed)) [[unlikely]]
    return Closed();
  const size_t taken = out_.Write(bytes);
  if (out_.broken()) [[unlikely]]
    return Broken();
  return taken;
}

template <typename Ready>
Status ShmChannel::WaitUntil(std::atomic<uint32_t>& parked, SpinPolicy spin,
                             std::optional<std::chrono::nanoseconds> timeout, Ready ready) {
  if (ready()) return {};
  const Deadline deadline(timeout);
  if (spin.spin.count() > 0 && SpinUntil(deadline.Left(spin.spin), ready)) return {};
  Deadline next_check(kSlice);
  for (;;) {
    parked.store(1, std::memory_order_seq_cst);
    if (!ready()) FutexWait(parked, 1, deadline.Left(kSlice));
    parked.store(0, std::memory_order_relaxed);
    if (ready()) return {};
    // The clock decides, not the reason why the sleep ended: a hostile peer can end it at will.
    const bool timed_out = deadline.Passed();
    if (timed_out || next_check.Passed()) {
      CheckPeer();
      if (ready()) return {};
      next_check = Deadline(kSlice);
    }
    if (timed_out) return Status(Code::kTimeout, "nothing happened on the shared-memory channel in time");
  }
}

Status ShmChannel::WaitReadable(SpinPolicy spin, std::optional<std::chrono::nanoseconds> timeout) {
  if (mapping_ == nullptr) return {};
  Status status = WaitUntil(in_.parked(), spin, timeout, [this] {
    return in_.HasBytes() || in_.broken() || Ended(std::memory_order_seq_cst) ||
           interrupted_.load(std::memory_order_seq_cst);
  });
  // Taken by an exchange, so that the reader sees what the interrupter did before. One that comes later stays.
  if (interrupted_.load(std::memory_order_relaxed)) interrupted_.exchange(false, std::memory_order_seq_cst);
  return status;
}

void ShmChannel::InterruptRead() {
  if (mapping_ == nullptr) return;
  interrupted_.store(true, std::memory_order_seq_cst);
  if (in_.parked().exchange(0, std::memory_order_seq_cst) != 0) FutexWake(in_.parked());
}

Status ShmChannel::WaitWritable(std::optional<std::chrono::nanoseconds> timeout) {
  if (mapping_ == nullptr) return {};
  return WaitUntil(out_.parked(), SpinPolicy{}, timeout,
                   [this] { return out_.HasRoom() || out_.broken() || Ended(std::memory_order_seq_cst); });
}

void ShmChannel::CheckPeer() {
  if (liveness_ < 0) return;
  pollfd entry{liveness_, POLLRDHUP, 0};
  if (::poll(&entry, 1, 0) > 0) ended_.store(true, std::memory_order_seq_cst);
}

void ShmChannel::Shutdown() {
  if (mapping_ == nullptr) return;
  ended_.store(true, std::memory_order_seq_cst);
  control_->ended.store(1, std::memory_order_seq_cst);
  for (RingControl* ring : {&control_->up, &control_->down}) {
    for (std::atomic<uint32_t>* parked : {&ring->consumer_parked, &ring->producer_parked}) {
      parked->store(0, std::memory_order_seq_cst);
      FutexWake(*parked);
    }
  }
}

void ShmChannel::Abandon() {
  ended_.store(true, std::memory_order_seq_cst);
  mapping_.reset();
}

}  // namespace hawser::wire
