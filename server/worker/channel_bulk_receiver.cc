// SPDX-License-Identifier: Apache-2.0
#include "server/worker/channel_bulk_receiver.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>
#include <vector>

namespace hawser::server {
namespace {

using std::chrono::steady_clock;

constexpr int32_t kOutOfResources = -5;   // CL_OUT_OF_RESOURCES
constexpr int32_t kOutOfHostMemory = -6;  // CL_OUT_OF_HOST_MEMORY
constexpr int32_t kInvalidValue = -30;    // CL_INVALID_VALUE
constexpr size_t kMaxTransfers = 1u << 20;
constexpr uint64_t kMaxTransferSize = uint64_t{1} << 48;
constexpr uint64_t kMinStaging = 4096;

std::string Name(uint64_t transfer) { return "transfer " + std::to_string(transfer); }

}  // namespace

ChannelBulkReceiver::ChannelBulkReceiver(wire::Channel* channel, const Options& options,
                                         std::function<void(const std::string&)> on_violation)
    : channel_(channel), options_(options), on_violation_(std::move(on_violation)) {
  account_.limit = options.staging_memory;
}

ChannelBulkReceiver::~ChannelBulkReceiver() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  channel_->Shutdown();
  changed_.notify_all();
  if (receiver_.joinable()) receiver_.join();
  if (finisher_.joinable()) finisher_.join();
}

// ---------------------------------------------------------------------------------------------
// What the backend calls

bool ChannelBulkReceiver::Expect(uint64_t transfer, uint64_t size, std::byte* target,
                                 std::function<void(int32_t)> done) {
  std::lock_guard lock(mutex_);
  return Announce(transfer, size, target, std::move(done), 0);
}

bool ChannelBulkReceiver::Drop(uint64_t transfer, uint64_t size) {
  std::lock_guard lock(mutex_);
  return Announce(transfer, size, nullptr, nullptr, kOutOfResources);
}

bool ChannelBulkReceiver::Announce(uint64_t transfer, uint64_t size, std::byte* target,
                                   std::function<void(int32_t)> done, int32_t failure) {
  if (size == 0 || size > kMaxTransferSize || !names_.Fresh(transfer) || table_.size() >= kMaxTransfers) return false;
  names_.Mark(transfer);
  const auto [at, fresh] = table_.try_emplace(transfer);
  Transfer& entry = at->second;
  entry.announced = true;
  entry.size = size;
  entry.target = target;
  entry.done = std::move(done);
  if (failure != 0) {
    entry.failed = true;
    entry.failure = failure;
    if (!entry.busy) entry.staging.Release();  // Else the receiver thread is reading into it.
  }
  if (ended_) {
    entry.failed = entry.ended = true;
    entry.failure = kOutOfResources;
  } else if (!fresh && !entry.failed && (entry.received > size || entry.ended != (entry.received == size))) {
    entry.failed = true;  // What came before the announcement does not fit it.
    entry.failure = kInvalidValue;
  }
  // `done` must not run within this call, so somebody else completes what is there already.
  if (!fresh || ended_) FinishLater(transfer);
  if (!receiver_.joinable() && !stop_) receiver_ = std::thread([this] { Run(); });
  changed_.notify_all();
  return true;
}

void ChannelBulkReceiver::SetTarget(uint64_t transfer, std::byte* target) {
  Lock lock(mutex_);
  const auto at = table_.find(transfer);
  if (at == table_.end() || !at->second.announced || at->second.failed || at->second.target != nullptr) return;
  at->second.target = target;
  changed_.notify_all();
  MoveStaged(&at->second, lock);
  FinishIfOver(transfer, lock);
}

int32_t ChannelBulkReceiver::Receive(uint64_t transfer, uint64_t size, std::byte* target) {
  bool over = false;
  int32_t result = 0;
  const bool expected = Expect(transfer, size, target, [&](int32_t status) {
    std::lock_guard lock(mutex_);
    over = true;
    result = status;
    changed_.notify_all();
  });
  if (!expected) return kInvalidValue;
  Lock lock(mutex_);
  ++receiving_;
  changed_.notify_all();
  changed_.wait(lock, [&] { return over; });
  --receiving_;
  return result;
}

uint64_t ChannelBulkReceiver::staged() const {
  std::lock_guard lock(mutex_);
  return account_.used;
}

size_t ChannelBulkReceiver::pending() const {
  std::lock_guard lock(mutex_);
  return table_.size();
}

// ---------------------------------------------------------------------------------------------
// The receiver thread

void ChannelBulkReceiver::Run() {
  std::string violation;
  for (;;) {
    wire::BulkHeader header;
    if (!channel_->ReadAll({reinterpret_cast<std::byte*>(&header), sizeof(header)}).ok()) break;
    if (!Handle(header, &violation)) break;
    options_.stats->bulk_up_bytes.Add(sizeof(header) + ((header.flags & wire::kBulkAbort) != 0 ? 0 : header.size));
  }
  EndAll();
  if (!violation.empty() && on_violation_) on_violation_(violation);
}

bool ChannelBulkReceiver::Handle(const wire::BulkHeader& header, std::string* violation) {
  const bool abort = (header.flags & wire::kBulkAbort) != 0, last = (header.flags & wire::kBulkLast) != 0;
  if ((header.flags & ~(wire::kBulkLast | wire::kBulkAbort)) != 0 || header.reserved != 0 || (abort && last)) {
    *violation = Name(header.transfer) + ": unknown flags in a bulk header";
    return false;
  }
  if (header.size > wire::kMaxBulkChunk || (header.size == 0) != abort) {
    *violation = Name(header.transfer) + ": a chunk of " + std::to_string(header.size) + " bytes";
    return false;
  }
  Lock lock(mutex_);
  Transfer* entry = FindOrWait(header.transfer, lock, violation);
  if (entry == nullptr) return false;
  if (entry->ended) {
    *violation = Name(header.transfer) + ": more data behind the last chunk";
    return false;
  }
  if (abort) {
    entry->ended = true;
    if (!entry->failed) {
      const int64_t code = static_cast<int64_t>(header.offset);
      entry->failed = true;
      entry->failure = code < 0 && code > INT32_MIN ? static_cast<int32_t>(code) : kOutOfResources;
      entry->staging.Release();
    }
    FinishIfOver(header.transfer, lock);
    return true;
  }
  // Of a transfer that failed here (staging was full), the guest still sends what it announced.
  if (header.offset != entry->received) {
    *violation = Name(header.transfer) + ": bytes for offset " + std::to_string(header.offset) + " where offset " +
                 std::to_string(entry->received) + " is next";
    return false;
  }
  if (entry->announced && header.size > entry->size - std::min(entry->size, entry->received)) {
    *violation = Name(header.transfer) + ": more bytes than the " + std::to_string(entry->size) + " announced";
    return false;
  }
  if (entry->announced && last != (entry->received + header.size == entry->size)) {
    *violation = Name(header.transfer) + ": the last chunk is not where the announced " + std::to_string(entry->size) +
                 " bytes end";
    return false;
  }
  if (std::byte* place = Place(entry, header.size, lock)) {
    entry->busy = true;
    lock.unlock();
    const bool read = channel_->ReadAll({place, header.size}).ok();
    lock.lock();
    entry->busy = false;
    changed_.notify_all();
    if (!read) return false;
  } else {
    if (stop_) return false;
    lock.unlock();
    if (!Discard(header.size)) return false;
    lock.lock();
  }
  entry->received += header.size;
  entry->ended = last;
  // The announcement may have come while the bytes did.
  if (entry->announced && !entry->failed &&
      (entry->received > entry->size || last != (entry->received == entry->size))) {
    *violation = Name(header.transfer) + ": its bytes and its announcement of " + std::to_string(entry->size) +
                 " bytes do not agree";
    return false;
  }
  MoveStaged(entry, lock);
  FinishIfOver(header.transfer, lock);
  return true;
}

ChannelBulkReceiver::Transfer* ChannelBulkReceiver::FindOrWait(uint64_t name, Lock& lock, std::string* violation) {
  for (;;) {
    if (stop_) return nullptr;
    if (const auto at = table_.find(name); at != table_.end()) {
      if (!at->second.busy) return &at->second;
      changed_.wait(lock);  // Looked up again afterwards: whoever is busy with it may remove it.
      continue;
    }
    if (!names_.Fresh(name)) {
      *violation = Name(name) + ": data for a name that is used up";
      return nullptr;
    }
    if (receiving_ > 0) {
      if (table_.size() >= kMaxTransfers) {
        *violation = Name(name) + ": too many transfers that no command announced";
        return nullptr;
      }
      return &table_[name];
    }
    changed_.wait(lock);
  }
}

std::byte* ChannelBulkReceiver::Place(Transfer* entry, uint64_t size, Lock& lock) {
  const auto deadline = steady_clock::now() + options_.staging_patience;
  for (;;) {
    if (stop_ || entry->failed) return nullptr;
    if (entry->busy) {
      changed_.wait(lock);
      continue;
    }
    if (entry->target != nullptr) {
      MoveStaged(entry, lock);
      // An announcement that came meanwhile may be smaller than this chunk: then it is dropped, and
      // the caller's check ends the session.
      if (size > entry->size - std::min(entry->size, entry->received)) return nullptr;
      return entry->target + entry->received;
    }
    const uint64_t need = entry->received + size;
    const uint64_t room =
        entry->announced ? std::max(entry->size, need) : std::max({need, 2 * entry->staging.capacity(), kMinStaging});
    if (need <= entry->staging.capacity() || entry->staging.Reserve(&account_, room)) {
      return entry->staging.data() + entry->received;
    }
    // Whoever waits in Receive() may wait for what is behind this chunk.
    if (receiving_ > 0 || steady_clock::now() >= deadline) {
      entry->failed = true;
      entry->failure = kOutOfHostMemory;
      entry->staging.Release();
      changed_.notify_all();
      if (std::function<void(int32_t)> done = std::exchange(entry->done, nullptr)) {
        // Not ended, so the entry stays in the table while the lock is released.
        lock.unlock();
        done(kOutOfHostMemory);
        lock.lock();
      }
      return nullptr;
    }
    changed_.wait_until(lock, deadline);
  }
}

bool ChannelBulkReceiver::Discard(uint64_t size) {
  std::array<std::byte, 16384> waste;
  while (size > 0) {
    const size_t part = static_cast<size_t>(std::min<uint64_t>(size, waste.size()));
    if (!channel_->ReadAll({waste.data(), part}).ok()) return false;
    size -= part;
  }
  return true;
}

void ChannelBulkReceiver::EndAll() {
  std::vector<std::function<void(int32_t)>> owed;
  {
    std::lock_guard lock(mutex_);
    ended_ = true;
    for (auto& [name, entry] : table_) {
      // Complete and only waiting for its target: the data is there.
      if (entry.ended && !entry.failed) continue;
      entry.ended = true;
      if (!entry.failed) {
        entry.failed = true;
        entry.failure = kOutOfResources;
      }
      if (entry.done) owed.push_back(std::exchange(entry.done, nullptr));
    }
    changed_.notify_all();
  }
  for (const auto& done : owed) done(kOutOfResources);
}

// ---------------------------------------------------------------------------------------------
// Completion, on any thread

void ChannelBulkReceiver::MoveStaged(Transfer* entry, Lock& lock) {
  if (entry->busy || entry->failed || entry->target == nullptr || entry->staging.data() == nullptr) return;
  StagingBuffer staging = std::move(entry->staging);
  const uint64_t size = std::min(entry->received, entry->size);
  std::byte* const target = entry->target;
  entry->busy = true;
  lock.unlock();
  std::memcpy(target, staging.data(), size);
  lock.lock();
  staging.Release();
  entry->busy = false;
  changed_.notify_all();
}

void ChannelBulkReceiver::FinishIfOver(uint64_t name, Lock& lock) {
  const auto at = table_.find(name);
  if (at == table_.end()) return;
  Transfer& entry = at->second;
  if (entry.busy || !entry.announced || !entry.ended) return;
  if (!entry.failed && (entry.target == nullptr || entry.staging.data() != nullptr)) return;
  const std::function<void(int32_t)> done = std::move(entry.done);
  const int32_t status = entry.failed ? entry.failure : 0;
  table_.erase(at);
  lock.unlock();
  if (done) done(status);
}

void ChannelBulkReceiver::FinishLater(uint64_t name) {
  to_finish_.push_back(name);
  if (!finisher_.joinable() && !stop_) finisher_ = std::thread([this] { FinishLoop(); });
  changed_.notify_all();
}

void ChannelBulkReceiver::FinishLoop() {
  Lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return stop_ || !to_finish_.empty(); });
    if (to_finish_.empty()) return;
    const uint64_t name = to_finish_.front();
    to_finish_.pop_front();
    const auto at = table_.find(name);
    if (at == table_.end()) continue;
    Transfer& entry = at->second;
    if (entry.failed && !entry.ended) {
      // More bytes will come and be dropped; whoever announced it need not wait for them.
      const std::function<void(int32_t)> done = std::exchange(entry.done, nullptr);
      const int32_t status = entry.failure;
      lock.unlock();
      if (done) done(status);
      lock.lock();
      continue;
    }
    // A busy entry is completed by the thread that is busy with it.
    MoveStaged(&entry, lock);
    FinishIfOver(name, lock);
    if (!lock.owns_lock()) lock.lock();
  }
}

}  // namespace hawser::server
