// SPDX-License-Identifier: Apache-2.0
// How fast kernels run on a device, learnt from their launches, and kept in a file from run to run (what paper 004 left
// as future work). Of the backends and of the simulator.
#ifndef HAWSER_SCHEDULER_CORE_KERNEL_HISTORY_H_
#define HAWSER_SCHEDULER_CORE_KERNEL_HISTORY_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "wire/codec.h"
#include "wire/status.h"

namespace hawser::scheduler {

/// A kernel on a device: 128 bits of SHA-256 of the device's name, the program's source and build options, and the
/// kernel's name.
struct KernelKey {
  std::array<std::byte, 16> bytes{};
  bool operator==(const KernelKey& other) const { return bytes == other.bytes; }
  bool operator<(const KernelKey& other) const { return bytes < other.bytes; }

  /// `program` as ProgramHash() gives it.
  static KernelKey Of(std::string_view device, std::string_view program, std::string_view kernel);
};
/// 32 bytes that stand for source and options.
std::string ProgramHash(std::string_view source, std::string_view options);

/// Rates of at most `capacity` kernels; the one that was used longest ago is forgotten first.
///
/// Threading: any thread; the mutex is a leaf.
class KernelHistory {
 public:
  static constexpr size_t kCapacity = 4096;

  explicit KernelHistory(size_t capacity = kCapacity) : capacity_(capacity) {}

  /// Work-items per nanosecond; 0 when nothing is known.
  double Rate(const KernelKey& key);
  /// How long so many work-items will take, nanoseconds, rounded up, at most 1e18.
  std::optional<uint64_t> Estimate(const KernelKey& key, uint64_t items);
  /// So many work-items took so long on the device. Nothing is learnt from none or from no time.
  void Learn(const KernelKey& key, uint64_t items, uint64_t nanoseconds);
  size_t size() const;
  /// Something was learnt since the last Save() or Load().
  bool changed() const;

  /// Adds what a file knows of kernels that are not known yet. The file is not trusted: damaged or foreign, it is as
  /// if there were none, and the status says so. No file at all is no error.
  wire::Status Load(const std::string& path);
  /// Replaces the file at once (rename), readable by its owner only. Of several writers the last one counts.
  wire::Status Save(const std::string& path);

  /// The file's contents; public for tests and fuzzing.
  std::string Encode() const;
  wire::Status Decode(wire::Bytes bytes);

 private:
  struct Entry {
    double rate = 0;    ///< Work-items per nanosecond, weighted towards the newest.
    uint64_t used = 0;  ///< Counts up with each use.
  };
  void Keep(const KernelKey& key, double rate);

  const size_t capacity_;
  mutable std::mutex mutex_;
  std::map<KernelKey, Entry> entries_;
  uint64_t clock_ = 0;
  bool changed_ = false;
};

}  // namespace hawser::scheduler

#endif  // HAWSER_SCHEDULER_CORE_KERNEL_HISTORY_H_
