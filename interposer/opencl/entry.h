// SPDX-License-Identifier: Apache-2.0
// What entry points share: looking at handles, counting references, enqueueing, refusing.
#ifndef HAWSER_INTERPOSER_OPENCL_ENTRY_H_
#define HAWSER_INTERPOSER_OPENCL_ENTRY_H_

#include <array>
#include <cstring>

#include "interposer/opencl/objects.h"
#include "proto/opencl/messages.h"

namespace hawser::ocl {

// ---------------------------------------------------------------------- handles (handles.cc)

/// The type's magic and the error for a handle that is none.
template <typename Handle>
struct HandleTraits;
#define HAWSER_HANDLE(handle, kind, error, type_byte) \
  template <>                                         \
  struct HandleTraits<handle> {                       \
    static constexpr Magic kMagic = Magic::kind;      \
    static constexpr cl_int kInvalid = error;         \
    static constexpr uint8_t kType = type_byte;       \
  };
HAWSER_HANDLE(cl_context, kContext, CL_INVALID_CONTEXT, 1)
HAWSER_HANDLE(cl_command_queue, kQueue, CL_INVALID_COMMAND_QUEUE, 2)
HAWSER_HANDLE(cl_mem, kMem, CL_INVALID_MEM_OBJECT, 3)
HAWSER_HANDLE(cl_sampler, kSampler, CL_INVALID_SAMPLER, 4)
HAWSER_HANDLE(cl_program, kProgram, CL_INVALID_PROGRAM, 5)
HAWSER_HANDLE(cl_kernel, kKernel, CL_INVALID_KERNEL, 6)
HAWSER_HANDLE(cl_event, kEvent, CL_INVALID_EVENT, 7)
HAWSER_HANDLE(cl_device_id, kDevice, CL_INVALID_DEVICE, 8)
HAWSER_HANDLE(cl_platform_id, kPlatform, CL_INVALID_PLATFORM, 9)
#undef HAWSER_HANDLE

/// CL_SUCCESS, the type's CL_INVALID_..., or the late error of an object that the server could not create.
template <typename Handle>
cl_int CheckHandle(Handle handle) {
  if (handle == nullptr || handle->magic != HandleTraits<Handle>::kMagic) return HandleTraits<Handle>::kInvalid;
  return handle->failed.load(std::memory_order_relaxed);
}

/// clRetain*.
template <typename Handle>
cl_int RetainObject(Handle handle) {
  if (handle == nullptr || handle->magic != HandleTraits<Handle>::kMagic) return HandleTraits<Handle>::kInvalid;
  handle->refs.fetch_add(1, std::memory_order_relaxed);
  return CL_SUCCESS;
}

/// Ends the object when nothing uses it any more: one overload per type, each in its type's file. Sends the release
/// to the server, drops the uses of other objects, runs destructor callbacks when due.
void Destroy(cl_context context);
void Destroy(cl_command_queue queue);
void Destroy(cl_mem mem);
void Destroy(cl_sampler sampler);
void Destroy(cl_program program);
void Destroy(cl_kernel kernel);
void Destroy(cl_event event);
void Destroy(cl_device_id device);  // Sub-devices only.

/// The guest's own references.
template <typename Handle>
Handle Use(Handle handle) {
  if (handle != nullptr) handle->uses.fetch_add(1, std::memory_order_relaxed);
  return handle;
}
/// The same of an object whose end may have begun; then false. It must not be freed meanwhile.
template <typename Handle>
bool TryUse(Handle handle) {
  uint32_t uses = handle->uses.load(std::memory_order_relaxed);
  while (uses != 0 && !handle->uses.compare_exchange_weak(uses, uses + 1, std::memory_order_acq_rel)) {
  }
  return uses != 0;
}
template <typename Handle>
void DropUse(Handle handle) {
  if (handle != nullptr && handle->uses.fetch_sub(1, std::memory_order_acq_rel) == 1) Destroy(handle);
}

/// clRelease*. The last reference of the application drops the one use that all of them share.
/// Specialised for devices (root devices are not counted) and queues (a release flushes).
template <typename Handle>
cl_int ReleaseObject(Handle handle) {
  if (handle == nullptr || handle->magic != HandleTraits<Handle>::kMagic) return HandleTraits<Handle>::kInvalid;
  uint32_t refs = handle->refs.load(std::memory_order_relaxed);
  do {
    if (refs == 0) return HandleTraits<Handle>::kInvalid;
  } while (!handle->refs.compare_exchange_weak(refs, refs - 1, std::memory_order_acq_rel));
  if (refs == 1) DropUse(handle);
  return CL_SUCCESS;
}
template <>
cl_int RetainObject<cl_device_id>(cl_device_id device);
template <>
cl_int ReleaseObject<cl_device_id>(cl_device_id device);
template <>
cl_int ReleaseObject<cl_command_queue>(cl_command_queue queue);

/// Tells the server that an object is gone and frees its id.
void SendRelease(const Object& object);

/// The same by its id; with `notify` the server answers with Released, which frees the id.
void SendRelease(guest::Session* session, wire::Id id, bool notify);

/// Logs once per call why it cannot work remotely.
void RefuseOnce(const char* call, const char* reason);

// ---------------------------------------------------------------------- enqueueing (enqueue.cc)

/// One command on its way to a queue. Used by hand-written and by generated entry points:
///   Enqueue enqueue(queue, type, n, list, event); Begin(); Use...(); Submit(message).
class Enqueue {
 public:
  Enqueue(cl_command_queue queue, cl_command_type type, cl_uint num_events, const cl_event* wait_list, cl_event* event)
      : queue_(queue), type_(type), num_events_(num_events), list_(wait_list), event_(event) {}
  ~Enqueue();
  Enqueue(const Enqueue&) = delete;
  Enqueue& operator=(const Enqueue&) = delete;

  /// Checks queue and wait list, returns a late error of the queue if there is one. Events that are complete are left
  /// out of the list that is sent.
  cl_int Begin();

  cl_int UseMem(cl_mem mem, wire::Id* id);
  cl_int UseMems(cl_uint count, const cl_mem* mems, wire::ArrayView<wire::Id>* ids);
  cl_int UseArray(const size_t* values, std::array<uint64_t, 3>* out);
  cl_int UseBytes(const void* data, size_t size, wire::Bytes* out);
  template <size_t N>
  cl_int UseFixed(const void* data, std::array<std::byte, N>* out) {
    if (data == nullptr) return CL_INVALID_VALUE;
    std::memcpy(out->data(), data, N);
    return CL_SUCCESS;
  }

  /// Makes the event if one was asked for, fills queue, wait_list and event of the message, sends it.
  template <typename Message>
  cl_int Submit(Message& message) {
    return SubmitAs(opencl::OpcodeOf<Message>::value, message);
  }
  template <typename Message>
  cl_int SubmitAs(opencl::Opcode opcode, Message& message) {
    Prepare(&message.queue, &message.wait_list, &message.event);
    return Conclude(queue_->session->Send(opcode, message));
  }
  /// As Submit, with a reply that goes to `sink`.
  template <typename Message>
  cl_int SubmitForReply(opencl::Opcode opcode, Message& message, guest::ReplySink* sink) {
    Prepare(&message.queue, &message.wait_list, &message.event);
    return Conclude(queue_->session->SendForReply(opcode, message, sink));
  }
  /// The command needs no server: its event is born complete.
  cl_int CompleteLocally();

  cl_command_queue queue() const { return queue_; }
  bool waits() const { return open_events_ != 0; }  ///< Something in the wait list is not complete yet.
  bool wants_event() const { return event_ != nullptr; }
  void ForceEvent() { force_event_ = true; }              ///< Make an event even if the application wants none.
  bool waits_for_failed() const { return failed_wait_; }  ///< An event of the wait list has failed already.
  /// Runs where completions are delivered when the command was done, before that is shown. Makes an event.
  void OnComplete(std::function<void()> function) {
    on_complete_ = std::move(function);
    force_event_ = true;
  }
  /// Completion is shown only once this has landed (a read's data).
  void Land(std::shared_ptr<Landing> landing) { landing_ = std::move(landing); }
  cl_mem mem(size_t i) const { return mems_[i]; }  ///< The i-th object given to UseMem or UseMems.
  size_t mem_count() const { return mems_.size(); }
  cl_event made() const { return made_; }  ///< After Submit: the event, if any; lives as long as this.
  /// Before Submit: the reads that the command comes after and that bring data to the memory yet.
  std::vector<std::shared_ptr<Landing>> EarlierReads(const void* memory, size_t size) const;
  /// Waits for them.
  cl_int AwaitReads(const std::vector<std::shared_ptr<Landing>>& reads) const;
  /// After Submit: waits until the data has landed of the reads that the command comes after.
  cl_int AwaitEarlierData();
  uint64_t position() const { return position_; }  ///< After Submit: as _cl_event::queue_position.
  /// True when everything enqueued before is known to be complete and the wait list is too.
  bool QueueIdle() const;
  /// Waits for the wait list and for everything in the queue (in-order), for commands done in place on the heap.
  cl_int WaitIdle();

 private:
  void Prepare(wire::Id* queue, wire::ArrayView<wire::Id>* wait_list, wire::Id* event);
  cl_int Conclude(int32_t sent);
  void AddOpen(wire::Id event);
  void FollowWrites();

  cl_command_queue queue_;
  cl_command_type type_;
  cl_uint num_events_;
  const cl_event* list_;
  cl_event* event_;
  bool force_event_ = false;
  bool failed_wait_ = false;
  cl_event made_ = nullptr;
  bool handed_over_ = false;
  uint64_t position_ = 0;
  std::function<void()> on_complete_;
  std::shared_ptr<Landing> landing_;
  std::vector<std::shared_ptr<Landing>> before_;
  uint32_t open_events_ = 0;
  static constexpr uint32_t kInlineEvents = 16;
  wire::Id inline_ids_[kInlineEvents];
  std::vector<wire::Id> more_ids_;
  std::vector<cl_event> writes_;  // Of other queues (blocking_writes.h), each with a use.
  std::vector<wire::Id> mem_ids_;
  std::vector<cl_mem> mems_;  // Copies and fills only: launches use none.
};

/// What clFinish does (after its checks): nothing when the queue is idle, else one round trip; then waits until the
/// data of all reads that it covers has landed. Returns the server's status or lost_code().
cl_int FinishQueue(cl_command_queue queue);
/// Sends Flush if something was enqueued since the last one (clFlush, waits for events).
void FlushQueue(cl_command_queue queue);

/// The rest of the checks of generated entry points, one overload per message, in enqueue_checks.cc.
cl_int Check(Enqueue& enqueue, const opencl::EnqueueFillBuffer& message);
cl_int Check(Enqueue& enqueue, const opencl::EnqueueCopyBuffer& message);
cl_int Check(Enqueue& enqueue, const opencl::EnqueueCopyBufferRect& message);
cl_int Check(Enqueue& enqueue, const opencl::EnqueueFillImage& message);
cl_int Check(Enqueue& enqueue, const opencl::EnqueueCopyImage& message);
cl_int Check(Enqueue& enqueue, const opencl::EnqueueCopyImageToBuffer& message);
cl_int Check(Enqueue& enqueue, const opencl::EnqueueCopyBufferToImage& message);
cl_int Check(Enqueue& enqueue, const opencl::EnqueueMigrateMemObjects& message);
cl_int Check(Enqueue& enqueue, const opencl::EnqueueMarkerWithWaitList& message);
cl_int Check(Enqueue& enqueue, const opencl::EnqueueBarrierWithWaitList& message);
cl_int Check(Enqueue& enqueue, const opencl::EnqueueSVMMemFill& message);

// ---------------------------------------------------------------------- objects by id (registry.cc)

/// Live guest objects by id, for notices from the server, and live memory objects by pointer, for clSetKernelArg of
/// kernels whose argument types are unknown. Find functions return the object with one more use, or null.
class Registry {
 public:
  static Registry& Get();
  void Add(Object* object);
  void Remove(Object* object);
  cl_event FindEvent(wire::Id id);
  cl_command_queue FindQueue(wire::Id id);
  cl_context FindContext(wire::Id id);
  /// All live events, each with one more use.
  std::vector<cl_event> LiveEvents();
  /// Any type: sets `failed`. For CommandFailed with a created object.
  void MarkFailed(wire::Id id, cl_int error);
  /// Whether this is the address of a live object. Never reads through the pointer.
  bool IsMem(const void* pointer);
  bool IsSampler(const void* pointer);
  bool IsQueue(const void* pointer);
};

}  // namespace hawser::ocl

#endif  // HAWSER_INTERPOSER_OPENCL_ENTRY_H_
