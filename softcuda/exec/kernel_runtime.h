// SPDX-License-Identifier: Apache-2.0
// What kernels ask of the CUDA device runtime: launches of kernels, copies, streams, events (cuda_device_runtime_api.h;
// CUDA C++ Programming Guide, "CUDA Dynamic Parallelism").
#ifndef HAWSER_SOFTCUDA_EXEC_KERNEL_RUNTIME_H_
#define HAWSER_SOFTCUDA_EXEC_KERNEL_RUNTIME_H_

#include <array>
#include <cstdint>

namespace hawser::exec {

/// What calls answer: those of cudaError_t (driver_types.h) that there are here.
struct RuntimeError {
  static constexpr int32_t kSuccess = 0;
  static constexpr int32_t kInvalidValue = 1;
  static constexpr int32_t kMemoryAllocation = 2;
  static constexpr int32_t kInvalidConfiguration = 9;
  static constexpr int32_t kInvalidPitchValue = 12;
  static constexpr int32_t kLaunchMaxDepthExceeded = 65;
  static constexpr int32_t kInvalidDeviceFunction = 98;
  static constexpr int32_t kInvalidDevice = 101;
  static constexpr int32_t kUnsupportedLimit = 215;
  static constexpr int32_t kInvalidResourceHandle = 400;
  static constexpr int32_t kLaunchOutOfResources = 701;
  static constexpr int32_t kNotSupported = 801;
};

/// A thread of a grid.
struct GridThread {
  uint64_t block = 0;   ///< Its number in the grid.
  uint32_t thread = 0;  ///< Its number in the block.
};

/// A kernel that a kernel launches.
struct ChildLaunch {
  int kernel = -1;  ///< Index in Program::kernels() of the same program; -1: the pointer named no kernel.
  std::array<uint32_t, 3> grid{1, 1, 1};
  std::array<uint32_t, 3> block{1, 1, 1};
  uint32_t dynamic_shared_bytes = 0;
};

/// A box of bytes; `height` 1 and any pitches: a line of `width`.
struct ChildCopy {
  uint64_t target = 0, target_pitch = 0;
  uint64_t source = 0, source_pitch = 0;
  uint64_t width = 0, height = 1;
};

struct ChildFill {
  uint64_t target = 0, pitch = 0;
  uint8_t value = 0;
  uint64_t width = 0, height = 1;
};

/// One for each grid. Answers are RuntimeErrors. Streams are cudaStream_t as the kernel has
/// them. Threads: called by all that run blocks of the grid, at once.
class KernelRuntime {
 public:
  KernelRuntime() = default;
  KernelRuntime(const KernelRuntime&) = delete;
  KernelRuntime& operator=(const KernelRuntime&) = delete;
  virtual ~KernelRuntime() = default;

  /// Memory for the parameters of a launch: of `launch`, or of `bytes` where what is launched is said later (null).
  virtual int32_t Reserve(const ChildLaunch* launch, uint64_t bytes, uint64_t* address) = 0;
  /// Launches what the memory was reserved for, or `launch`. The memory is the runtime's from then on.
  virtual int32_t Launch(uint64_t address, const ChildLaunch* launch, uint64_t stream) = 0;
  virtual int32_t Copy(const ChildCopy& copy, uint64_t stream) = 0;
  virtual int32_t Fill(const ChildFill& fill, uint64_t stream) = 0;

  virtual int32_t NewStream(uint32_t flags, uint64_t* stream) = 0;
  virtual int32_t EndStream(uint64_t stream) = 0;
  virtual int32_t NewEvent(uint32_t flags, uint64_t* event) = 0;
  virtual int32_t EndEvent(uint64_t event) = 0;
  /// What was asked for before the event is recorded is done before what is asked for after a wait for it.
  virtual int32_t RecordEvent(uint64_t event, uint64_t stream) = 0;
  virtual int32_t WaitForEvent(uint64_t stream, uint64_t event) = 0;

  virtual int32_t DeviceCount() const = 0;
  virtual int32_t Device() const = 0;
  virtual int32_t DeviceAttribute(int32_t attribute, int32_t device, int32_t* value) const = 0;
  virtual int32_t Limit(int32_t limit, uint64_t* value) const = 0;

  /// The last error of that thread; `clear`: it is told once.
  virtual int32_t LastError(const GridThread& thread, bool clear) = 0;
  virtual void Note(const GridThread& thread, int32_t error) = 0;
};

}  // namespace hawser::exec

#endif  // HAWSER_SOFTCUDA_EXEC_KERNEL_RUNTIME_H_
