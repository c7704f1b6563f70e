// SPDX-License-Identifier: Apache-2.0
// Streams and events. A stream is little more than its last operation: new work waits for that, and for the streams
// that the default stream's rules name (CUDA driver API, "Stream synchronization behavior").
//
// Threads: `tail` and the capture members are guarded by the context's lock; an event's members by its own, which is
// the innermost.
#ifndef HAWSER_SOFTCUDA_DRIVER_STREAM_H_
#define HAWSER_SOFTCUDA_DRIVER_STREAM_H_

#include <cuda.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "softcuda/driver/context.h"
#include "softcuda/driver/graph.h"
#include "softcuda/driver/queue.h"
#include "softcuda/driver/shared_event.h"
#include "softcuda/driver/work.h"

namespace hawser::soft {

class Stream {
 public:
  Stream(const ContextPtr& owner, unsigned flags, int priority);
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  uint64_t handle = 0;
  const std::weak_ptr<Context> context;
  const unsigned flags;
  std::atomic<int> priority;
  const uint64_t id;
  bool legacy = false;
  bool blocking() const { return !legacy && (flags & CU_STREAM_NON_BLOCKING) == 0; }

  OperationPtr tail;
  CapturePtr capture;                 ///< Not null: work is recorded, not run.
  std::vector<NodePtr> capture_ends;  ///< What the next recorded node depends on.

  std::array<CUstreamAttrValue, CU_LAUNCH_ATTRIBUTE_MAX> attributes{};
};

struct Event {
  uint64_t handle = 0;
  std::weak_ptr<Context> context;
  unsigned flags = 0;

  std::mutex mutex;
  OperationPtr recorded;  ///< Null: never recorded.
  CapturePtr capture;     ///< Recorded in a capture: then these are what a waiting stream depends on.
  std::vector<NodePtr> capture_ends;

  std::shared_ptr<SharedEvent> shared;  ///< CU_EVENT_INTERPROCESS; does not change.
  uint64_t shared_record = 0;           ///< Then: the number of `recorded`.
};

using EventPtr = std::shared_ptr<Event>;

enum class Wait : uint8_t {
  kNo,    ///< Returns when the work is submitted.
  kDone,  ///< Returns when it is done; its kernels' output and errors included. The calling thread does it.
};

/// True while work given to the stream is recorded.
bool IsCapturing(const Stream& stream);
/// Submits work to a stream, or records it when the stream is being captured. Returns the context's error.
CUresult Enqueue(const StreamPtr& stream, Work work, Wait wait = Wait::kNo);
/// An operation that comes after `after`, and is what the event stands for from now on. With the context's lock.
OperationPtr SubmitRecord(Event* event, std::span<const OperationPtr> after);
/// An operation that comes after `after` and after what the event stands for now. With the context's lock.
OperationPtr SubmitWait(const EventPtr& event, const ContextPtr& context, std::vector<OperationPtr> after);
/// CUDA_SUCCESS: what the event stands for is done; else CUDA_ERROR_NOT_READY, or CUDA_ERROR_CAPTURED_EVENT.
CUresult QueryEvent(Event* event);
/// Waits for that.
CUresult SynchronizeEvent(Event* event);
/// The stream's event record and wait.
CUresult RecordEvent(const StreamPtr& stream, const EventPtr& event, unsigned flags);
CUresult WaitEvent(const StreamPtr& stream, const EventPtr& event, unsigned flags);
/// Waits for what is in the stream.
CUresult SynchronizeStream(const StreamPtr& stream);
CUresult QueryStream(const StreamPtr& stream);
/// Runs a graph in the stream, once all before it is done.
CUresult LaunchGraph(const StreamPtr& stream, const std::shared_ptr<ExecutableGraph>& executable);
/// There is nowhere to upload it to, but that too is behind what is in the stream and behind the graph's last launch,
/// and what comes is behind it.
CUresult UploadGraph(const StreamPtr& stream, const std::shared_ptr<ExecutableGraph>& executable);

}  // namespace hawser::soft

#endif  // HAWSER_SOFTCUDA_DRIVER_STREAM_H_
