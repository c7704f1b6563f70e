// SPDX-License-Identifier: Apache-2.0
// Commands without data: kernels, fills and copies of buffers, migration, markers and barriers.
#include <array>
#include <cstring>
#include <vector>

#include "server/backends/opencl/command.h"

namespace hawser::server::ocl {
namespace {

// The counts were checked against the dimension.
void Copy(const wire::ArrayView<uint64_t>& from, size_t (&to)[3]) {
  for (uint32_t i = 0; i < from.size(); ++i) to[i] = from[i];
}

bool HasZero(const wire::ArrayView<uint64_t>& values) {
  for (uint32_t i = 0; i < values.size(); ++i) {
    if (values[i] == 0) return true;
  }
  return false;
}

// The time in which a launch goes to the driver unasked, because the tenant is alone.
class OpenLaunch {
 public:
  OpenLaunch(const Splitter* splitter, const Queue& queue)
      : gate_(splitter != nullptr && splitter->BeginOpen(queue) ? queue.gate : nullptr) {}
  ~OpenLaunch() {
    if (gate_ != nullptr) gate_->EndOpen();
  }
  OpenLaunch(const OpenLaunch&) = delete;
  OpenLaunch& operator=(const OpenLaunch&) = delete;

  bool is_open() const { return gate_ != nullptr; }

 private:
  LaunchGate* const gate_;
};

// One side of a copy of rectangles.
struct RectangleSide {
  cl_mem buffer;
  size_t origin[3];
};
RectangleSide SideOf(const Memory& memory, const std::array<uint64_t, 3>& origin) {
  if (!memory.rectangles_in) return {memory.native.get(), {origin[0], origin[1], origin[2]}};
  return {memory.rectangles_in.get(), {origin[0] + memory.rectangles_at, origin[1], origin[2]}};
}

bool IsPatternSize(size_t size) { return size != 0 && size <= 128 && (size & (size - 1)) == 0; }

}  // namespace

int32_t OpenClBackend::EnqueueNDRangeKernel(const opencl::Call& call, const opencl::EnqueueNDRangeKernel& message) {
  Command command(*this, call, message.queue, message.wait_list, message.event);
  Kernel* kernel = command.Use<Kernel>(message.kernel, "kernel");
  const uint32_t dimensions = message.work_dim;
  command.Require(message.offset.empty() || message.offset.size() == dimensions, CL_INVALID_GLOBAL_OFFSET,
                  "the offset has another dimension");
  command.Require(message.global.empty() || message.global.size() == dimensions, CL_INVALID_GLOBAL_WORK_SIZE,
                  "the global size has another dimension");
  command.Require(message.local.empty() || (message.local.size() == dimensions && !HasZero(message.local)),
                  CL_INVALID_WORK_GROUP_SIZE, "the local size has another dimension or is zero");
  if (!command.ok()) return command.Fail();
  size_t offset[3], global[3] = {}, local[3];
  Copy(message.offset, offset);
  Copy(message.global, global);
  Copy(message.local, local);
  uint64_t items = 1;
  for (uint32_t d = 0; d < dimensions && d < 3; ++d) items *= global[d];
  const bool hold =
      splitter_ != nullptr && message.wait_list.empty() && splitter_->MustHold(*command.queue(), kernel->split, items);
  const bool must_ask = splitter_ != nullptr && splitter_->MustAsk(*command.queue());
  const OpenLaunch open(hold || must_ask ? nullptr : splitter_.get(), *command.queue());
  const bool may_look_carried = dimensions == 3 && kernel->split.program != nullptr && kernel->split.program->carries;
  if (splitter_ != nullptr && (!open.is_open() || may_look_carried)) {
    bool taken = false;
    const int32_t status = LaunchSplit(call, message, command, open.is_open(), hold, &taken);
    if (taken) {
      if (status == CL_SUCCESS) services_.stats->kernels.Add(1);
      return status;
    }
  }
  return command.Run([&](cl_command_queue queue, cl_uint count, const cl_event* wait_list, cl_event* event) {
    const cl_int status = clEnqueueNDRangeKernel(
        queue, kernel->native.get(), dimensions, message.offset.empty() ? nullptr : offset,
        message.global.empty() ? nullptr : global, message.local.empty() ? nullptr : local, count, wait_list, event);
    if (status == CL_SUCCESS) {
      services_.stats->kernels.Add(1);
      if (open.is_open()) splitter_->NoteOpen(*command.queue(), kernel->split, *event, items);
      if (kernel_trace_->Wanted()) [[unlikely]] {
        kernel_trace_->Watch(*event, kernel->native.get(), message.queue.index());
      }
    }
    return status;
  });
}

int32_t OpenClBackend::EnqueueFillBuffer(const opencl::Call& call, const opencl::EnqueueFillBuffer& message) {
  Command command(*this, call, message.queue, message.wait_list, message.event);
  uint64_t size = 0;
  cl_mem buffer = command.Buffer(message.buffer, "buffer", &size);
  command.Require(IsPatternSize(message.pattern.size()), CL_INVALID_VALUE, "no size for a pattern");
  command.Require(InRange(message.offset, message.size, size), CL_INVALID_VALUE, "the range is outside the buffer");
  if (!command.ok()) return command.Fail();
  return command.Run([&](cl_command_queue queue, cl_uint count, const cl_event* wait_list, cl_event* event) {
    return clEnqueueFillBuffer(queue, buffer, message.pattern.data(), message.pattern.size(), message.offset,
                               message.size, count, wait_list, event);
  });
}

int32_t OpenClBackend::EnqueueCopyBuffer(const opencl::Call& call, const opencl::EnqueueCopyBuffer& message) {
  Command command(*this, call, message.queue, message.wait_list, message.event);
  uint64_t source_size = 0, destination_size = 0;
  cl_mem source = command.Buffer(message.source, "source", &source_size);
  cl_mem destination = command.Buffer(message.destination, "destination", &destination_size);
  command.Require(InRange(message.source_offset, message.size, source_size), CL_INVALID_VALUE,
                  "the range is outside the source");
  command.Require(InRange(message.destination_offset, message.size, destination_size), CL_INVALID_VALUE,
                  "the range is outside the destination");
  if (!command.ok()) return command.Fail();
  return command.Run([&](cl_command_queue queue, cl_uint count, const cl_event* wait_list, cl_event* event) {
    return clEnqueueCopyBuffer(queue, source, destination, message.source_offset, message.destination_offset,
                               message.size, count, wait_list, event);
  });
}

int32_t OpenClBackend::EnqueueCopyBufferRect(const opencl::Call& call, const opencl::EnqueueCopyBufferRect& message) {
  Command command(*this, call, message.queue, message.wait_list, message.event);
  const Memory* source = command.Buffer(message.source, "source");
  const Memory* destination = command.Buffer(message.destination, "destination");
  const uint64_t source_size = source != nullptr ? source->size : 0;
  const uint64_t destination_size = destination != nullptr ? destination->size : 0;
  command.Require(RectInBuffer(message.source_origin, message.region, message.source_row_pitch,
                               message.source_slice_pitch, source_size),
                  CL_INVALID_VALUE, "the rectangle is outside the source");
  command.Require(RectInBuffer(message.destination_origin, message.region, message.destination_row_pitch,
                               message.destination_slice_pitch, destination_size),
                  CL_INVALID_VALUE, "the rectangle is outside the destination");
  if (!command.ok()) return command.Fail();
  const RectangleSide from = SideOf(*source, message.source_origin);
  const RectangleSide to = SideOf(*destination, message.destination_origin);
  return command.Run([&](cl_command_queue queue, cl_uint count, const cl_event* wait_list, cl_event* event) {
    return clEnqueueCopyBufferRect(queue, from.buffer, to.buffer, from.origin, to.origin, message.region.data(),
                                   message.source_row_pitch, message.source_slice_pitch, message.destination_row_pitch,
                                   message.destination_slice_pitch, count, wait_list, event);
  });
}

int32_t OpenClBackend::EnqueueMigrateMemObjects(const opencl::Call& call,
                                                const opencl::EnqueueMigrateMemObjects& message) {
  Command command(*this, call, message.queue, message.wait_list, message.event);
  std::vector<cl_mem> objects;
  for (uint32_t i = 0; i < message.objects.size() && command.ok(); ++i) {
    objects.push_back(command.AnyMemory(message.objects[i], "object"));
  }
  command.Require(!objects.empty(), CL_INVALID_VALUE, "no objects");
  if (!command.ok()) return command.Fail();
  return command.Run([&](cl_command_queue queue, cl_uint count, const cl_event* wait_list, cl_event* event) {
    return clEnqueueMigrateMemObjects(queue, static_cast<cl_uint>(objects.size()), objects.data(), message.flags, count,
                                      wait_list, event);
  });
}

int32_t OpenClBackend::EnqueueMarkerWithWaitList(const opencl::Call& call,
                                                 const opencl::EnqueueMarkerWithWaitList& message) {
  Command command(*this, call, message.queue, message.wait_list, message.event);
  return command.Run([](cl_command_queue queue, cl_uint count, const cl_event* wait_list, cl_event* event) {
    return clEnqueueMarkerWithWaitList(queue, count, wait_list, event);
  });
}

int32_t OpenClBackend::EnqueueBarrierWithWaitList(const opencl::Call& call,
                                                  const opencl::EnqueueBarrierWithWaitList& message) {
  Command command(*this, call, message.queue, message.wait_list, message.event);
  return command.Run([](cl_command_queue queue, cl_uint count, const cl_event* wait_list, cl_event* event) {
    return clEnqueueBarrierWithWaitList(queue, count, wait_list, event);
  });
}

}  // namespace hawser::server::ocl
