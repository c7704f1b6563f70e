// SPDX-License-Identifier: Apache-2.0
// The device runtime of one grid: collects what its kernel launches, copies and fills. All of it is carried out when
// the grid is over (kernel_runner.h), in the order in which it was asked for: no stream and no event of the kernel has
// another order than that, and nothing tells a kernel that its child has begun (CUDA C++ Programming Guide, "Execution
// Environment": a child need not begin before its parent's block waits, and since CUDA 12 no kernel waits for a child).
//
// Threads: one lock, taken by whoever runs a block of the grid, for moments.
#ifndef HAWSER_SOFTCUDA_DRIVER_GRID_RUNTIME_H_
#define HAWSER_SOFTCUDA_DRIVER_GRID_RUNTIME_H_

#include <cuda.h>

#include <atomic>
#include <map>
#include <mutex>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "softcuda/driver/work.h"
#include "softcuda/exec/kernel_runtime.h"

namespace hawser::soft {

/// What a kernel, and all that it has launched, may have waiting: a bound for the memory that the driver needs for it.
/// More launches than cudaLimitDevRuntimePendingLaunchCount says by itself, because none begins while its parent runs.
/// Any thread.
class PendingWork {
 public:
  static constexpr size_t kMaxCount = size_t{1} << 18;
  static constexpr size_t kMaxBytes = size_t{64} << 20;  ///< Of parameters.

  /// False: there is no room.
  bool Add(const Work& work);
  void Remove(const Work& work);

 private:
  std::atomic<size_t> count_{0};
  std::atomic<size_t> bytes_{0};
};

class GridRuntime final : public exec::KernelRuntime {
 public:
  /// Levels of grids, the first of which a program launched, as the guide has it.
  static constexpr int kMaxDepth = 24;
  /// Buffers for parameters that one grid may have open, and threads whose errors are kept.
  static constexpr size_t kMaxOpen = size_t{1} << 16;

  /// `parent`, `context` and `pending` outlive it. `depth`: levels above it.
  GridRuntime(const KernelWork& parent, Context* context, PendingWork* pending, int depth);
  ~GridRuntime() override;

  /// What was asked for, and what is for when all that is done. Once the grid is over. Whoever has carried it out tells
  /// PendingWork.
  std::vector<Work> TakeChildren() { return std::move(children_); }
  std::vector<Work> TakeTails() { return std::move(tails_); }

  int32_t Reserve(const exec::ChildLaunch* launch, uint64_t bytes, uint64_t* address) override;
  int32_t Launch(uint64_t address, const exec::ChildLaunch* launch, uint64_t stream) override;
  int32_t Copy(const exec::ChildCopy& copy, uint64_t stream) override;
  int32_t Fill(const exec::ChildFill& fill, uint64_t stream) override;
  int32_t NewStream(uint32_t flags, uint64_t* stream) override;
  int32_t EndStream(uint64_t stream) override;
  int32_t NewEvent(uint32_t flags, uint64_t* event) override;
  int32_t EndEvent(uint64_t event) override;
  int32_t RecordEvent(uint64_t event, uint64_t stream) override;
  int32_t WaitForEvent(uint64_t stream, uint64_t event) override;
  int32_t DeviceCount() const override;
  int32_t Device() const override;
  int32_t DeviceAttribute(int32_t attribute, int32_t device, int32_t* value) const override;
  int32_t Limit(int32_t limit, uint64_t* value) const override;
  int32_t LastError(const exec::GridThread& thread, bool clear) override;
  void Note(const exec::GridThread& thread, int32_t error) override;

 private:
  struct Reserved {
    uint64_t bytes = 0;
    bool known = false;  // What is launched.
    KernelWork work;
  };

  using Handles = std::set<uint64_t>;

  int32_t New(Handles* handles, bool good, uint64_t* handle);
  int32_t End(Handles* handles, uint64_t handle);
  int32_t Build(const exec::ChildLaunch& launch, KernelWork* work) const;
  bool IsStream(uint64_t stream) const;  // Locked.
  /// Puts work into the stream's place. Locked.
  int32_t Add(Work work, uint64_t stream);

  const KernelWork& parent_;
  Context* const context_;
  PendingWork* const pending_;
  const int depth_;

  std::mutex mutex_;
  std::map<uint64_t, Reserved> reserved_;  // By address.
  std::vector<Work> children_;
  std::vector<Work> tails_;
  Handles streams_;
  Handles events_;
  uint64_t next_handle_ = uint64_t{1} << 32;
  std::unordered_map<uint64_t, int32_t> errors_;  // By thread.
  std::atomic<bool> has_errors_{false};
};

}  // namespace hawser::soft

#endif  // HAWSER_SOFTCUDA_DRIVER_GRID_RUNTIME_H_
