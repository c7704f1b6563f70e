// SPDX-License-Identifier: Apache-2.0
// Data of asynchronous reads arrives on the bulk channel in its own time, while completions are told on the command
// channel. A completion is shown only once the data that comes before it has landed; so each stream and each event
// knows the reads that come before it.
//
// Threading: Landing's flag is set by whoever receives bulk data. A LandingList has a lock of its own, a leaf.
#ifndef HAWSER_INTERPOSER_CUDA_LANDING_H_
#define HAWSER_INTERPOSER_CUDA_LANDING_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace hawser::cu {

/// One read whose data nobody waits for.
struct Landing {
  std::atomic<bool> landed{false};
};
using Landings = std::vector<std::shared_ptr<Landing>>;

bool AllLanded(const Landings& landings);

/// The reads that what comes next in a stream comes after.
class LandingList {
 public:
  void Add(std::shared_ptr<Landing> landing);
  void Add(const Landings& landings);
  /// Replaces what was there: an event's new record.
  void Assign(Landings landings);
  /// Those that have not landed yet. One load when there are none.
  Landings Open();

 private:
  void Prune();

  std::mutex mutex_;
  std::atomic<bool> empty_{true};
  Landings landings_;
};

}  // namespace hawser::cu

#endif  // HAWSER_INTERPOSER_CUDA_LANDING_H_
