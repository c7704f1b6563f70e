// SPDX-License-Identifier: Apache-2.0
// What a worker found out of a device by trying, so that the tenant's next worker need not try again.
#ifndef HAWSER_SERVER_DEVICE_FINDINGS_H_
#define HAWSER_SERVER_DEVICE_FINDINGS_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace hawser::server {

/// A few answers of yes and no, by a key that names device, driver and question. Part of SessionStatsPage, so of
/// standard layout, and all zero is empty.
/// Threading: any; each answer is one word. Adding at the same time may lose one, which then is found out again.
/// Trust: belongs to one tenant, because a guest that took its worker over can write anything.
class DeviceFindings {
 public:
  static constexpr size_t kMost = 8;

  /// Nothing: nobody has tried. The key's two lowest bits do not count.
  std::optional<bool> Find(uint64_t key) const {
    for (const std::atomic<uint64_t>& place : words_) {
      const uint64_t word = place.load(std::memory_order_relaxed);
      if ((word & kKnown) != 0 && (word | kBits) == (key | kBits)) return (word & kYes) != 0;
    }
    return std::nullopt;
  }
  /// The first answer for a key stays. Beyond kMost nothing happens.
  void Add(uint64_t key, bool answer) { Put((key & ~kBits) | kKnown | (answer ? kYes : 0)); }
  /// Adds what `other` knows.
  void Take(const DeviceFindings& other) {
    for (const std::atomic<uint64_t>& place : other.words_) {
      if (const uint64_t word = place.load(std::memory_order_relaxed); (word & kKnown) != 0) Put(word);
    }
  }

 private:
  static constexpr uint64_t kYes = 1, kKnown = 2, kBits = 3;

  void Put(uint64_t word) {
    if (Find(word)) return;
    for (std::atomic<uint64_t>& place : words_) {
      if (place.load(std::memory_order_relaxed) != 0) continue;
      place.store(word, std::memory_order_relaxed);
      return;
    }
  }

  std::array<std::atomic<uint64_t>, kMost> words_;
};

}  // namespace hawser::server

#endif  // HAWSER_SERVER_DEVICE_FINDINGS_H_
