// SPDX-License-Identifier: Apache-2.0
// A CUDA context: the streams, the first error, the limits and the kernels' heap of one user of a device.
//
// Threads: `mutex` guards the streams' ends and captures (stream.h) and the members that say so; it is taken before the
// queue's lock and never while a memory or handle lock is held. The first error is an atomic: any operation may set it.
#ifndef HAWSER_SOFTCUDA_DRIVER_CONTEXT_H_
#define HAWSER_SOFTCUDA_DRIVER_CONTEXT_H_

#include <cuda.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "softcuda/driver/device.h"
#include "softcuda/driver/queue.h"
#include "softcuda/exec/device_heap.h"
#include "softcuda/exec/launch.h"

namespace hawser::soft {

class Stream;
using StreamPtr = std::shared_ptr<Stream>;

/// Text that kernels printed, until the program synchronises.
class PrintBuffer final : public exec::PrintSink {
 public:
  void Write(std::string_view text) override;
  /// Writes to stdout what there is.
  void Flush();
  void set_capacity(size_t bytes) { capacity_ = bytes; }
  size_t capacity() const { return capacity_; }

 private:
  std::mutex mutex_;
  std::string text_;
  std::atomic<size_t> capacity_{size_t{1} << 20};
};

class Context : public std::enable_shared_from_this<Context> {
 public:
  Context(Device* device, unsigned flags, bool primary);
  ~Context();

  uint64_t handle = 0;                ///< Set by the handle table.
  std::atomic<uint32_t> attached{1};  ///< cuCtxAttach(): it ends when it is detached as often.
  Device* device() const { return device_; }
  bool primary() const { return primary_; }
  uint64_t id() const { return id_; }

  /// Streams 0 (legacy) and per-thread, made on demand.
  StreamPtr legacy_stream();
  StreamPtr thread_stream();
  void AddStream(const StreamPtr& stream);
  void RemoveStream(const Stream* stream);

  /// What new work in `stream` has to wait for. With the lock.
  std::vector<OperationPtr> Dependencies(const Stream& stream);
  /// Ends of all streams. With the lock.
  std::vector<OperationPtr> AllTails();
  /// Waits until everything that was submitted so far is done.
  void Drain();
  /// Drain(), the kernels' output, and the context's error.
  CUresult Synchronize();

  /// CUDA_SUCCESS, or the first error of a kernel: it stays.
  CUresult error() const { return static_cast<CUresult>(error_.load(std::memory_order_acquire)); }
  void Fail(CUresult error);
  const std::atomic<bool>& cancelled() const { return cancelled_; }
  bool destroyed() const { return destroyed_.load(std::memory_order_acquire); }

  /// Cancels what runs, waits, frees everything that belongs to the context. Once.
  void Destroy();

  /// Region of malloc in kernels; made at the first launch, null when there is no memory for it.
  exec::DeviceHeap* heap();
  PrintBuffer print;

  CUresult SetLimit(CUlimit limit, size_t value);
  CUresult GetLimit(CUlimit limit, size_t* value);
  uint32_t stack_bytes();

  std::mutex mutex;
  std::atomic<unsigned> flags;
  std::atomic<int> cache_config{CU_FUNC_CACHE_PREFER_NONE};
  std::atomic<int> shared_config{CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE};
  std::set<int> peers;      ///< Devices whose memory may be used. With the lock.
  OperationPtr standstill;  ///< Not null: new work waits for it (standstill.h). With the lock.
  OperationPtr held;        ///< The same, since cuCtxWaitEvent. With the lock.

 private:
  Device* const device_;
  const bool primary_;
  const uint64_t id_;
  std::atomic<int> error_{CUDA_SUCCESS};
  std::atomic<bool> cancelled_{false};
  std::atomic<bool> destroyed_{false};

  // With the lock:
  StreamPtr legacy_;
  std::map<uint64_t, StreamPtr> per_thread_;  ///< By the thread's number.
  std::vector<Stream*> streams_;              ///< All of them, borrowed.
  struct Orphan {
    OperationPtr tail;
    bool blocking;
  };
  std::vector<Orphan> orphans_;  ///< What destroyed streams still have to do.
  std::map<CUlimit, size_t> limits_;

  std::mutex heap_mutex_;
  std::unique_ptr<exec::DeviceHeap> heap_;
  bool heap_tried_ = false;
};

using ContextPtr = std::shared_ptr<Context>;

}  // namespace hawser::soft

#endif  // HAWSER_SOFTCUDA_DRIVER_CONTEXT_H_
