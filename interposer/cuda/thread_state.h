// SPDX-License-Identifier: Apache-2.0
// What CUDA keeps for each host thread: the stack of current contexts, the thread's default stream in each context,
// how captures treat it.
//
// Threading: an object belongs to its thread; no locks.
#ifndef HAWSER_INTERPOSER_CUDA_THREAD_STATE_H_
#define HAWSER_INTERPOSER_CUDA_THREAD_STATE_H_

#include <utility>
#include <vector>

#include "interposer/cuda/objects.h"

namespace hawser::cu {

class ContextStack {
 public:
  /// Null: none.
  CUctx_st* top() const { return contexts_.empty() ? nullptr : contexts_.back(); }
  bool empty() const { return contexts_.empty(); }
  void Push(CUctx_st* context) { contexts_.push_back(context); }
  CUctx_st* Pop();
  /// Replaces the top; null pops it.
  void Set(CUctx_st* context);

 private:
  std::vector<CUctx_st*> contexts_;
};

class ThreadState {
 public:
  /// The calling thread's. It ends with the thread, but not with the process: programs call from exit handlers, which
  /// run after the destructors of a thread's own variables.
  static ThreadState& Get();
  ~ThreadState();

  ContextStack stack;
  std::vector<CUgraphNode> listed_nodes;      ///< What the last cuStreamGetCaptureInfo points to.
  std::vector<CUgraphEdgeData> listed_edges;  ///< The same.
  int per_thread_calls = 0;                   ///< Within a _ptsz or _ptds variant: stream 0 is the thread's own.
  CUstreamCaptureMode capture_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

  /// The thread's default stream in that context, made on first use.
  CUresult DefaultStream(CUctx_st* context, CUstream_st** stream);

 private:
  struct Entry {
    CUctx_st* context;
    uint64_t number;  ///< Of the context when the stream was made: a primary context may have ended and begun again.
    CUstream_st* stream;
  };
  std::vector<Entry> streams_;
};

}  // namespace hawser::cu

#endif  // HAWSER_INTERPOSER_CUDA_THREAD_STATE_H_
