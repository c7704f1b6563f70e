// SPDX-License-Identifier: Apache-2.0
// Threads: a RemoteRead's sink functions run on whichever thread receives the channel; the thread that enqueued waits
// for done() or leaves.
#include <cstring>

#include "interposer/opencl/delivery.h"
#include "interposer/opencl/transfers.h"

namespace hawser::ocl {
namespace {

constexpr cl_int kMalformed = CL_OUT_OF_RESOURCES;  // The server answered something else than what was asked.

}  // namespace

void RemoteRead::OnReply(wire::Bytes payload) {
  wire::Reader reader(payload);
  opencl::ReadReply reply;
  if (!reply.Decode(reader)) {
    Conclude(kMalformed, false);
  } else if (reply.status != CL_SUCCESS) {
    Conclude(reply.status, false);
  } else if (reply.data.size() != region_.bytes()) {
    Conclude(kMalformed, false);
  } else {
    if (aside_ != nullptr) {
      std::memcpy(aside_->data(), reply.data.data(), reply.data.size());
    } else if (target_ != nullptr) {
      Scatter(target_, region_, 0, reply.data.size(), reply.data.data());
    }
    Conclude(CL_SUCCESS, false);
  }
}

void RemoteRead::OnLost() { Conclude(guest::Session::lost_code(), false); }

std::byte* RemoteRead::Place(uint64_t offset, uint32_t size) {
  const uint64_t total = region_.bytes();
  if (offset > total || size > total - offset) return nullptr;
  if (aside_ != nullptr) return aside_->data() + offset;
  if (region_.contiguous()) return target_ + offset;
  if (chunk_.size() < size) chunk_.resize(size);
  return chunk_.data();
}

void RemoteRead::OnChunk(uint64_t offset, uint32_t size) {
  if (aside_ == nullptr && !region_.contiguous()) Scatter(target_, region_, offset, size, chunk_.data());
}

void RemoteRead::OnEnd(int32_t status) { Conclude(status, true); }

void RemoteRead::Conclude(cl_int status, bool bulk) {
  status_ = status;
  done_.store(true, std::memory_order_release);
  if (aside_ != nullptr && status == CL_SUCCESS) {
    LandingBook::Get().Then(earlier_, [session = session_, target = target_, region = region_, landing = landing_,
                                       aside = std::move(aside_)] {
      Scatter(target, region, 0, aside->size(), aside->data());
      ShowLanded(LandingBook::Get().Land(landing, CL_SUCCESS));
      session->Wake();
    });
  } else if (landing_ != nullptr) {
    ShowLanded(LandingBook::Get().Land(landing_, status));
    if (bulk) session_->Wake();  // Those who wait for events receive on the other channel.
  }
  Unref();
}

cl_int ConcludeRead(Enqueue& enqueue, RemoteRead* read, cl_int sent, uint64_t transfer, bool blocking) {
  cl_command_queue queue = enqueue.queue();
  guest::Session* session = queue->session;
  if (sent != CL_SUCCESS) {
    // The sink is told here, unless the transfer's own end, a loss at this moment, tells it.
    if (transfer == 0 || session->CancelBulk(transfer)) read->OnLost();
    read->Unref();
    return sent;
  }
  if (!blocking) {
    read->Unref();
    if (transfer != 0) session->ReceiveBulkInBackground();
    return CL_SUCCESS;
  }
  queue->unflushed.store(false, std::memory_order_relaxed);
  auto done = [read] { return read->done(); };
  cl_int error = transfer != 0 ? session->WaitBulkUntil(done) : session->WaitUntil(done);
  if (error == CL_SUCCESS) error = read->status();
  read->Unref();
  if (error != CL_SUCCESS) return error;
  // What this read followed must be complete for the application too.
  error = enqueue.AwaitEarlierData();
  if (error != CL_SUCCESS) return error;
  if (!queue->out_of_order()) AdvanceFinished(queue, enqueue.position());
  if (enqueue.made() != nullptr) {
    if (queue->profiling()) return AwaitMade(enqueue);  // Its times come with the completion.
    ShowFinal(enqueue.made(), CL_COMPLETE);
  }
  return queue->pending_error.load(std::memory_order_relaxed) == CL_SUCCESS ? CL_SUCCESS
                                                                            : queue->pending_error.exchange(CL_SUCCESS);
}

cl_int SendStrided(guest::Session* session, uint64_t transfer, const std::byte* source, const Region& region) {
  if (region.contiguous()) return session->SendBulk(transfer, wire::Bytes(source, region.bytes()));
  std::vector<std::byte> chunk;
  return session->SendBulkFrom(transfer, region.bytes(), [&](uint64_t offset, uint32_t size) {
    if (chunk.size() < size) chunk.resize(size);
    Gather(source, region, offset, size, chunk.data());
    return static_cast<const std::byte*>(chunk.data());
  });
}

void SendLate(Enqueue& enqueue, uint64_t transfer, const std::byte* source, const Region& region,
              const Landings& changing) {
  guest::Session* const session = enqueue.queue()->session;
  const cl_mem kept = enqueue.mem_count() != 0 ? Use(enqueue.mem(0)) : nullptr;
  session->AddListener();  // The reads land also when no thread of the program waits.
  LandingBook::Get().Then(changing, [=] {
    // Whoever receives must go on receiving.
    session->PostChore([=] {
      if (!session->lost()) (void)SendStrided(session, transfer, source, region);
      session->RemoveListener();
      if (kept != nullptr) DropUse(kept);
    });
  });
}

wire::Bytes GatherSmall(const std::byte* source, const Region& region, std::vector<std::byte>* packed) {
  packed->resize(region.bytes());
  Gather(source, region, 0, packed->size(), packed->data());
  return *packed;
}

void CopyWhenComplete(Enqueue& enqueue, void* to, const void* from, size_t size) {
  Landings earlier = enqueue.EarlierReads(to, size);
  const Landings source = enqueue.EarlierReads(from, size);
  earlier.insert(earlier.end(), source.begin(), source.end());
  const auto landing = LandingBook::Get().Open(to, size);
  enqueue.Land(landing);
  enqueue.OnComplete([=, session = enqueue.queue()->session] {
    LandingBook::Get().Then(earlier, [=] {
      std::memcpy(to, from, size);
      ShowLanded(LandingBook::Get().Land(landing, CL_SUCCESS));
      session->Wake();
    });
  });
}

cl_int SubmitMarker(Enqueue& enqueue) {
  opencl::EnqueueMarkerWithWaitList message;
  return enqueue.Submit(message);
}

cl_int AwaitMade(Enqueue& enqueue) {
  cl_event event = enqueue.made();
  const cl_int error = WaitForAll(1, &event);
  return error == CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST ? StatusOf(event) : error;
}

cl_int CheckBuffer(cl_command_queue queue, cl_mem mem) {
  if (mem->type != CL_MEM_OBJECT_BUFFER) return CL_INVALID_MEM_OBJECT;
  const size_t alignment = queue->device->base_align_bits / 8;
  if (mem->parent != nullptr && alignment > 1 && mem->origin % alignment != 0) return CL_MISALIGNED_SUB_BUFFER_OFFSET;
  return CL_SUCCESS;
}

bool ReadyInPlace(Enqueue& enqueue, bool blocking, cl_int* error) {
  cl_command_queue queue = enqueue.queue();
  if (queue->profiling()) return false;  // Times come from the server.
  if (enqueue.QueueIdle()) return true;
  // Commands of an out-of-order queue need not be complete for this one to start.
  if (!blocking || queue->out_of_order()) return false;
  *error = enqueue.WaitIdle();
  if (*error == CL_SUCCESS && queue->pending_error.load(std::memory_order_relaxed) != CL_SUCCESS) {
    *error = queue->pending_error.exchange(CL_SUCCESS);
  }
  return true;
}

}  // namespace hawser::ocl
