// SPDX-License-Identifier: Apache-2.0
// Memory and queues of a random OpenCL program.
#include <stdlib.h>

#include <cstring>
#include <iterator>

#include "tests/random/opencl_program.h"

namespace hawser::random {

void OpenclProgram::MakeQueue() {
  auto queue = std::make_unique<Queue>();
  queue->in_order = Chance(60);
  queue->agent = queue->in_order ? ++agents_ : kTheHost;
  queue->number = ++queues_made_;
  const cl_queue_properties properties[] = {
      CL_QUEUE_PROPERTIES,
      (queue->in_order ? 0U : CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE) | (Chance(30) ? CL_QUEUE_PROFILING_ENABLE : 0U),
      0};
  Do("make a queue " + std::to_string(queue->agent), [&] {
    cl_int result = CL_SUCCESS;
    queue->handle = clCreateCommandQueueWithProperties(place_.context, place_.device, properties, &result);
    return result;
  });
  queues_.push_back(std::move(queue));
}

void OpenclProgram::ReleaseQueue() {
  if (queues_.size() < 2) return;
  const size_t index = Pick(queues_.size());
  Queue& queue = *queues_[index];
  if (queue.in_order) {
    const Command command = EventOf(queue.agent);
    commands_[queue.agent] = command;
    Do("release", [&] { return clReleaseEvent(queue.last); });
  }
  gone_.Join(queue.all);
  Do("release a queue", [&] { return clReleaseCommandQueue(queue.handle); });
  queues_.erase(queues_.begin() + static_cast<ptrdiff_t>(index));
}

void OpenclProgram::MakeMemory() {
  static constexpr size_t kSizes[] = {64, 300, 4096, 10000, 65536, 70001, 150000, 1 << 20, (1 << 20) + 4099};
  auto kind = static_cast<MemoryKind>(Pick(kMemoryKinds));
  if (kind == MemoryKind::kSvm && !place_.svm) kind = MemoryKind::kBuffer;
  size_t size = kSizes[Pick(std::size(kSizes))], width = 0;
  if (kind == MemoryKind::kImage) {
    width = kPixel * (1 + Pick(100));
    size = width * (1 + Pick(200));
  }
  auto made = std::make_unique<Memory>(kind, size, random_);
  Memory& memory = *made;
  memory.number = ++memories_made_;
  memory.width = width;
  memories_.push_back(std::move(made));
  const auto first = static_cast<uint8_t>(random_());
  for (size_t i = 0; i < size; ++i) memory.used.expected[i] = static_cast<uint8_t>(first + i * 3 + i / 255);
  uint8_t* const expected = memory.used.expected.data();
  memory.used.Use(0, size, true, host_.Tick(kTheHost));
  switch (kind) {
    case MemoryKind::kHost:
      memory.pointer = static_cast<uint8_t*>(malloc(size));
      memcpy(memory.pointer, expected, size);
      return;
    case MemoryKind::kSvm: {
      Do("allocate " + memory.Text(), [&] {
        memory.pointer = static_cast<uint8_t*>(clSVMAlloc(place_.context, CL_MEM_READ_WRITE, size, 0));
        return memory.pointer != nullptr ? CL_SUCCESS : CL_OUT_OF_RESOURCES;
      });
      Queue& queue = AnyQueue();
      const std::vector<uint8_t> bytes = memory.used.expected;
      Enqueue(queue, "fill " + memory.Text() + " <- host", {{&memory, 0, size, true}}, Blocks::kUntilTaken,
              [&](const std::vector<cl_event>& after, cl_event* event) {
                return clEnqueueSVMMemcpy(queue.handle, CL_TRUE, memory.pointer, bytes.data(), size,
                                          static_cast<cl_uint>(after.size()), after.empty() ? nullptr : after.data(),
                                          event);
              });
      return;
    }
    case MemoryKind::kBuffer:
      Do("make " + memory.Text(), [&] {
        cl_int result = CL_SUCCESS;
        cl_mem_flags flags = CL_MEM_READ_WRITE;
        void* data = expected;
        switch (Pick(4)) {
          case 0:
            flags |= CL_MEM_ALLOC_HOST_PTR | CL_MEM_COPY_HOST_PTR;
            break;
          case 1:
            memory.pointer = static_cast<uint8_t*>(aligned_alloc(4096, (size + 4095) / 4096 * 4096));
            memcpy(memory.pointer, expected, size);
            flags |= CL_MEM_USE_HOST_PTR, data = memory.pointer;
            break;
          default:
            flags |= CL_MEM_COPY_HOST_PTR;
        }
        memory.object = clCreateBuffer(place_.context, flags, size, data, &result);
        for (int i = 0; i < 2 && result == CL_SUCCESS && size > 4096; ++i) {
          const cl_buffer_region region = {Pick(size / 4096) * 4096, 1 + Pick(4096)};
          if (region.origin + region.size > size) continue;
          const cl_mem part = clCreateSubBuffer(memory.object, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &result);
          memory.parts.push_back({part, region.origin, region.size});
        }
        return result;
      });
      return;
    case MemoryKind::kImage:
      Do("make " + memory.Text(), [&] {
        cl_int result = CL_SUCCESS;
        const cl_image_format format = {CL_RGBA, CL_UNSIGNED_INT8};
        cl_image_desc description{};
        description.image_type = CL_MEM_OBJECT_IMAGE2D;
        description.image_width = width / kPixel, description.image_height = size / width;
        memory.object = clCreateImage(place_.context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, &format, &description,
                                      expected, &result);
        return result;
      });
      return;
  }
}

void OpenclProgram::FreeMemory(size_t index) {
  Memory& memory = *memories_[index];
  if (IsMapped(memory, 0, memory.size, true, true)) return;
  // A buffer's data lives until the commands on it are done, whoever releases it before; what is the program's does
  // not.
  const bool lives = memory.object != nullptr && memory.pointer == nullptr;
  if (!lives || Chance(50)) OrderOnHost({&memory, 0, memory.size, true});
  Do("free " + memory.Text(), [&] {
    cl_int result = CL_SUCCESS;
    for (const Memory::Part& part : memory.parts) {
      if (result == CL_SUCCESS) result = clReleaseMemObject(part.object);
    }
    if (memory.object != nullptr && result == CL_SUCCESS) result = clReleaseMemObject(memory.object);
    if (memory.kind == MemoryKind::kSvm) {
      clSVMFree(place_.context, memory.pointer);
    } else {
      free(memory.pointer);
    }
    return result;
  });
  memories_.erase(memories_.begin() + static_cast<ptrdiff_t>(index));
}

}  // namespace hawser::random
