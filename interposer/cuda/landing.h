// SPDX-License-Identifier: Apache-2.0
// Data of asynchronous reads arrives on the bulk channel in its own time, while completions are told on the command
// channel. A completion is shown only once the data that comes before it has landed; so each stream and each event
// knows the reads that come before it; of two reads into the same memory the later one's data goes in last, whichever
// comes first. Also whose data is still to be taken from the program's memory (late_write.h).
//
// Threading: Landing's flag is set by whoever receives bulk data. A Landing and a LandingList have
// locks of their own, leaves.
#ifndef HAWSER_INTERPOSER_CUDA_LANDING_H_
#define HAWSER_INTERPOSER_CUDA_LANDING_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "interposer/cuda/host_region.h"

namespace hawser::cu {

/// One read whose data nobody waits for, or one write whose data has not been taken: in which memory, from its first
/// byte to its last.
struct Landing {
  explicit Landing(const HostRegion& region, bool on_bulk_channel = false)
      : begin(reinterpret_cast<uintptr_t>(region.base)), end(begin + region.extent()), bulk(on_bulk_channel) {}

  const uintptr_t begin, end;
  const bool bulk;  ///< Whoever receives there lands it. Else who receives on the command channel, or is woken there.
  std::atomic<bool> landed{false};

  /// It has landed: what waits for that is called, by this thread.
  void Land();
  /// True: call() will be called when it lands. False: it has landed.
  bool Then(std::function<void()> call);

 private:
  std::mutex mutex_;
  std::vector<std::function<void()>> then_;
};
using Landings = std::vector<std::shared_ptr<Landing>>;

bool AllLanded(const Landings& landings);
/// Calls when all have landed: at once if they have, else by whoever lands the last one.
void WhenLanded(const Landings& landings, const std::function<void()>& call);
/// Those of them that are about memory that is the region's, or lies between its rows.
Landings Overlapping(const Landings& landings, const HostRegion& region);
/// Whether there is one.
bool Overlaps(const Landings& landings, const HostRegion& region);

/// The reads that what comes next in a stream comes after.
class LandingList {
 public:
  void Add(std::shared_ptr<Landing> landing);
  void Add(const Landings& landings);
  /// Replaces what was there: an event's new record.
  void Assign(Landings landings);
  /// None was added since they were looked at and had all landed.
  bool empty() const { return empty_.load(std::memory_order_relaxed); }
  /// How often something was added.
  uint64_t version() const { return version_.load(std::memory_order_acquire); }
  /// Those that have not landed yet. One load when there are none.
  Landings Open();

 private:
  void Prune();

  std::mutex mutex_;
  std::atomic<bool> empty_{true};
  std::atomic<uint64_t> version_{0};
  Landings landings_;
};

}  // namespace hawser::cu

#endif  // HAWSER_INTERPOSER_CUDA_LANDING_H_
