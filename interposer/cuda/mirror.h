// SPDX-License-Identifier: Apache-2.0
// Host memory that the server cannot reach, kept equal to device memory at the points where a program may rely on it:
// managed memory where the session shares no heap, managed variables of modules, and registered memory that kernels
// use.
//
// What the host has written since is sent before work that may read it; what the device has written is fetched when the
// program has waited for it. Changes are found by comparing with a copy of what both sides last had, so that only
// changed bytes travel to the device. Host and device must not write the same four bytes between two such points: less
// than what a device without concurrent managed access demands, and this library says that it is one.
//
// Threading: thread-safe. One lock, held while data is sent and awaited; nothing that receives takes it.
#ifndef HAWSER_INTERPOSER_CUDA_MIRROR_H_
#define HAWSER_INTERPOSER_CUDA_MIRROR_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "interposer/cuda/client.h"

namespace hawser::cu {

/// Host memory [host, host + size) and what the device calls it.
struct MirrorRange {
  CUctx_st* context = nullptr;
  uint64_t host = 0;
  uint64_t device = 0;  ///< Equal to `host` for managed memory.
  uint64_t size = 0;
  /// What is to be freed on the server; 0: nothing (a module's variable). The pages of managed memory are its own.
  uint64_t allocation = 0;
};

class Mirrors {
 public:
  static Mirrors& Get();

  /// False, at the price of one load, while nothing is mirrored.
  bool any() const { return any_.load(std::memory_order_relaxed); }

  /// Makes pages of this process appear at range.host == range.device, and takes over what the device has there.
  /// CUDA_ERROR_NOT_SUPPORTED: something else of this process lies there. Known ranges stay as they are.
  CUresult AddManaged(const MirrorRange& range);
  /// Mirrors memory of the application; the device gets it before the next work.
  CUresult AddHost(const MirrorRange& range);
  /// Ends the mirror that begins there. True, and *removed, when there was one.
  bool Remove(uint64_t host, MirrorRange* removed);
  /// Managed memory that only the stream's kernels use from now on, or (null) none or all: cuStreamAttachMemAsync. The
  /// host may write it while other kernels run.
  void Attach(uint64_t address, CUstream_st* stream);
  /// The context and its memory have ended.
  void ForgetContext(CUctx_st* context);
  /// What the device calls [host, host + size); 0: not (wholly) mirrored.
  uint64_t DeviceAddress(const void* host, uint64_t size);

  /// Before kernels are put into a stream: the device gets what the host has written.
  CUresult BeforeWork(CUstream_st* stream) { return any() ? Push(stream, /*kernels=*/true) : CUDA_SUCCESS; }
  /// Before another command that may read it.
  CUresult BeforeCopy(CUstream_st* stream) { return any() ? Push(stream, /*kernels=*/false) : CUDA_SUCCESS; }
  /// Before what is behind a host function: the device gets what that has written.
  CUresult AfterFunction() { return any() ? Push(nullptr, /*kernels=*/false) : CUDA_SUCCESS; }
  /// A command was put into the stream.
  void AfterCommand(CUstream_st* stream) {
    if (any()) [[unlikely]]
      NoteCommand(stream);
  }
  /// Before a wait; its value is for AfterWait.
  uint64_t Mark() const { return any() ? commands_.load(std::memory_order_acquire) : 0; }
  /// After a successful wait for a stream, or (null) for all of the context: the host gets what the device has written.
  CUresult AfterWait(uint64_t mark, CUctx_st* context, CUstream_st* stream) {
    return any() ? Pull(mark, context, stream) : CUDA_SUCCESS;
  }

 private:
  struct Mirror;
  struct Busy {
    CUctx_st* context = nullptr;
    uint64_t command = 0;
  };

  /// Null: from a host function, of whatever stream.
  CUresult Push(CUstream_st* stream, bool kernels);
  void NoteCommand(CUstream_st* stream);
  CUresult Pull(uint64_t mark, CUctx_st* context, CUstream_st* stream);
  CUresult Send(Mirror& mirror, CUstream_st* by);
  CUresult Fetch(Mirror& mirror);
  /// A stream of the context that waits for no other.
  CUresult OwnStream(CUctx_st* context, CUstream_st** stream);
  /// New memory is zero on both sides.
  CUresult Clear(Mirror& mirror);
  bool MapPages(const MirrorRange& range);
  void UnmapPages(const MirrorRange& range);
  void ReleasePage(uint64_t page);

  std::atomic<bool> any_{false};
  std::atomic<uint64_t> commands_{1};  ///< Number of the last one.

  std::mutex mutex_;  ///< Guards what follows.
  std::map<uint64_t, std::unique_ptr<Mirror>> mirrors_;
  std::map<uint64_t, uint32_t> pages_;  ///< Of managed variables: how many touch each.
  std::map<CUctx_st*, CUstream_st*> streams_;
  std::map<CUstream_st*, Busy> busy_;  ///< Streams with commands that nobody has waited for.
  bool host_may_write_ = true;         ///< No kernel has been launched since the last wait.
};

}  // namespace hawser::cu

#endif  // HAWSER_INTERPOSER_CUDA_MIRROR_H_
