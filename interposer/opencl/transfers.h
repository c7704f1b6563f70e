// SPDX-License-Identifier: Apache-2.0
// Data between the application's memory and the server: how reads and writes of every kind are carried out.
#ifndef HAWSER_INTERPOSER_OPENCL_TRANSFERS_H_
#define HAWSER_INTERPOSER_OPENCL_TRANSFERS_H_

#include "interposer/opencl/entry.h"
#include "interposer/opencl/event_state.h"
#include "interposer/opencl/landing.h"
#include "interposer/opencl/region.h"

namespace hawser::ocl {

/// A read on its way: receives its data as a reply or on the bulk channel, spreads it, tells the landing book.
/// Counted: one reference for the session (until one of the sinks' last functions was called), one for the caller.
class RemoteRead final : public guest::ReplySink, public guest::BulkSink {
 public:
  /// `target` null: the data (small) is dropped. Without a landing the caller waits.
  RemoteRead(guest::Session* session, void* target, const Region& region)
      : session_(session), target_(static_cast<std::byte*>(target)), region_(region) {}
  /// `earlier`: reads into the same memory, behind which the data goes in, whichever comes first.
  void SetLanding(std::shared_ptr<Landing> landing, Landings earlier) {
    landing_ = std::move(landing);
    if (earlier.empty()) return;
    earlier_ = std::move(earlier);
    aside_ = std::make_shared<std::vector<std::byte>>(region_.bytes());
  }

  void OnReply(wire::Bytes payload) override;
  void OnLost() override;
  std::byte* Place(uint64_t offset, uint32_t size) override;
  void OnChunk(uint64_t offset, uint32_t size) override;
  void OnEnd(int32_t status) override;

  bool done() const { return done_.load(std::memory_order_acquire); }
  cl_int status() const { return status_; }
  void Unref() {
    if (refs_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }

 private:
  void Conclude(cl_int status, bool bulk);

  guest::Session* session_;
  std::byte* target_;
  Region region_;
  std::shared_ptr<Landing> landing_;
  Landings earlier_;
  std::shared_ptr<std::vector<std::byte>> aside_;  // Data that waits for them, or null.
  std::vector<std::byte> chunk_;                   // Of strided targets.
  cl_int status_ = CL_SUCCESS;
  std::atomic<bool> done_{false};
  std::atomic<int> refs_{2};
};

/// What comes after the command of a read was sent (`sent`: what Submit returned).
cl_int ConcludeRead(Enqueue& enqueue, RemoteRead* read, cl_int sent, uint64_t transfer, bool blocking);
/// Sends the bulk data of a write.
cl_int SendStrided(guest::Session* session, uint64_t transfer, const std::byte* source, const Region& region);
/// Small strided data in one piece, kept in `packed`. Not in a thread's own variable: programs call from destructors
/// that run at exit, after those of the thread.
wire::Bytes GatherSmall(const std::byte* source, const Region& region, std::vector<std::byte>* packed);
/// The command, which is about to be submitted, copies memory of the program when it is complete, and reads that come
/// before it have brought what they bring there.
void CopyWhenComplete(Enqueue& enqueue, void* to, const void* from, size_t size);
/// Sends a command that does nothing but complete in its place among the queue's commands.
cl_int SubmitMarker(Enqueue& enqueue);
/// Waits for the event that Submit made (ForceEvent).
cl_int AwaitMade(Enqueue& enqueue);

/// Reads `region` into `target` by `message`, which names everything but the transfer. CL_SUCCESS, an error, or when
/// blocking the read's own failure.
template <typename Message>
cl_int SubmitRead(Enqueue& enqueue, opencl::Opcode opcode, Message& message, void* target, const Region& region,
                  bool blocking) {
  guest::Session* session = enqueue.queue()->session;
  if (blocking && enqueue.waits_for_failed()) return CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST;
  const bool bulk = region.bytes() > session->inline_limit();
  const size_t extent = target != nullptr ? region.extent() : 0;
  Landings earlier = enqueue.EarlierReads(target, extent);
  if (blocking && !earlier.empty()) {
    if (const cl_int error = enqueue.AwaitReads(earlier); error != CL_SUCCESS) return error;
  }
  auto* read = new RemoteRead(session, target, region);
  if (!blocking) {
    auto landing = LandingBook::Get().Open(target, extent);
    read->SetLanding(landing, std::move(earlier));
    enqueue.Land(landing);
    if (bulk) enqueue.ForceEvent();  // Its completion tells what may depend on the data.
  }
  cl_int sent;
  if (bulk) {
    message.transfer = session->NewTransfer();
    session->ExpectBulk(message.transfer, read);
    sent = enqueue.SubmitAs(opcode, message);
  } else {
    sent = enqueue.SubmitForReply(opcode, message, read);
  }
  return ConcludeRead(enqueue, read, sent, message.transfer, blocking);
}

/// Sends it when these reads, which bring it, have landed. The memory is the program's, or the command's first
/// object's, to keep until then.
void SendLate(Enqueue& enqueue, uint64_t transfer, const std::byte* source, const Region& region,
              const Landings& changing);

/// Writes `region` at `source` by `message`. The data is taken when this returns, or if reads that come before still
/// bring it, when they have; blocking_writes.h tells what a write that "blocks" does beyond that.
template <typename Message>
cl_int SubmitWrite(Enqueue& enqueue, opencl::Opcode opcode, Message& message, const void* source, const Region& region,
                   bool blocking = false) {
  guest::Session* session = enqueue.queue()->session;
  const auto* bytes = static_cast<const std::byte*>(source);
  const Landings changing = enqueue.EarlierReads(source, region.extent());
  if (!changing.empty()) [[unlikely]] {
    if (!blocking) {
      message.transfer = session->NewLateTransfer();
      const cl_int error = enqueue.SubmitAs(opcode, message);
      if (error == CL_SUCCESS) SendLate(enqueue, message.transfer, bytes, region, changing);
      return error;
    }
    if (const cl_int error = enqueue.AwaitReads(changing); error != CL_SUCCESS) return error;
  }
  // On an out-of-order queue nothing else keeps the next command behind it.
  const bool wait = blocking && enqueue.queue()->out_of_order();
  if (wait) enqueue.ForceEvent();
  const auto write = blocking && !wait ? BlockingWrites::Begin(enqueue) : nullptr;
  cl_int error = CL_SUCCESS;
  if (region.bytes() <= session->inline_limit()) {
    std::vector<std::byte> packed;
    message.data = region.contiguous() ? wire::Bytes(bytes, region.bytes()) : GatherSmall(bytes, region, &packed);
    error = enqueue.SubmitAs(opcode, message);
  } else {
    message.transfer = session->NewTransfer();
    error = enqueue.SubmitAs(opcode, message);
    if (error == CL_SUCCESS) error = SendStrided(session, message.transfer, bytes, region);
  }
  if (error != CL_SUCCESS) return error;
  if (wait) return AwaitMade(enqueue);
  if (blocking) BlockingWrites::Sent(enqueue, write);
  return CL_SUCCESS;
}

/// The buffer's bytes in the heap, or null.
inline std::byte* HeapPointer(cl_mem mem) {
  return mem->heap_offset == guest::Session::kNoHeap ? nullptr : mem->session->heap_base() + mem->heap_offset;
}

/// What every call that touches a buffer on a queue checks: that it is one, and that a sub-buffer suits the device.
cl_int CheckBuffer(cl_command_queue queue, cl_mem mem);
/// Whether [offset, offset + size) lies in the object.
inline bool InBounds(cl_mem mem, size_t offset, size_t size) {
  return offset <= mem->size && size <= mem->size - offset;
}
/// CL_INVALID_OPERATION when the object's host access flags forbid it.
inline cl_int CheckHostRead(cl_mem mem) {
  return (mem->flags & (CL_MEM_HOST_WRITE_ONLY | CL_MEM_HOST_NO_ACCESS)) != 0 ? CL_INVALID_OPERATION : CL_SUCCESS;
}
inline cl_int CheckHostWrite(cl_mem mem) {
  return (mem->flags & (CL_MEM_HOST_READ_ONLY | CL_MEM_HOST_NO_ACCESS)) != 0 ? CL_INVALID_OPERATION : CL_SUCCESS;
}

/// Makes the heap safe to touch for a command in place: true at once when the queue is idle, after one round trip
/// when `blocking` on an in-order queue. False: take the general path. Errors in `error`.
bool ReadyInPlace(Enqueue& enqueue, bool blocking, cl_int* error);

}  // namespace hawser::ocl

#endif  // HAWSER_INTERPOSER_OPENCL_TRANSFERS_H_
