// SPDX-License-Identifier: Apache-2.0
#include "softcuda/driver/stream.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "softcuda/driver/capture.h"
#include "softcuda/driver/conditional.h"
#include "softcuda/driver/driver.h"

namespace hawser::soft {
namespace {

/// Work of at most so many bytes is done at once by the calling thread when nothing has to be waited for: handing it
/// over costs more.
constexpr uint64_t kInlineBytes = 32 * 1024;

uint64_t NextStreamId() {
  static std::atomic<uint64_t> next{1};
  return next.fetch_add(1, std::memory_order_relaxed);
}

bool Cheap(const Work& work) {
  if (const auto* copy = std::get_if<CopyWork>(&work)) {
    return copy->copy.WidthInBytes * copy->copy.Height * copy->copy.Depth <= kInlineBytes;
  }
  if (const auto* set = std::get_if<MemsetWork>(&work)) {
    return set->set.width * set->set.height * set->set.elementSize <= kInlineBytes;
  }
  return std::holds_alternative<FreeWork>(work) || std::holds_alternative<AllocWork>(work);
}

/// The context that work of this stream belongs to, or the error that says why there is none.
CUresult Owner(const Stream& stream, ContextPtr* context) {
  *context = stream.context.lock();
  if (*context == nullptr || (*context)->destroyed()) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  return (*context)->error();
}

/// Notes what memory a launch leaves and frees. False: what an earlier one has left is not freed yet.
bool TakeMemory(const ExecutableGraph& executable) {
  const std::vector<NodePtr>& nodes = executable.graph->nodes();
  const bool frees_itself = (executable.flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH) != 0;
  for (const NodePtr& node : nodes) {
    const auto* const work = std::get_if<AllocWork>(&node->work);
    if (work != nullptr && !frees_itself && work->allocation->unfreed) return false;
  }
  for (const NodePtr& node : nodes) {
    if (const auto* const work = std::get_if<AllocWork>(&node->work)) work->allocation->unfreed = true;
  }
  for (const NodePtr& node : nodes) {
    const auto* const work = std::get_if<FreeWork>(&node->work);
    const AllocationPtr allocation = work != nullptr ? GetDriver()->memory.Find(work->address) : nullptr;
    if (allocation != nullptr) allocation->unfreed = false;
  }
  return true;
}

/// The last record of the event when another process made it; else 0. With the event's lock.
uint64_t ForeignRecord(const Event& event) {
  if (event.shared == nullptr) return 0;
  const uint64_t last = event.shared->last();
  return last == event.shared_record ? 0 : last;
}

/// What an event stands for now: an operation of ours, or a record of another process.
CUresult LatestRecord(Event* event, OperationPtr* recorded, uint64_t* foreign) {
  const std::lock_guard lock(event->mutex);
  if (event->capture != nullptr) return CUDA_ERROR_CAPTURED_EVENT;
  *foreign = ForeignRecord(*event);
  *recorded = event->recorded;
  return CUDA_SUCCESS;
}

}  // namespace

Stream::Stream(const ContextPtr& owner, unsigned stream_flags, int stream_priority)
    : context(owner), flags(stream_flags), priority(stream_priority), id(NextStreamId()) {}

Stream::~Stream() {
  const ContextPtr owner = context.lock();
  if (owner != nullptr) owner->RemoveStream(this);
  if (capture == nullptr) return;
  // Its nodes stay, and must have been joined like any other's. Nothing can end a capture whose first stream is gone.
  if (capture->origin == this) capture->invalidated = true;
  capture->left.insert(capture->left.end(), capture_ends.begin(), capture_ends.end());
  capture->streams.erase(this);
}

bool IsCapturing(const Stream& stream) {
  const ContextPtr context = stream.context.lock();
  if (context == nullptr) return false;
  const std::lock_guard lock(context->mutex);
  return stream.capture != nullptr;
}

CUresult Enqueue(const StreamPtr& stream, Work work, Wait wait) {
  ContextPtr context;
  if (const CUresult result = Owner(*stream, &context); result != CUDA_SUCCESS) return result;
  Queue& queue = GetDriver()->queue;
  std::unique_lock lock(context->mutex);
  if (stream->capture != nullptr) {
    // Nothing can be waited for; and callbacks, which want to know of errors, are no nodes.
    if (wait == Wait::kDone || std::holds_alternative<CallbackWork>(work)) {
      return Invalidate(stream->capture.get(), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    }
    return RecordNode(stream.get(), std::move(work));
  }
  if (const CUresult result = CheckLegacy(*stream); result != CUDA_SUCCESS) return result;
  const std::vector<OperationPtr> after = context->Dependencies(*stream);
  auto* const copy = std::get_if<CopyWork>(&work);
  if (copy != nullptr && copy->pageable_target) wait = Wait::kDone;
  const bool pageable = copy != nullptr && copy->pageable_source;
  if (wait == Wait::kDone || pageable || Cheap(work)) {
    const OperationPtr held = queue.Hold(after);
    if (wait == Wait::kDone || queue.Ready(held)) {
      stream->tail = held;
      lock.unlock();
      queue.Await(held);
      Execute(work, context.get());
      queue.Finish(held);
      if (wait == Wait::kNo) return CUDA_SUCCESS;
      context->print.Flush();
      return context->error();
    }
    if (pageable) Stage(copy);
  }
  auto shared = std::make_shared<Work>(std::move(work));
  stream->tail = queue.Submit([shared = std::move(shared), context] { Execute(*shared, context.get()); }, after);
  return CUDA_SUCCESS;
}

OperationPtr SubmitRecord(Event* event, std::span<const OperationPtr> after) {
  Queue& queue = GetDriver()->queue;
  const std::lock_guard lock(event->mutex);
  if (event->shared != nullptr) {
    // Done for this process when it is done for all.
    event->shared_record = event->shared->Begin();
    event->recorded =
        queue.Submit([shared = event->shared, record = event->shared_record] { shared->End(record); }, after);
  } else {
    event->recorded = queue.Submit(nullptr, after);
  }
  event->capture = nullptr;
  event->capture_ends.clear();
  return event->recorded;
}

OperationPtr SubmitWait(const EventPtr& event, const ContextPtr& context, std::vector<OperationPtr> after) {
  Queue& queue = GetDriver()->queue;
  uint64_t foreign = 0;
  {
    const std::lock_guard lock(event->mutex);
    foreign = ForeignRecord(*event);
    if (foreign == 0) after.push_back(event->recorded);
  }
  if (foreign == 0 || event->shared->Over(foreign)) return queue.Submit(nullptr, after);
  return queue.Submit(
      [shared = event->shared, foreign, context] {
        shared->Await(foreign, [&] { return context->cancelled().load() || context->destroyed(); });
      },
      after);
}

CUresult QueryEvent(Event* event) {
  OperationPtr recorded;
  uint64_t foreign = 0;
  if (const CUresult result = LatestRecord(event, &recorded, &foreign); result != CUDA_SUCCESS) return result;
  const bool done = foreign != 0 ? event->shared->Over(foreign) : GetDriver()->queue.Done(recorded);
  return done ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

CUresult SynchronizeEvent(Event* event) {
  OperationPtr recorded;
  uint64_t foreign = 0;
  if (const CUresult result = LatestRecord(event, &recorded, &foreign); result != CUDA_SUCCESS) return result;
  if (foreign != 0) {
    event->shared->Await(foreign, [] { return false; });
  } else {
    GetDriver()->queue.Wait(recorded);
  }
  return CUDA_SUCCESS;
}

CUresult RecordEvent(const StreamPtr& stream, const EventPtr& event, unsigned flags) {
  ContextPtr context;
  if (const CUresult result = Owner(*stream, &context); result != CUDA_SUCCESS) return result;
  const std::lock_guard lock(context->mutex);
  if (stream->capture != nullptr) {
    if (flags == CU_EVENT_RECORD_EXTERNAL) return RecordNode(stream.get(), EventRecordWork{event});
    if (stream->capture->invalidated) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    const std::lock_guard event_lock(event->mutex);
    event->capture = stream->capture;
    event->capture_ends = stream->capture_ends;
    event->recorded = nullptr;
    return CUDA_SUCCESS;
  }
  if (flags == CU_EVENT_RECORD_EXTERNAL) return CUDA_ERROR_ILLEGAL_STATE;
  if (const CUresult result = CheckLegacy(*stream); result != CUDA_SUCCESS) return result;
  const std::vector<OperationPtr> after = context->Dependencies(*stream);
  stream->tail = SubmitRecord(event.get(), after);
  return CUDA_SUCCESS;
}

CUresult WaitEvent(const StreamPtr& stream, const EventPtr& event, unsigned flags) {
  ContextPtr context;
  if (const CUresult result = Owner(*stream, &context); result != CUDA_SUCCESS) return result;
  const std::lock_guard lock(context->mutex);
  bool recorded = false;
  CapturePtr capture;
  std::vector<NodePtr> ends;
  {
    const std::lock_guard event_lock(event->mutex);
    recorded = event->recorded != nullptr || (event->shared != nullptr && event->shared->last() != 0);
    capture = event->capture;
    ends = event->capture_ends;
  }
  if (flags == CU_EVENT_WAIT_EXTERNAL) {
    if (stream->capture == nullptr) return CUDA_ERROR_ILLEGAL_STATE;
    return RecordNode(stream.get(), EventWaitWork{event});
  }
  if (capture == nullptr && !recorded) return CUDA_SUCCESS;  // As if what it stands for had ended.
  if (capture != nullptr || stream->capture != nullptr) return JoinCapture(stream.get(), capture, ends);
  if (const CUresult result = CheckLegacy(*stream); result != CUDA_SUCCESS) return result;
  stream->tail = SubmitWait(event, context, context->Dependencies(*stream));
  return CUDA_SUCCESS;
}

CUresult SynchronizeStream(const StreamPtr& stream) {
  ContextPtr context;
  if (const CUresult result = Owner(*stream, &context); result != CUDA_SUCCESS) return result;
  Queue& queue = GetDriver()->queue;
  OperationPtr tail;
  {
    const std::lock_guard lock(context->mutex);
    if (stream->capture != nullptr) return Invalidate(stream->capture.get(), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    if (const CUresult result = CheckLegacy(*stream); result != CUDA_SUCCESS) return result;
    // Nothing that others would come after: who waits gives the stream nothing.
    tail = stream->legacy ? queue.Submit(nullptr, context->Dependencies(*stream)) : stream->tail;
  }
  queue.Wait(tail);
  context->print.Flush();
  return context->error();
}

CUresult QueryStream(const StreamPtr& stream) {
  ContextPtr context;
  if (const CUresult result = Owner(*stream, &context); result != CUDA_SUCCESS) return result;
  Queue& queue = GetDriver()->queue;
  std::vector<OperationPtr> open;
  {
    const std::lock_guard lock(context->mutex);
    if (stream->capture != nullptr) return Invalidate(stream->capture.get(), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    if (const CUresult result = CheckLegacy(*stream); result != CUDA_SUCCESS) return result;
    open = stream->legacy ? context->Dependencies(*stream) : std::vector<OperationPtr>{stream->tail};
  }
  const bool done = std::all_of(open.begin(), open.end(), [&](const OperationPtr& op) { return queue.Done(op); });
  if (!done) return CUDA_ERROR_NOT_READY;
  return context->error();
}

CUresult LaunchGraph(const StreamPtr& stream, const std::shared_ptr<ExecutableGraph>& executable) {
  ContextPtr context;
  if (const CUresult result = Owner(*stream, &context); result != CUDA_SUCCESS) return result;
  const std::lock_guard lock(context->mutex);
  const std::lock_guard executable_lock(executable->mutex);
  const bool conditional = executable->graph->HasConditionals();
  if (stream->capture != nullptr) {
    if (conditional) return Invalidate(stream->capture.get(), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    GraphPtr copy = executable->graph->Clone();  // Later changes of the executable are not for it.
    if (copy == nullptr) return Invalidate(stream->capture.get(), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    copy->is_child = true;
    return RecordNode(stream.get(), ChildWork{std::move(copy)});
  }
  if (const CUresult result = CheckLegacy(*stream); result != CUDA_SUCCESS) return result;
  if (!TakeMemory(*executable)) return CUDA_ERROR_INVALID_VALUE;
  std::vector<OperationPtr> after = context->Dependencies(*stream);
  after.push_back(executable->last);
  // What bodies do is looked up while they run: in a copy, since the program may change the executable meanwhile.
  const GraphPtr graph = conditional ? executable->graph->Clone() : executable->graph;
  stream->tail = SubmitGraph(*graph, context, after, conditional ? ConditionsOf(*graph) : nullptr);
  executable->last = stream->tail;
  return CUDA_SUCCESS;
}

CUresult UploadGraph(const StreamPtr& stream, const std::shared_ptr<ExecutableGraph>& executable) {
  ContextPtr context;
  if (const CUresult result = Owner(*stream, &context); result != CUDA_SUCCESS) return result;
  const std::lock_guard lock(context->mutex);
  const std::lock_guard executable_lock(executable->mutex);
  if (stream->capture != nullptr) return CUDA_SUCCESS;  // It is no node.
  if (const CUresult result = CheckLegacy(*stream); result != CUDA_SUCCESS) return result;
  std::vector<OperationPtr> after = context->Dependencies(*stream);
  after.push_back(executable->last);
  stream->tail = GetDriver()->queue.Submit(nullptr, after);
  return CUDA_SUCCESS;
}

}  // namespace hawser::soft
