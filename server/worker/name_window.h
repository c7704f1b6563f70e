// SPDX-License-Identifier: Apache-2.0
// Which names of transfers were used. Guests count upward, so a window behind the largest name is
// enough: memory stays constant however long a session lives and whatever the guest sends.
#ifndef HAWSER_SERVER_WORKER_NAME_WINDOW_H_
#define HAWSER_SERVER_WORKER_NAME_WINDOW_H_

#include <bitset>
#include <cstddef>
#include <cstdint>

namespace hawser::server {

/// Threading: none; the owner's lock guards it.
class NameWindow {
 public:
  static constexpr uint64_t kSize = 1u << 16;

  /// False for names that were marked, and for names so old that nobody knows any more. 0 is no name.
  bool Fresh(uint64_t name) const {
    if (name == 0) return false;
    if (name > highest_) return true;
    return highest_ - name < kSize && !used_[name % kSize];
  }

  void Mark(uint64_t name) {
    if (name > highest_) {
      // Names that are skipped may still come; names that leave the window are gone for good.
      if (name - highest_ >= kSize) {
        used_.reset();
      } else {
        for (uint64_t skipped = highest_ + 1; skipped < name; ++skipped) used_[skipped % kSize] = false;
      }
      highest_ = name;
    }
    used_[name % kSize] = true;
  }

 private:
  uint64_t highest_ = 0;
  std::bitset<kSize> used_;
};

}  // namespace hawser::server

#endif  // HAWSER_SERVER_WORKER_NAME_WINDOW_H_
