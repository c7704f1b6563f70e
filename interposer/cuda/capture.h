// SPDX-License-Identifier: Apache-2.0
// One capture of streams into a graph, as the guest knows it: which streams take part, and whether it is broken.
//
// A capture begins on one stream, and spreads: a stream that waits for an event recorded in the capture joins it.
//
// Threading: thread-safe; one lock for all captures, a leaf but for the streams' own.
#ifndef HAWSER_INTERPOSER_CUDA_CAPTURE_H_
#define HAWSER_INTERPOSER_CUDA_CAPTURE_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "interposer/cuda/objects.h"

namespace hawser::cu {

struct Graph;

struct Capture {
  uint64_t number = 0;  ///< What cuStreamGetCaptureInfo calls its id.
  CUstream_st* origin = nullptr;
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  std::thread::id thread;
  CUgraph graph = nullptr;
  bool into_existing = false;  ///< The graph was there before, and stays.
  std::atomic<bool> broken{false};
  std::atomic<bool> ended{false};
};

/// All captures of the process that have begun and not ended.
class Captures {
 public:
  static Captures& Get();

  void Begin(std::shared_ptr<Capture> capture);
  void Join(CUstream_st* stream, const std::shared_ptr<Capture>& capture);
  /// The stream is about to be destroyed. What it gave stays; a capture whose first stream it is is broken.
  void Leave(CUstream_st* stream);
  /// Takes all its streams out of it.
  void End(const std::shared_ptr<Capture>& capture);

  /// The stream is about to wait for an event of that capture, or of none (null); one of the two is captured. It joins
  /// the capture, or that is an error, which breaks what it concerns (CUDA driver API, "Stream Management",
  /// cuStreamWaitEvent, and the descriptions of CUDA_ERROR_STREAM_CAPTURE_*).
  CUresult Wait(CUstream_st* stream, const std::shared_ptr<Capture>& capture);
  /// Whether the stream may be waited for, or asked whether it is done. If not, that breaks its capture, or those that
  /// bar the legacy stream.
  static CUresult CheckWait(CUstream_st* stream);
  /// Whether commands may go to the stream: not when its capture is broken, and see CheckLegacy().
  static CUresult CheckCommand(CUstream_st* stream);

  /// The capture that the stream takes part in, or null. One load when it takes part in none.
  static std::shared_ptr<Capture> Of(CUstream_st* stream);

  /// Whether a call that could wait for or depend on a captured stream may be made now by this thread: not while a
  /// capture in global mode goes on anywhere (or in thread-local mode in this thread), unless this thread's own mode is
  /// relaxed. If not, those captures are broken. One load while there are none.
  CUresult CheckUnsafeCall();

  /// The legacy stream of a context cannot be used while a blocking stream of it is captured, in whatever mode:
  /// CUDA_ERROR_STREAM_CAPTURE_IMPLICIT. `use`: it was about to be used, which breaks the capture; asking about it does
  /// not (CUDA driver API, cuStreamIsCapturing). One load while there are no captures.
  CUresult CheckLegacy(const CUctx_st* context, bool use);

  /// Breaks the captures in which streams of the context take part. False: there are none.
  bool BreakIn(const CUctx_st* context);

 private:
  std::atomic<int> count_{0};
  std::mutex mutex_;
  std::vector<std::pair<std::shared_ptr<Capture>, std::vector<CUstream_st*>>> captures_;
};

}  // namespace hawser::cu

#endif  // HAWSER_INTERPOSER_CUDA_CAPTURE_H_
