// SPDX-License-Identifier: Apache-2.0
// Whatever a worker writes into its page, and whenever: the scheduler's books stay right, and others get the device.
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <string>

#include "tests/unit/scheduler/hostile_world.h"

namespace {

using hawser::scheduler::EpochOf;
using hawser::scheduler::GrantPage;
using hawser::scheduler::MakePiece;
using hawser::scheduler::PiecesOf;

constexpr uint64_t kMaxUnitNs = 1'000'000;

/// Bytes without end: after the last one they begin anew.
class Bytes {
 public:
  Bytes(const uint8_t* data, size_t size) : data_(data), size_(size) {}
  uint8_t Next() { return data_[at_++ % size_]; }
  /// A value of any magnitude from two bytes.
  uint64_t Value() {
    const uint8_t kind = Next();
    const uint64_t small = Next();
    switch (kind % 4) {
      case 0:
        return small;
      case 1:
        return UINT64_MAX - small;
      case 2:
        return MakePiece(small << (kind / 4 % 48));
      default:
        return small << (kind / 4);
    }
  }

 private:
  const uint8_t* const data_;
  const size_t size_;
  size_t at_ = 0;
};

void Must(const std::string& wrong) {
  if (wrong.empty()) return;
  std::fprintf(stderr, "%s\n", wrong.c_str());
  std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace hostile = hawser::scheduler::hostile;
  if (size < 4) return 0;
  Bytes bytes(data, size);
  static constexpr const char* kPolicies[] = {"fair", "fair", "drr", "band", "slo", "split", "credit", "rr", "prio"};
  const std::string policy = kPolicies[bytes.Next() % std::size(kPolicies)];
  hostile::World world(policy, 1 + bytes.Next() % 2, kMaxUnitNs);
  world.lie = [&] {
    GrantPage& page = *world.page;
    std::atomic<uint64_t>* const words[] = {&page.active,       &page.demand,       &page.tail,
                                            &page.used_ns,      &page.pending_ns,   &page.pending_count,
                                            &page.next_unit_ns, &page.last_unit_ns, &page.oldest_arrival_ns,
                                            &page.mem_resident, &page.mem_total,    &page.word,
                                            &page.spent_epoch,  &page.active,       &page.tail,
                                            &page.used_ns};
    const uint8_t what = bytes.Next();
    std::atomic<uint64_t>& word = *words[what % std::size(words)];
    if (what < 128) {
      word = bytes.Value();
    } else if (what < 160) {
      page.spent_epoch = EpochOf(page.word);
    } else if (what < 192) {
      page.used_ns += hostile::kStepNs;
    } else if (what < 200) {
      world.device_is_kept = true;
    } else if (what < 220) {
      page.active = page.tail = 0;
      world.device_is_kept = false;
    }
    // Who keeps the device and says that it does not cannot be known: then somebody else is blamed.
    const hawser::scheduler::Tenant* holder = world.arbiter().scheduler().holder();
    const bool holds = holder != nullptr && holder->id == world.liars();
    world.device_is_kept = world.device_is_kept && ((holds && PiecesOf(page.active) != 0) || PiecesOf(page.tail) != 0);
  };
  const bool answers_rings = bytes.Next() % 2 == 0;
  for (int i = 0; i < 1000; ++i) {
    if (answers_rings) world.bell->on_ring = [&world] { world.page->spent_epoch = EpochOf(world.page->word); };
    world.Step();
  }
  Must(world.Wrong());
  if (world.wrongly_blamed != 0) Must(std::string("somebody else was blamed under ").append(policy));
  // Another policy may let somebody wait for a second, until `fair` takes its place.
  // Each worker of the liar's, of which one comes as soon as one was ended, can keep the device until it is known.
  const uint64_t each = hawser::scheduler::KeptTime::kMostPieces * kMaxUnitNs +
                        hawser::scheduler::KeptTime::kWorth * hawser::scheduler::PolicyHostOptions().default_slice_ns;
  const uint64_t most = (policy == "fair" ? 0 : 1000) * hostile::kMs + 2 * hawser::scheduler::UsedTime::kMostLossNs +
                        (static_cast<uint64_t>(world.runaways) + 1) * each;
  if (world.longest_wait_ns > most)
    Must(std::string(policy).append(" lets wait for ").append(std::to_string(world.longest_wait_ns)));
  return 0;
}
