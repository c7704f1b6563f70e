// SPDX-License-Identifier: Apache-2.0
// What a hostile guest puts into its commands: values at random, of which many name something that exists.
#ifndef HAWSER_TESTS_HOSTILE_RANDOM_VALUES_H_
#define HAWSER_TESTS_HOSTILE_RANDOM_VALUES_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <random>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "proto/sample_arena.h"
#include "wire/id.h"

namespace hawser::hostile {

/// The same seed gives the same values. One thread.
class RandomValues final : public proto::SampleValues {
 public:
  explicit RandomValues(uint64_t seed) : random_(seed) {}

  /// Kinds of handles, what functions and variables are called, and addresses that are worth a try.
  std::vector<uint8_t> types;
  /// Of these the first is meant nearly always: what most commands need.
  std::vector<uint8_t> needed;
  /// Of this kind none often does as well as one.
  uint8_t often_none = 0;
  std::vector<std::string> names;
  std::vector<uint64_t> addresses;
  /// What fields of this name mostly are, numbers or bytes; so many bytes they mostly have.
  std::map<std::string, std::vector<uint64_t>, std::less<>> usual;
  std::map<std::string, std::vector<size_t>, std::less<>> lengths;
  std::map<std::string, std::function<void(std::span<std::byte>)>, std::less<>> contents;

  uint64_t Below(uint64_t limit) { return random_() % limit; }
  bool Chance(int percent) { return Below(100) < static_cast<uint64_t>(percent); }

  uint64_t Number(size_t bytes, std::string_view field) override {
    if (bytes == 1) return random_();
    if (const auto known = usual.find(field); known != usual.end() && Chance(80)) return OneOf(known->second);
    if (bytes == 8 && field.ends_with("address") && !addresses.empty() && Chance(80)) return Address();
    const uint64_t kind = Below(100);
    if (kind < 15) return 0;
    if (kind < 55) return 1;
    if (kind < 68) return Below(9);
    // A grid of 2^31 blocks is legal, and takes an hour.
    if (bytes == 4 && kind < 99) return Below(40);
    if (kind < 75) return uint64_t{16} << Below(10);
    if (bytes == 8 && kind < 93 && !addresses.empty()) return Address();
    if (kind < 96) return uint64_t{1} << Below(8 * bytes);
    if (bytes == 4 || kind < 98) return ~uint64_t{0} - Below(3);
    return random_();
  }
  uint64_t OneOf(std::span<const uint64_t> legal) override { return legal[Below(legal.size())]; }
  uint64_t Bits(uint64_t legal) override {
    return Chance(50) ? 0 : random_() & (Chance(50) ? legal : random_() & legal);
  }
  wire::Id Id(uint8_t type, bool creates) override {
    if (creates && Chance(80)) {
      Names& names_of = names_of_[type];
      if (names_of.next <= kLastNew) {
        const wire::Id id(type, 1, names_of.next++);
        drawn_.insert(id.raw());
        return id;
      }
    }
    if (Chance(type == often_none && !creates ? 30 : 2)) return {};
    const bool is_needed = std::find(needed.begin(), needed.end(), type) != needed.end();
    if (!creates && !is_needed && Chance(80)) {
      const std::deque<uint32_t>& made = names_of_[type].made;
      if (!made.empty()) return wire::Id(type, 1, made[Below(made.size())]);
    }
    if (Chance(1) && !types.empty()) type = types[Below(types.size())];
    // Mostly few, so that many of them exist; and others, as a name is used once.
    const uint64_t kind = Below(100);
    const bool first = is_needed && kind < 95;
    const uint64_t index = first || kind < 30 ? 1 : kind < 70 ? 1 + Below(4) : 1 + Below(60);
    return wire::Id(type, Chance(99) ? 1 : 2, static_cast<uint32_t>(index));
  }
  size_t Count(size_t count, std::string_view field) override {
    if (const auto known = lengths.find(field); known != lengths.end() && Chance(85))
      return known->second[Below(known->second.size())];
    const uint64_t kind = Below(20);
    if (kind < 9) return count;
    if (kind < 15) return 0;
    if (kind < 18) return 1;
    return Below(4 * count + 1);
  }
  std::string_view Name() override {
    return names.empty() || Chance(15) ? std::string_view() : names[Below(names.size())];
  }
  void Fill(std::span<std::byte> bytes, std::string_view field) override {
    if (const auto known = contents.find(field); known != contents.end() && Chance(85)) return known->second(bytes);
    for (std::byte& each : bytes) each = static_cast<std::byte>(random_());
  }
  /// What was drawn so far will not be sent, but for what Sent() is told: new names may be given again.
  void Discard() {
    drawn_.clear();
    for (auto& [type, names_of] : names_of_) names_of.next = names_of.sent;
  }
  /// This was sent. What it gives a new name exists from now on, if it `succeeded`; otherwise that was a name once, and
  /// is rarely used.
  void Sent(std::span<const std::byte> payload, bool succeeded) {
    for (size_t at = 0; at + sizeof(uint64_t) <= payload.size(); ++at) {
      uint64_t raw = 0;
      std::memcpy(&raw, payload.data() + at, sizeof(raw));
      if (drawn_.erase(raw) == 0) continue;
      const wire::Id id(raw);
      Names& names_of = names_of_[id.type()];
      names_of.sent = std::max(names_of.sent, id.index() + 1);
      if (!succeeded && !Chance(5)) continue;
      names_of.made.push_back(id.index());
      if (names_of.made.size() > kRemembered) names_of.made.pop_front();
    }
  }
  uint64_t Address() { return addresses[Below(addresses.size())] + (Chance(70) ? 0 : Below(5000)); }

 private:
  /// New objects are called so, of each type. A session may have 1,000 of them.
  static constexpr uint32_t kFirstNew = 100, kLastNew = 999;
  static constexpr size_t kRemembered = 8;

  struct Names {
    uint32_t next = kFirstNew;  ///< The next new one.
    uint32_t sent = kFirstNew;  ///< Behind the last one that was sent.
    std::deque<uint32_t> made;  ///< The latest that are somebody's.
  };

  std::mt19937_64 random_;
  std::map<uint8_t, Names> names_of_;
  std::set<uint64_t> drawn_;
};

}  // namespace hawser::hostile

#endif  // HAWSER_TESTS_HOSTILE_RANDOM_VALUES_H_
