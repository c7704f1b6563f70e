// SPDX-License-Identifier: Apache-2.0
// Reads and writes of buffers, and what all transfers share.
#include "server/backends/opencl/transfers.h"

namespace hawser::server::ocl {

bool AnswerRead(Completion& completion, int32_t status) {
  const StagingPool::Owned block(static_cast<StagingPool::Block*>(completion.context));
  opencl::ReadReply reply;
  if (status < 0) {
    reply.status = status;
  } else {
    reply.data = wire::Bytes(block->data, completion.size);
  }
  // Data first, then the announcement, if there is one, which flushes both.
  completion.answered = static_cast<bool>(completion.announce);
  completion.owner().replies().Send(static_cast<opencl::Opcode>(completion.opcode), completion.seq, reply,
                                    !completion.answered);
  return false;
}

bool FreeBlock(Completion& completion, int32_t) {
  const StagingPool::Owned block(static_cast<StagingPool::Block*>(completion.context));
  return false;
}

std::byte* OpenClBackend::SlabRoom(const std::shared_ptr<Queue>& queue, uint64_t size) {
  constexpr uint64_t kAlignment = 128;
  if (queue->slab != nullptr && queue->slab->capacity - queue->slab_used < size) RetireSlab(queue);
  if (queue->slab == nullptr) {
    queue->slab = staging_->Acquire(StagingPool::kSlab);
    queue->slab_used = 0;
    if (queue->slab == nullptr) return nullptr;
  }
  std::byte* room = queue->slab->data + queue->slab_used;
  queue->slab_used =
      std::min(queue->slab->capacity, (queue->slab_used + size + kAlignment - 1) / kAlignment * kAlignment);
  return room;
}

void OpenClBackend::RetireSlab(const std::shared_ptr<Queue>& queue) {
  if (queue->slab == nullptr) return;
  StagingPool::Owned slab = std::move(queue->slab);
  // An in-order queue: when its newest command is done, so are the writes before it.
  if (!queue->last) return;
  Completion* completion = completions_->New(queue->last.get(), nullptr, 0);
  if (completion == nullptr) {
    (void)slab.release();  // Out of memory for a record; better to lose the block than to free it too soon.
    return;
  }
  completion->action = &FreeBlock;
  completion->context = slab.release();
  completions_->Arm(completion);
}

void OpenClBackend::DrainTransfer(uint64_t transfer, uint64_t size) {
  if (transfer == 0 || size == 0) return;
  (void)services_.bulk_in->Drop(transfer, size);
}

int32_t OpenClBackend::FailRead(const opencl::Call& call, Command& command, uint64_t transfer, int32_t status) {
  command.Fail(status);
  if (transfer != 0) {
    services_.bulk_out->Abort(transfer, status);
  } else {
    opencl::ReadReply reply;
    reply.status = status;
    Reply(call, reply);
  }
  if (command.event_id()) {
    opencl::EventStatus notice;
    notice.event = command.event_id();
    notice.status = status;
    services_.replies->Notify(notice, true);
  }
  return CL_SUCCESS;
}

int32_t OpenClBackend::FailWrite(Command& command, uint64_t transfer, uint64_t size, int32_t status) {
  command.Fail(status);
  DrainTransfer(transfer, size);
  return status;
}

int32_t OpenClBackend::EnqueueReadBuffer(const opencl::Call& call, const opencl::ReadBuffer& message) {
  Command command(*this, call, message.queue, message.wait_list, message.event);
  uint64_t total = 0;
  cl_mem buffer = command.Buffer(message.buffer, "buffer", &total);
  command.Require(message.size != 0 && InRange(message.offset, message.size, total), CL_INVALID_VALUE,
                  "the range is outside the buffer");
  if (message.transfer == 0) {
    return ReadInline(
        call, command, message.size,
        [&](cl_command_queue queue, std::byte* to, cl_uint count, const cl_event* waits, cl_event* event) {
          return clEnqueueReadBuffer(queue, buffer, CL_FALSE, message.offset, message.size, to, count, waits, event);
        });
  }
  return ReadMapped(
      call, command, message.transfer, message.size,
      [&](cl_command_queue queue, void** mapping, cl_uint count, const cl_event* waits, cl_event* event) {
        cl_int status = CL_SUCCESS;
        *mapping = clEnqueueMapBuffer(queue, buffer, CL_FALSE, CL_MAP_READ, message.offset, message.size, count, waits,
                                      event, &status);
        return status;
      },
      [&](cl_command_queue queue, void* mapping, cl_uint count, const cl_event* waits, cl_event* event) {
        return clEnqueueUnmapMemObject(queue, buffer, mapping, count, waits, event);
      });
}

int32_t OpenClBackend::EnqueueWriteBuffer(const opencl::Call& call, const opencl::WriteBuffer& message) {
  Command command(*this, call, message.queue, message.wait_list, message.event);
  uint64_t total = 0;
  cl_mem buffer = command.Buffer(message.buffer, "buffer", &total);
  command.Require(message.size != 0 && InRange(message.offset, message.size, total), CL_INVALID_VALUE,
                  "the range is outside the buffer");
  if (message.transfer == 0) {
    command.Require(message.data.size() == message.size, CL_INVALID_VALUE, "the data has another size than it says");
    return WriteInline(
        command, message.data,
        [&](cl_command_queue queue, const std::byte* from, cl_uint count, const cl_event* waits, cl_event* event) {
          return clEnqueueWriteBuffer(queue, buffer, CL_FALSE, message.offset, message.size, from, count, waits, event);
        });
  }
  return WriteMapped(
      command, message.transfer, message.size,
      [&](cl_command_queue queue, void** mapping, cl_uint count, const cl_event* waits, cl_event* event) {
        cl_int status = CL_SUCCESS;
        // All of the region is written, so nobody needs what is there.
        const cl_map_flags flags = command.queue()->version >= 12 ? CL_MAP_WRITE_INVALIDATE_REGION : CL_MAP_WRITE;
        *mapping = clEnqueueMapBuffer(queue, buffer, CL_FALSE, flags, message.offset, message.size, count, waits, event,
                                      &status);
        return status;
      },
      [&](cl_command_queue queue, void* mapping, cl_uint count, const cl_event* waits, cl_event* event) {
        return clEnqueueUnmapMemObject(queue, buffer, mapping, count, waits, event);
      });
}

int32_t OpenClBackend::EnqueueReadBufferRect(const opencl::Call& call, const opencl::ReadBufferRect& message) {
  Command command(*this, call, message.queue, message.wait_list, message.event);
  uint64_t total = 0, bytes = 0;
  cl_mem buffer = command.Buffer(message.buffer, "buffer", &total);
  command.Require(RectInBuffer(message.origin, message.region, message.row_pitch, message.slice_pitch, total) &&
                      RegionBytes(message.region, 1, &bytes),
                  CL_INVALID_VALUE, "the rectangle is outside the buffer");
  const auto read = [&](cl_command_queue queue, std::byte* to, cl_uint count, const cl_event* waits, cl_event* event) {
    constexpr size_t kOrigin[3] = {};
    return clEnqueueReadBufferRect(queue, buffer, CL_FALSE, message.origin.data(), kOrigin, message.region.data(),
                                   message.row_pitch, message.slice_pitch, 0, 0, to, count, waits, event);
  };
  return message.transfer == 0 ? ReadInline(call, command, bytes, read)
                               : ReadStaged(call, command, message.transfer, bytes, read);
}

int32_t OpenClBackend::EnqueueWriteBufferRect(const opencl::Call& call, const opencl::WriteBufferRect& message) {
  Command command(*this, call, message.queue, message.wait_list, message.event);
  uint64_t total = 0, bytes = 0;
  cl_mem buffer = command.Buffer(message.buffer, "buffer", &total);
  // Also for a rectangle that fits nowhere, so that a transfer can be drained.
  const bool sized = RegionBytes(message.region, 1, &bytes);
  command.Require(sized && RectInBuffer(message.origin, message.region, message.row_pitch, message.slice_pitch, total),
                  CL_INVALID_VALUE, "the rectangle is outside the buffer");
  const auto write = [&](cl_command_queue queue, const std::byte* from, cl_uint count, const cl_event* waits,
                         cl_event* event) {
    constexpr size_t kOrigin[3] = {};
    return clEnqueueWriteBufferRect(queue, buffer, CL_FALSE, message.origin.data(), kOrigin, message.region.data(),
                                    message.row_pitch, message.slice_pitch, 0, 0, from, count, waits, event);
  };
  if (message.transfer != 0) return WriteStaged(command, message.transfer, bytes, write);
  command.Require(message.data.size() == bytes, CL_INVALID_VALUE, "the data has another size than the region");
  return WriteInline(command, message.data, write);
}

}  // namespace hawser::server::ocl
