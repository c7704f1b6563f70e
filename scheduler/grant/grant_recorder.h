// SPDX-License-Identifier: Apache-2.0
// Remembers who had a grant from when to when, for a timeline.
//
// Threading: one thread at a time.
#ifndef HAWSER_SCHEDULER_GRANT_GRANT_RECORDER_H_
#define HAWSER_SCHEDULER_GRANT_GRANT_RECORDER_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace hawser::scheduler {

/// One worker's part of a grant.
struct GrantRecord {
  uint64_t door = 0;  ///< DoorId.
  uint64_t begin_ns = 0;
  uint64_t end_ns = 0;  ///< 0: it goes on; it is told once more when it has ended.
  bool open = false;    ///< Its tenant was alone.
};

struct GrantRecords {
  std::vector<GrantRecord> records;  ///< In the order of their ends; those that go on last.
  uint64_t lost = 0;                 ///< More ended between two calls than are kept.
};

class GrantRecorder {
 public:
  static constexpr size_t kMost = size_t{1} << 16;

  /// From now on ended grants are kept; what goes on is told (again) by the next Take(). Off: forgets what was kept.
  void Record(bool on) {
    recording_ = on;
    for (auto& [door, current] : current_) current.told = false;
    if (on) return;
    kept_ = GrantRecords();
  }

  void Given(uint64_t door, bool open, uint64_t now_ns) { current_[door] = {now_ns, open, false}; }
  /// Also without a grant.
  void Ended(uint64_t door, uint64_t now_ns) {
    const auto at = current_.find(door);
    if (at == current_.end() || at->second.begin_ns == 0) return;
    if (recording_ && kept_.records.size() >= kMost) {
      ++kept_.lost;
    } else if (recording_) {
      kept_.records.push_back({door, at->second.begin_ns, now_ns, at->second.open});
    }
    at->second.begin_ns = 0;
  }
  /// The door is gone, and its grant with it.
  void Gone(uint64_t door, uint64_t now_ns) {
    Ended(door, now_ns);
    current_.erase(door);
  }

  /// What ended since the last call, and what goes on and was not told yet.
  GrantRecords Take() {
    GrantRecords taken;
    if (!recording_) return taken;
    std::swap(taken, kept_);
    for (auto& [door, current] : current_) {
      if (current.begin_ns == 0 || current.told) continue;
      current.told = true;
      taken.records.push_back({door, current.begin_ns, 0, current.open});
    }
    return taken;
  }

 private:
  struct Current {
    uint64_t begin_ns = 0;  ///< 0: none. Not taken away, so that nothing is allocated for each grant.
    bool open = false;
    bool told = false;
  };
  std::map<uint64_t, Current> current_;
  GrantRecords kept_;
  bool recording_ = false;
};

}  // namespace hawser::scheduler

#endif  // HAWSER_SCHEDULER_GRANT_GRANT_RECORDER_H_
