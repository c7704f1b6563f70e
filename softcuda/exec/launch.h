// SPDX-License-Identifier: Apache-2.0
// Running a kernel. An Engine owns the threads on which blocks run and is shared by all launches of a process;
// Run executes one launch to its end on the calling thread together with the engine's threads.
//
// Threads: Run may be called concurrently for any number of launches. A block that makes no progress (it spins for
// another block or another launch) is put aside and others run in turns, so launches cannot starve each other.
#ifndef HAWSER_SOFTCUDA_EXEC_LAUNCH_H_
#define HAWSER_SOFTCUDA_EXEC_LAUNCH_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>

#include "softcuda/exec/address_space.h"
#include "softcuda/exec/device_heap.h"
#include "softcuda/exec/fault.h"
#include "softcuda/exec/kernel_runtime.h"
#include "softcuda/exec/program.h"
#include "softcuda/exec/texture.h"

namespace hawser::exec {

/// Takes what kernels print. Called with whole strings (one per printf of one thread), from several threads at once.
class PrintSink {
 public:
  virtual ~PrintSink() = default;
  virtual void Write(std::string_view text) = 0;
};

/// Takes the values that kernels give to the conditions of the graph that they run in. Called from several threads at
/// once.
class ConditionSink {
 public:
  virtual ~ConditionSink() = default;
  /// False: the graph has no such condition.
  virtual bool Set(uint64_t handle, uint32_t value) = 0;
};

/// What kernels can ask about the device.
struct DeviceProperties {
  uint32_t multiprocessors = 16;        ///< %nsmid; blocks get %smid round robin.
  uint32_t clock_khz = 1'000'000;       ///< %clock counts at this rate.
  uint32_t max_shared_bytes = 232'448;  ///< Static plus dynamic per block; a larger launch is refused.
  uint32_t max_threads_per_block = 1024;
  uint32_t stack_bytes = 64 * 1024;  ///< Local memory per thread beyond what the kernel itself declares.
  uint32_t resident_blocks = 512;    ///< Blocks alive at once; a cooperative launch of more is refused.
  /// Atomic operations by generic addresses may be on local memory. PTX promises it of none; devices before compute
  /// capability 7.0 refuse it (Taichi's tests do without there), later ones do it.
  bool local_atomics = true;
};

struct LaunchConfig {
  int kernel = -1;  ///< Index in Program::kernels().
  std::array<uint32_t, 3> grid{1, 1, 1};
  std::array<uint32_t, 3> block{1, 1, 1};
  uint32_t dynamic_shared_bytes = 0;
  std::span<const uint8_t> parameters;       ///< KernelInfo::parameter_bytes (a longer buffer is fine); copied by Run.
  bool cooperative = false;                  ///< Grid-wide synchronisation works (%envreg1/2 name a grid workspace).
  std::array<uint32_t, 3> cluster{1, 1, 1};  ///< Blocks of a cluster, which share their shared memory.
  bool explicit_cluster = false;             ///< %is_explicit_cluster: somebody has said how large clusters are.
  uint64_t grid_id = 0;                      ///< %gridid
  DeviceProperties device;

  const AddressSpace* memory = nullptr;       ///< Required.
  PrintSink* print = nullptr;                 ///< Null: printf output is dropped.
  ConditionSink* conditions = nullptr;        ///< Null: cudaGraphSetConditional() has no effect.
  const TextureTable* textures = nullptr;     ///< Null: texture instructions fault.
  DeviceHeap* heap = nullptr;                 ///< Null: malloc returns 0.
  KernelRuntime* runtime = nullptr;           ///< Null: what kernels ask of the device runtime is not supported.
  const std::atomic<bool>* cancel = nullptr;  ///< Set by anyone: Run returns kCancelled soon.
};

class Engine {
 public:
  /// `threads` help the calling threads of Run; 0 makes Run use its caller alone. `begin`, which may be empty: what
  /// each of them does first.
  explicit Engine(unsigned threads, std::function<void()> begin = {});
  ~Engine();  ///< No Run may be in progress.
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// Executes the launch to its end. `program` must be bound, and it and everything config points to must outlive the
  /// call.
  Outcome Run(const Program& program, const LaunchConfig& config);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hawser::exec

#endif  // HAWSER_SOFTCUDA_EXEC_LAUNCH_H_
