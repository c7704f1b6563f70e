// SPDX-License-Identifier: Apache-2.0
#include "interposer/cuda/heap_staging.h"

#include <algorithm>
#include <cstring>
#include <deque>

namespace hawser::cu {
namespace {

/// Bytes of a slot. Small enough that the second copy finds the data in a cache, as all slots together do (measured:
/// 16 slots of 1 MiB cost a third of the rate of large writes).
constexpr uint64_t kSlot = 512u << 10;
constexpr size_t kSlots = 16;
/// Slots that one read has on its way.
constexpr size_t kReadAhead = 4;

}  // namespace

struct HeapStaging::Slot final : guest::ReplySink {
  void OnReply(wire::Bytes payload) override {
    wire::Reader reader(payload);
    const auto got = reader.Get<int32_t>();
    Conclude(reader.failed() ? CUDA_ERROR_UNKNOWN : FromWire(got));
  }
  void OnLost() override { Conclude(Client::Get().Lost()); }
  void Conclude(CUresult result) {
    status = result;
    answered.store(true, std::memory_order_release);
  }

  /// A write is over: to be used again. Under the staging's mutex.
  bool back() const { return on_its_way && answered.load(std::memory_order_acquire); }

  std::byte* data = nullptr;
  uint64_t offset = 0;                ///< In the heap.
  CUresult status = CUDA_SUCCESS;     ///< Of the device's copy.
  std::atomic<bool> answered{false};  ///< The device is done with it.
  bool on_its_way = false;            ///< Left to the server by a write. Guarded by the staging's mutex.
};

HeapStaging& HeapStaging::Get() {
  static auto* staging = new HeapStaging;
  return *staging;
}

bool HeapStaging::Usable() {
  if (!Client::Get().heap_usable()) return false;
  {
    std::lock_guard lock(mutex_);
    if (!slots_.empty()) return true;
  }
  guest::Session* session = Client::Get().session();
  Slot* first = TryTake(session);
  if (first == nullptr) return false;
  Return(session, first);
  return true;
}

HeapStaging::Slot* HeapStaging::TryTake(guest::Session* session) {
  std::lock_guard lock(mutex_);
  if (free_.empty()) {
    for (const auto& slot : slots_) {
      if (!slot->back()) continue;
      slot->on_its_way = false;
      free_.push_back(slot.get());
    }
  }
  if (!free_.empty()) {
    Slot* slot = free_.back();
    free_.pop_back();
    return slot;
  }
  if (slots_.size() >= kSlots) return nullptr;
  const uint64_t offset = session->HeapAllocate(kSlot);
  if (offset == guest::Session::kNoHeap) return nullptr;
  slots_.push_back(std::make_unique<Slot>());
  Slot* slot = slots_.back().get();
  slot->offset = offset;
  slot->data = session->heap_base() + offset;
  return slot;
}

HeapStaging::Slot* HeapStaging::Take(guest::Session* session) {
  for (;;) {
    if (Slot* slot = TryTake(session); slot != nullptr) return slot;
    {
      std::lock_guard lock(mutex_);
      if (slots_.empty()) return nullptr;
      ++waiting_;
    }
    auto free = [this] {
      std::lock_guard lock(mutex_);
      const auto back = [](const auto& slot) { return slot->back(); };
      return !free_.empty() || std::any_of(slots_.begin(), slots_.end(), back);
    };
    const int32_t error = session->WaitUntil(free);
    std::lock_guard lock(mutex_);
    --waiting_;
    if (error != 0) return nullptr;
  }
}

void HeapStaging::Return(guest::Session* session, Slot* slot) {
  bool awaited;
  {
    std::lock_guard lock(mutex_);
    free_.push_back(slot);
    awaited = waiting_ != 0;
  }
  if (awaited) session->Wake();
}

CUresult HeapStaging::Start(StreamCommand& command, Slot* slot, CUdeviceptr address, uint64_t size, bool to_heap) {
  slot->answered.store(false, std::memory_order_relaxed);
  cuda::CopyHeap message;
  message.address = address;
  message.heap_offset = slot->offset;
  message.size = size;
  message.to_heap = to_heap ? 1 : 0;
  CUresult error = command.Send(message);
  if (error == CUDA_SUCCESS) {
    cuda::SynchronizeStream done;
    command.Address(done);
    error = FromWire(command.session()->SendForReply(cuda::SynchronizeStream::kOpcode, done, slot));
  }
  if (error != CUDA_SUCCESS) slot->Conclude(error);
  return error;
}

CUresult HeapStaging::Write(StreamCommand& command, CUdeviceptr to, const std::byte* from, uint64_t size) {
  guest::Session* session = command.session();
  for (uint64_t done = 0; done < size;) {
    const uint64_t part = std::min(kSlot, size - done);
    Slot* slot = Take(session);
    if (slot == nullptr) return session->lost() ? Client::Get().Lost() : CUDA_ERROR_OUT_OF_MEMORY;
    std::memcpy(slot->data, from + done, part);
    const CUresult error = Start(command, slot, to + done, part, /*to_heap=*/false);
    {
      std::lock_guard lock(mutex_);
      slot->on_its_way = true;
    }
    if (error != CUDA_SUCCESS) return error;
    done += part;
    if (done < size) session->Flush();
  }
  return CUDA_SUCCESS;
}

CUresult HeapStaging::Read(StreamCommand& command, std::byte* to, CUdeviceptr from, uint64_t size) {
  struct Part {
    Slot* slot;
    uint64_t offset, size;
  };
  guest::Session* session = command.session();
  std::deque<Part> parts;
  uint64_t asked = 0;
  CUresult error = CUDA_SUCCESS;
  while (asked < size || !parts.empty()) {
    while (error == CUDA_SUCCESS && asked < size && parts.size() < kReadAhead) {
      // The first is waited for; with one at hand, others are a gain and no need.
      Slot* slot = parts.empty() ? Take(session) : TryTake(session);
      if (slot == nullptr) break;
      const Part part{slot, asked, std::min(kSlot, size - asked)};
      parts.push_back(part);
      error = Start(command, slot, from + part.offset, part.size, /*to_heap=*/true);
      asked += part.size;
    }
    if (parts.empty()) return session->lost() ? Client::Get().Lost() : CUDA_ERROR_OUT_OF_MEMORY;
    const Part part = parts.front();
    parts.pop_front();
    auto answered = [&part] { return part.slot->answered.load(std::memory_order_acquire); };
    const int32_t waited = session->WaitUntil(answered);
    if (error == CUDA_SUCCESS) error = waited != 0 ? FromWire(waited) : part.slot->status;
    if (error == CUDA_SUCCESS) std::memcpy(to + part.offset, part.slot->data, part.size);
    if (error != CUDA_SUCCESS) asked = size;
    Return(session, part.slot);
  }
  return error;
}

}  // namespace hawser::cu
