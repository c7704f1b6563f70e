// SPDX-License-Identifier: Apache-2.0
// How long kernels take: for each kernel (by a hash of its code and name) on each device, what a thread of it costs.
// Kept across launches, and, if a file is given, across runs of the server.
//
// Threading: one thread, or the caller's lock.
#ifndef HAWSER_SCHEDULER_CORE_KERNEL_HISTORY_H_
#define HAWSER_SCHEDULER_CORE_KERNEL_HISTORY_H_

#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "wire/status.h"

namespace hawser::scheduler {

struct KernelKey {
  uint64_t kernel = 0;  ///< Hash of the code and the name.
  uint64_t device = 0;  ///< Hash of the device's model.
  bool operator<(const KernelKey& other) const {
    return kernel != other.kernel ? kernel < other.kernel : device < other.device;
  }
};

class KernelHistory {
 public:
  static constexpr size_t kDefaultCapacity = 16384;

  /// Forgets the kernel unused longest when there are more than `capacity`.
  explicit KernelHistory(size_t capacity = kDefaultCapacity) : capacity_(capacity) {}

  /// A group of `threads` took `ns`. Measurements of nothing are ignored. One in eight of a rate is taken over at once,
  /// so that single outliers do not rule; a rate more than four times off replaces the old one.
  void Record(const KernelKey& key, uint64_t threads, uint64_t ns);
  /// Threads per second; nothing: never measured.
  std::optional<double> Rate(const KernelKey& key) const;
  /// How long `threads` of it will take, in nanoseconds.
  std::optional<uint64_t> Estimate(const KernelKey& key, uint64_t threads) const;
  size_t size() const { return entries_.size(); }

  /// As text, oldest first: "hawser-history 1", then a line "kernel device ns_per_thread measurements" for each.
  std::string Save() const;
  /// Adds what Save() wrote. A file of another version, or broken, is refused as a whole; longer than 4 MiB as well.
  wire::Status Load(std::string_view text);
  /// Writes to a file next to it and renames, so that the old one stays whole if this fails.
  wire::Status SaveTo(const std::string& path) const;
  /// A file that is not there is an empty history.
  wire::Status LoadFrom(const std::string& path);

 private:
  struct Entry {
    double ns_per_thread = 0;
    uint64_t measurements = 0;
    std::list<KernelKey>::iterator age;
  };

  Entry& Touch(const KernelKey& key);

  const size_t capacity_;
  std::map<KernelKey, Entry> entries_;
  std::list<KernelKey> by_age_;  ///< Unused longest first.
};

}  // namespace hawser::scheduler

#endif  // HAWSER_SCHEDULER_CORE_KERNEL_HISTORY_H_
