// SPDX-License-Identifier: Apache-2.0
// Virtual memory management for the driver of the tests: addresses of this process, with memory of its own behind them
// where something is mapped and may be used, and a fault everywhere else.
#ifndef HAWSER_TESTS_UNIT_BACKEND_CUDA_FAKE_VMM_H_
#define HAWSER_TESTS_UNIT_BACKEND_CUDA_FAKE_VMM_H_

#include <cstdint>
#include <map>
#include <mutex>

#include "server/backends/cuda/driver_table.h"

namespace hawser::server::cuda_backend {

/// One at a time: the table's functions find it through a global. Outlives the backend.
class FakeVmm {
 public:
  static constexpr uint64_t kGranularity = uint64_t{2} << 20;

  explicit FakeVmm(uint64_t memory);
  ~FakeVmm();
  FakeVmm(const FakeVmm&) = delete;
  FakeVmm& operator=(const FakeVmm&) = delete;

  void AddTo(DriverTable* table);
  /// The device says that memory can be given to other processes, but none can be made so.
  void PromiseInVain() { promises_ = true; }
  /// It says so, and can: descriptors of files in memory.
  void KeepPromise() { promises_ = keeps_ = true; }

  /// Bytes of physical memory that exist.
  uint64_t created() const;
  size_t mappings() const;

 private:
  friend struct FakeVmmCalls;

  mutable std::mutex mutex_;
  const uint64_t memory_;
  uint64_t used_ = 0;
  uint64_t last_ = 0;
  bool promises_ = false;
  bool keeps_ = false;
  std::map<uint64_t, uint64_t> exported_;  ///< number of the file -> size
  decltype(DriverTable::cuDeviceGetAttribute) attributes_ = nullptr;
  std::map<uint64_t, uint64_t> reserved_;  ///< begin -> size
  std::map<uint64_t, uint64_t> handles_;   ///< handle -> size
  std::map<uint64_t, uint64_t> mapped_;    ///< address -> size
};

}  // namespace hawser::server::cuda_backend

#endif  // HAWSER_TESTS_UNIT_BACKEND_CUDA_FAKE_VMM_H_
