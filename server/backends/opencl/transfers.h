// SPDX-License-Identifier: Apache-2.0
// How reads and writes are carried out, for all kinds of memory. Internal to transfers.cc, images.cc and svm.cc.
//
// `enqueue`, `map` and `unmap` call the driver: enqueue(queue, memory, count, wait_list, event*).
#ifndef HAWSER_SERVER_BACKENDS_OPENCL_TRANSFERS_H_
#define HAWSER_SERVER_BACKENDS_OPENCL_TRANSFERS_H_

#include <cstring>
#include <utility>

#include "server/backends/opencl/bulk_transfers.h"
#include "server/backends/opencl/command.h"

namespace hawser::server::ocl {

/// Answers that fit a frame with room to spare. Far above the limit up to which guests read inline.
inline constexpr uint64_t kLargestInlineRead = 16u << 20;
/// Writes up to this share a block.
inline constexpr uint64_t kLargestSlabWrite = StagingPool::kSlab / 4;

// Completion::context is a StagingPool::Block.
bool AnswerRead(Completion& completion, int32_t status);
bool FreeBlock(Completion& completion, int32_t status);

template <typename Enqueue>
int32_t OpenClBackend::ReadInline(const opencl::Call& call, Command& command, uint64_t size, Enqueue&& enqueue) {
  command.Require(size <= kLargestInlineRead, CL_OUT_OF_RESOURCES, "too much for one answer; use a transfer");
  if (!command.ok()) return FailRead(call, command, 0, command.status());
  StagingPool::Owned block = staging_->Acquire(size);
  command.Require(block != nullptr, CL_OUT_OF_RESOURCES, "the session's limit on staging memory");
  Handle<cl_event> event;
  command.Call([&](cl_command_queue queue, cl_uint count, const cl_event* wait_list,
                   cl_event* made) { return enqueue(queue, block->data, count, wait_list, made); },
               &event, 1);
  if (!command.ok()) return FailRead(call, command, 0, command.status());
  Completion* completion = command.Accept(std::move(event), true);
  completion->action = &AnswerRead;
  completion->context = block.release();
  completion->size = size;
  completion->opcode = call.opcode;
  completion->seq = call.seq;
  completions_->Arm(completion);
  services_.stats->copied_out.Add(size);
  clFlush(command.native());
  return CL_SUCCESS;
}

template <typename Enqueue>
int32_t OpenClBackend::WriteInline(Command& command, wire::Bytes data, Enqueue&& enqueue) {
  if (!command.ok()) return command.Fail();
  const bool shared = command.queue()->in_order && data.size() <= kLargestSlabWrite;
  StagingPool::Owned block;
  std::byte* room = nullptr;
  if (shared) {
    room = SlabRoom(command.queue(), data.size());
  } else {
    block = staging_->Acquire(data.size());
    if (block != nullptr) room = block->data;
  }
  command.Require(room != nullptr, CL_OUT_OF_RESOURCES, "the session's limit on staging memory");
  if (!command.ok()) return command.Fail();
  std::memcpy(room, data.data(), data.size());
  Handle<cl_event> event;
  command.Call([&](cl_command_queue queue, cl_uint count, const cl_event* wait_list,
                   cl_event* made) { return enqueue(queue, room, count, wait_list, made); },
               &event, shared ? 0 : 1);
  if (!command.ok()) return command.Fail();
  services_.stats->copied_in.Add(data.size());
  Completion* completion = command.Accept(std::move(event), !shared);
  if (completion == nullptr) return CL_SUCCESS;
  if (!shared) {
    completion->action = &FreeBlock;
    completion->context = block.release();
  }
  completions_->Arm(completion);
  return CL_SUCCESS;
}

/// Enqueues a map and an unmap that waits for it and for `through`, with nothing in between: were the map to fail
/// first, some drivers (PoCL 3.1) would never start the unmap.
template <typename Map, typename Unmap>
void MapAndUnmap(Command& command, Map& map, Unmap& unmap, cl_event through, void** mapping, Handle<cl_event>* mapped,
                 Handle<cl_event>* unmapped) {
  if (command.ok()) command.NoteUnknown();
  command.Call(
      [&](cl_command_queue queue, cl_uint count, const cl_event* wait_list, cl_event* made) {
        cl_event map_event = nullptr;
        cl_int status = map(queue, mapping, count, wait_list, &map_event);
        mapped->Reset(map_event);
        if (status != CL_SUCCESS) return status;
        const cl_event waits[] = {through, map_event};
        return unmap(queue, *mapping, 2, waits, made);
      },
      unmapped, 2, nullptr, true);
}

template <typename Map, typename Unmap>
int32_t OpenClBackend::ReadMapped(const opencl::Call& call, Command& command, uint64_t transfer, uint64_t size,
                                  Map&& map, Unmap&& unmap) {
  if (!command.ok()) return FailRead(call, command, transfer, command.status());
  int32_t status = CL_SUCCESS;
  Handle<cl_event> through = user_events_->Create(command.queue()->context.get(), CL_COMPLETE, &status);
  command.Require(status == CL_SUCCESS, status, "no user event");
  void* mapping = nullptr;
  Handle<cl_event> mapped, unmapped;
  MapAndUnmap(command, map, unmap, through.get(), &mapping, &mapped, &unmapped);
  if (!command.ok()) {
    if (through) user_events_->Set(through.get(), CL_COMPLETE);
    return FailRead(call, command, transfer, command.status());
  }
  Completion* record = completions_->New(mapped.get(), command.queue(), command.queue()->number);
  if (Completion* completion = command.Accept(std::move(unmapped), false); completion != nullptr) {
    completion->started = Handle<cl_event>::Share(mapped.get());
    completions_->Arm(completion);
  }
  services_.stats->copied_out.Add(size);
  MappedRead::Begin(record, static_cast<const std::byte*>(mapping), size, transfer, std::move(through), *user_events_);
  clFlush(command.native());
  return CL_SUCCESS;
}

template <typename Map, typename Unmap>
int32_t OpenClBackend::WriteMapped(Command& command, uint64_t transfer, uint64_t size, Map&& map, Unmap&& unmap) {
  if (!command.ok()) return FailWrite(command, transfer, size, command.status());
  int32_t status = CL_SUCCESS;
  Handle<cl_event> through = user_events_->Create(command.queue()->context.get(), CL_COMPLETE, &status);
  command.Require(status == CL_SUCCESS, status, "no user event");
  void* mapping = nullptr;
  Handle<cl_event> mapped, unmapped;
  MapAndUnmap(command, map, unmap, through.get(), &mapping, &mapped, &unmapped);
  if (!command.ok()) {
    if (through) user_events_->Set(through.get(), CL_COMPLETE);
    return FailWrite(command, transfer, size, command.status());
  }
  Completion* record = completions_->New(mapped.get(), command.queue(), command.queue()->number);
  if (Completion* completion = command.Accept(std::move(unmapped), false); completion != nullptr) {
    completion->started = Handle<cl_event>::Share(mapped.get());
    completions_->Arm(completion);
  }
  if (!MappedWrite::Begin(record, static_cast<std::byte*>(mapping), size, transfer,
                          Handle<cl_event>::Share(through.get()), *user_events_)) {
    completions_->Arm(record);  // With nothing to do.
    user_events_->Set(through.get(), CL_COMPLETE);
    // Its event, if any, completes as usual; the failure is told beside it.
    return command.Fail(Explain(CL_OUT_OF_RESOURCES, "the transfer's name or size is not acceptable"));
  }
  services_.stats->copied_in.Add(size);
  clFlush(command.native());
  return CL_SUCCESS;
}

template <typename Enqueue>
int32_t OpenClBackend::ReadStaged(const opencl::Call& call, Command& command, uint64_t transfer, uint64_t size,
                                  Enqueue&& enqueue) {
  if (!command.ok()) return FailRead(call, command, transfer, command.status());
  StagingPool::Owned block = staging_->Acquire(size);
  command.Require(block != nullptr, CL_OUT_OF_RESOURCES, "the session's limit on staging memory");
  Handle<cl_event> event;
  command.Call([&](cl_command_queue queue, cl_uint count, const cl_event* wait_list,
                   cl_event* made) { return enqueue(queue, block->data, count, wait_list, made); },
               &event, 1);
  if (!command.ok()) return FailRead(call, command, transfer, command.status());
  StagedRead::Begin(command.Accept(std::move(event), true), std::move(block), size, transfer);
  services_.stats->copied_out.Add(size);
  clFlush(command.native());
  return CL_SUCCESS;
}

template <typename Enqueue>
int32_t OpenClBackend::WriteStaged(Command& command, uint64_t transfer, uint64_t size, Enqueue&& enqueue) {
  if (!command.ok()) return FailWrite(command, transfer, size, command.status());
  StagingPool::Owned block = staging_->Acquire(size);
  if (block == nullptr) {
    return FailWrite(command, transfer, size, Explain(CL_OUT_OF_RESOURCES, "the session's limit on staging memory"));
  }
  int32_t status = CL_SUCCESS;
  Handle<cl_event> there = user_events_->Create(command.queue()->context.get(), CL_COMPLETE, &status);
  if (status != CL_SUCCESS) return FailWrite(command, transfer, size, status);
  StagedWrite* write =
      StagedWrite::Begin(std::move(block), size, transfer, Handle<cl_event>::Share(there.get()), *user_events_);
  if (write == nullptr) {
    user_events_->Set(there.get(), CL_COMPLETE);
    return command.Fail(Explain(CL_OUT_OF_RESOURCES, "the transfer's name or size is not acceptable"));
  }
  Handle<cl_event> event;
  command.Call([&](cl_command_queue queue, cl_uint count, const cl_event* wait_list,
                   cl_event* made) { return enqueue(queue, write->data(), count, wait_list, made); },
               &event, 1, there.get());
  if (!command.ok()) {
    write->Drop();
    return command.Fail();
  }
  write->Arm(command.Accept(std::move(event), true));
  services_.stats->copied_in.Add(size);
  clFlush(command.native());
  return CL_SUCCESS;
}

}  // namespace hawser::server::ocl

#endif  // HAWSER_SERVER_BACKENDS_OPENCL_TRANSFERS_H_
