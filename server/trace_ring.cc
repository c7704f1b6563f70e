// SPDX-License-Identifier: Apache-2.0
#include "server/trace_ring.h"

#include <time.h>

#include <algorithm>
#include <cstring>

namespace hawser::server {

static_assert(std::atomic<uint64_t>::is_always_lock_free);

uint64_t TraceRing::Now() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

void TraceRing::Record(TraceRingKind kind, uint32_t track, uint64_t begin_ns, uint64_t end_ns, std::string_view name) {
  const uint64_t number = next_.fetch_add(1, std::memory_order_relaxed);
  Slot& slot = slots_[number % kSlots];
  // A thread that slept for a whole round may still be writing here; one of the two events is given up then.
  uint64_t mark = slot.mark.load(std::memory_order_relaxed);
  if (mark == kBusy || mark > number + 1 ||
      !slot.mark.compare_exchange_strong(mark, kBusy, std::memory_order_relaxed)) {
    return;
  }
  // Whoever sees a new word also sees that the old mark is gone: each word is a release. (Not one fence for all of
  // them: ThreadSanitizer knows none.)
  slot.begin_ns.store(begin_ns, std::memory_order_release);
  slot.end_ns.store(end_ns, std::memory_order_release);
  slot.kind_track.store(uint64_t{static_cast<uint32_t>(kind)} << 32 | track, std::memory_order_release);
  std::array<uint64_t, kNameWords> words{};
  std::memcpy(words.data(), name.data(), std::min(name.size(), kNameBytes));
  for (size_t i = 0; i < kNameWords; ++i) slot.name[i].store(words[i], std::memory_order_release);
  slot.mark.store(number + 1, std::memory_order_release);
}

void TraceReader::SkipTo(const TraceRing& ring) { next_ = end_ = ring.next_.load(std::memory_order_relaxed); }

uint64_t TraceReader::Prepare(const TraceRing& ring) {
  const uint64_t written = ring.next_.load(std::memory_order_acquire);
  // Backwards: no worker of ours does that. Begin anew from what it says.
  if (written - next_ > uint64_t{1} << 62) next_ = written;
  uint64_t lost = 0;
  if (written - next_ > TraceRing::kSlots) {
    lost = written - next_ - TraceRing::kSlots;
    next_ = written - TraceRing::kSlots;
  }
  end_ = written;
  // A number to show; a ring that jumps must not make the sum overflow.
  return std::min<uint64_t>(lost, uint64_t{1} << 32);
}

bool TraceReader::Read(const TraceRing& ring, uint64_t number, TraceRingEvent* event) {
  const TraceRing::Slot& slot = ring.slots_[number % TraceRing::kSlots];
  if (slot.mark.load(std::memory_order_acquire) != number + 1) return false;
  event->begin_ns = slot.begin_ns.load(std::memory_order_acquire);
  event->end_ns = slot.end_ns.load(std::memory_order_acquire);
  const uint64_t kind_track = slot.kind_track.load(std::memory_order_acquire);
  std::array<uint64_t, TraceRing::kNameWords> words;
  for (size_t i = 0; i < words.size(); ++i) words[i] = slot.name[i].load(std::memory_order_acquire);
  if (slot.mark.load(std::memory_order_relaxed) != number + 1) return false;
  const auto kind = static_cast<uint32_t>(kind_track >> 32);
  if (kind < static_cast<uint32_t>(TraceRingKind::kKernel) || kind > static_cast<uint32_t>(TraceRingKind::kCopy)) {
    return false;
  }
  event->kind = static_cast<TraceRingKind>(kind);
  event->track = static_cast<uint32_t>(kind_track);
  event->end_ns = std::max(event->end_ns, event->begin_ns);
  char text[TraceRing::kNameBytes];
  std::memcpy(text, words.data(), sizeof(text));
  event->name.assign(text, ::strnlen(text, sizeof(text)));
  for (char& c : event->name) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  }
  return true;
}

}  // namespace hawser::server
