// SPDX-License-Identifier: Apache-2.0
// What a hostile guest puts into its commands: values at random, of which many name something that exists.
#ifndef HAWSER_TESTS_HOSTILE_RANDOM_VALUES_H_
#define HAWSER_TESTS_HOSTILE_RANDOM_VALUES_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
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
  std::vector<std::string> names;
  std::vector<uint64_t> addresses;

  uint64_t Below(uint64_t limit) { return random_() % limit; }
  bool Chance(int percent) { return Below(100) < static_cast<uint64_t>(percent); }

  uint64_t Number(size_t bytes) override {
    if (bytes == 1) return random_();
    const uint64_t kind = Below(100);
    if (kind < 15) return 0;
    if (kind < 55) return 1;
    if (kind < 68) return Below(9);
    // A grid of 2^31 blocks is legal, and takes an hour.
    if (bytes == 4 && kind < 99) return Below(40);
    if (kind < 75) return uint64_t{16} << Below(10);
    if (bytes == 8 && kind < 93 && !addresses.empty())
      return addresses[Below(addresses.size())] + (Chance(70) ? 0 : Below(5000));
    if (kind < 96) return uint64_t{1} << Below(8 * bytes);
    if (bytes == 4 || kind < 98) return ~uint64_t{0} - Below(3);
    return random_();
  }
  wire::Id Id(uint8_t type) override {
    if (Chance(2)) return {};
    if (Chance(1) && !types.empty()) type = types[Below(types.size())];
    // Mostly few, so that many of them exist; and others, as a name is used once.
    const uint64_t kind = Below(100);
    const bool first = std::find(needed.begin(), needed.end(), type) != needed.end() && kind < 95;
    const uint64_t index = first || kind < 30 ? 1 : kind < 70 ? 1 + Below(4) : 1 + Below(60);
    return wire::Id(type, Chance(99) ? 1 : 2, static_cast<uint32_t>(index));
  }
  size_t Count(size_t count) override {
    const uint64_t kind = Below(20);
    if (kind < 9) return count;
    if (kind < 15) return 0;
    if (kind < 18) return 1;
    return Below(4 * count + 1);
  }
  std::string_view Name() override {
    return names.empty() || Chance(15) ? std::string_view() : names[Below(names.size())];
  }

 private:
  std::mt19937_64 random_;
};

}  // namespace hawser::hostile

#endif  // HAWSER_TESTS_HOSTILE_RANDOM_VALUES_H_
