// SPDX-License-Identifier: Apache-2.0
// Buffers, sub-buffers, images and pipes: creation and release.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

#include "proto/facts/image_formats.h"
#include "server/backends/opencl/backend.h"

namespace hawser::server::ocl {
namespace {

constexpr uint64_t kNotInHeap = ~uint64_t{0};
constexpr uint64_t kHeapAlignment = 128;

// Memory of the guest's process means nothing here, and what its host may do with a buffer the guest checks itself;
// the transfers of the server must always be able to map.
constexpr uint64_t kHostFlags = CL_MEM_USE_HOST_PTR | CL_MEM_ALLOC_HOST_PTR | CL_MEM_COPY_HOST_PTR |
                                CL_MEM_HOST_WRITE_ONLY | CL_MEM_HOST_READ_ONLY | CL_MEM_HOST_NO_ACCESS;

// Counts the queues that have not come to the point where an object is unused.
struct DrainCount {
  std::shared_ptr<MemoryAccount> account;
  wire::Id id;
  Handle<cl_mem> memory;
  std::atomic<uint32_t> left{1};
};

bool IsOfPocl(cl_mem memory) {
  cl_context context = nullptr;
  cl_device_id device = nullptr;
  cl_platform_id platform = nullptr;
  char name[64] = "";
  size_t bytes = 0;
  if (clGetMemObjectInfo(memory, CL_MEM_CONTEXT, sizeof(context), &context, nullptr) != CL_SUCCESS ||
      clGetContextInfo(context, CL_CONTEXT_DEVICES, 0, nullptr, &bytes) != CL_SUCCESS || bytes < sizeof(device)) {
    return false;
  }
  std::vector<cl_device_id> devices(bytes / sizeof(device));
  return clGetContextInfo(context, CL_CONTEXT_DEVICES, bytes, devices.data(), nullptr) == CL_SUCCESS &&
         clGetDeviceInfo(devices[0], CL_DEVICE_PLATFORM, sizeof(platform), &platform, nullptr) == CL_SUCCESS &&
         clGetPlatformInfo(platform, CL_PLATFORM_NAME, sizeof(name), name, nullptr) == CL_SUCCESS &&
         std::string_view(name) == "Portable Computing Language";
}

void OneDrained(DrainCount* count, bool flush) {
  if (count->left.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  count->memory.Reset();
  count->account->Announce(count->id, flush);
  delete count;
}

}  // namespace

int32_t OpenClBackend::InitialData(uint64_t transfer, uint64_t size, wire::Bytes inline_data,
                                   StagingPool::Owned* staged, void** data) {
  *data = nullptr;
  if (transfer != 0) {
    *staged = staging_->Acquire(size);
    if (*staged == nullptr) return Explain(CL_OUT_OF_HOST_MEMORY, "no staging memory for the initial contents");
    *data = (*staged)->data;
    return services_.bulk_in->Receive(transfer, size, (*staged)->data);
  }
  if (inline_data.empty()) return CL_SUCCESS;
  if (inline_data.size() != size) return Explain(CL_INVALID_VALUE, "initial contents of another size");
  // The driver only reads it.
  *data = const_cast<std::byte*>(inline_data.data());
  return CL_SUCCESS;
}

int32_t OpenClBackend::MakeBuffer(const opencl::CreateBuffer& message, Memory* memory) {
  // First of all the data is taken: it is on its way, whatever becomes of the buffer.
  StagingPool::Owned staged;
  void* data = nullptr;
  int32_t status = InitialData(message.transfer, message.size, message.data, &staged, &data);
  if (status != CL_SUCCESS) return status;
  const Context* context = Use<Context>(message.context, "context", &status);
  if (context == nullptr) return status;

  cl_mem_flags flags = message.flags & ~kHostFlags;
  if (message.svm_address != 0) {
    if (message.size == 0 || !svm_->Contains(message.svm_address, message.size)) {
      return Explain(CL_INVALID_HOST_PTR, "the address is in no live SVM allocation of the session");
    }
    data = SvmRanges::Pointer(message.svm_address);
    flags |= CL_MEM_USE_HOST_PTR;
  } else if (message.heap_offset != kNotInHeap) {
    const Heap& heap = services_.heap;
    if (heap.base == nullptr || message.heap_offset % kHeapAlignment != 0 || message.size == 0 ||
        !InRange(message.heap_offset, message.size, heap.size)) {
      return Explain(CL_INVALID_HOST_PTR, "the place is not in the session's heap");
    }
    std::byte* place = heap.base + message.heap_offset;
    if (data != nullptr) std::memcpy(place, data, message.size);
    data = place;
    flags |= CL_MEM_USE_HOST_PTR;
  } else {
    // What lies in the heap is counted there.
    if (!memory_account_->Charge(message.size)) {
      return Explain(CL_MEM_OBJECT_ALLOCATION_FAILURE, "the session's limit on device memory");
    }
    memory->charge = message.size;
    if (data != nullptr) flags |= CL_MEM_COPY_HOST_PTR;
  }
  memory->native = Handle<cl_mem>(clCreateBuffer(context->native.get(), flags, message.size, data, &status));
  memory->is_buffer = true;
  memory->size = message.size;
  return status;
}

int32_t OpenClBackend::CreateBuffer(const opencl::Call& call, const opencl::CreateBuffer& message) {
  Memory memory;
  const int32_t status = MakeBuffer(message, &memory);
  if (status != CL_SUCCESS) {
    memory_account_->Uncharge(memory.charge);
    return Fail(call, status, message.buffer);
  }
  return Keep(call, message.buffer, std::move(memory));
}

int32_t OpenClBackend::CreateSubBuffer(const opencl::Call& call, const opencl::CreateSubBuffer& message) {
  int32_t status = CL_SUCCESS;
  const Memory* parent = Use<Memory>(message.parent, "parent", &status);
  if (parent == nullptr) return Fail(call, status, message.buffer);
  if (!parent->is_buffer) return Fail(call, Explain(CL_INVALID_MEM_OBJECT, "the parent is no buffer"), message.buffer);
  if (message.size == 0) return Fail(call, CL_INVALID_BUFFER_SIZE, message.buffer);
  if (!InRange(message.origin, message.size, parent->size)) {
    return Fail(call, Explain(CL_INVALID_VALUE, "the region is outside the parent"), message.buffer);
  }
  const cl_buffer_region region = {message.origin, message.size};
  Memory memory;
  memory.native = Handle<cl_mem>(clCreateSubBuffer(parent->native.get(), message.flags & ~kHostFlags,
                                                   CL_BUFFER_CREATE_TYPE_REGION, &region, &status));
  if (status != CL_SUCCESS) return Fail(call, status, message.buffer);
  memory.is_buffer = true;
  memory.size = message.size;
  if (IsOfPocl(parent->native.get())) {
    memory.rectangles_in = Handle<cl_mem>::Share(parent->native.get());
    memory.rectangles_at = message.origin;
  }
  return Keep(call, message.buffer, std::move(memory));
}

int32_t OpenClBackend::MakeImage(const opencl::CreateImage& message, Memory* memory) {
  StagingPool::Owned staged;
  void* data = nullptr;
  int32_t status = InitialData(message.transfer, message.data_size, message.data, &staged, &data);
  if (status != CL_SUCCESS) return status;
  const Context* context = Use<Context>(message.context, "context", &status);
  if (context == nullptr) return status;
  const Memory* parent = nullptr;
  if (message.parent) {
    parent = Use<Memory>(message.parent, "parent", &status);
    if (parent == nullptr) return status;
  }
  const uint32_t element = opencl::ElementSize(message.channel_order, message.channel_type);
  if (element == 0) return Explain(CL_INVALID_IMAGE_FORMAT_DESCRIPTOR, "no format of the specification");
  uint64_t bytes = 0;
  if (!ImageShape::FromDescription(message.image_type, message.width, message.height, message.depth, message.array_size,
                                   element, &memory->image) ||
      !memory->image.Bytes(&bytes)) {
    return Explain(CL_INVALID_IMAGE_SIZE, "a dimension is zero or too large");
  }
  if (data != nullptr && (parent != nullptr || message.data_size < bytes)) {
    return Explain(CL_INVALID_HOST_PTR, "the initial contents are smaller than the image");
  }
  if (parent == nullptr) {
    if (!memory_account_->Charge(bytes)) {
      return Explain(CL_MEM_OBJECT_ALLOCATION_FAILURE, "the session's limit on device memory");
    }
    memory->charge = bytes;
  }

  const cl_image_format format = {message.channel_order, message.channel_type};
  cl_image_desc description = {};
  description.image_type = message.image_type;
  description.image_width = message.width;
  description.image_height = message.height;
  description.image_depth = message.depth;
  description.image_array_size = message.array_size;
  if (parent != nullptr) {
    description.image_row_pitch = message.row_pitch;
    description.image_slice_pitch = message.slice_pitch;
    description.mem_object = parent->native.get();
  }
  const cl_mem_flags flags = (message.flags & ~kHostFlags) | (data != nullptr ? CL_MEM_COPY_HOST_PTR : 0);
  memory->native = Handle<cl_mem>(clCreateImage(context->native.get(), flags, &format, &description, data, &status));
  memory->is_image = true;
  memory->is_view = message.image_type == CL_MEM_OBJECT_IMAGE1D_BUFFER;
  return status;
}

int32_t OpenClBackend::CreateImage(const opencl::Call& call, const opencl::CreateImage& message) {
  Memory memory;
  const int32_t status = MakeImage(message, &memory);
  if (status != CL_SUCCESS) {
    memory_account_->Uncharge(memory.charge);
    return Fail(call, status, message.image);
  }
  return Keep(call, message.image, std::move(memory));
}

int32_t OpenClBackend::CreatePipe(const opencl::Call& call, const opencl::CreatePipe& message) {
  int32_t status = CL_SUCCESS;
  const Context* context = Use<Context>(message.context, "context", &status);
  if (context == nullptr) return Fail(call, status, message.pipe);
  if (context->version < 20) return Fail(call, CL_INVALID_OPERATION, message.pipe);
  uint64_t bytes = 0;
  if (!Multiply(message.packet_size, message.max_packets, &bytes) || !memory_account_->Charge(bytes)) {
    return Fail(call, Explain(CL_MEM_OBJECT_ALLOCATION_FAILURE, "the session's limit on device memory"), message.pipe);
  }
  Memory memory;
  memory.charge = bytes;
  memory.native = Handle<cl_mem>(clCreatePipe(context->native.get(), message.flags & ~kHostFlags, message.packet_size,
                                              message.max_packets, nullptr, &status));
  if (status != CL_SUCCESS) {
    memory_account_->Uncharge(bytes);
    return Fail(call, status, message.pipe);
  }
  return Keep(call, message.pipe, std::move(memory));
}

int32_t OpenClBackend::GetSupportedImageFormats(const opencl::Call& call,
                                                const opencl::GetSupportedImageFormats& message) {
  opencl::ImageFormats reply;
  std::vector<uint32_t> orders, types;
  const Context* context = Use<Context>(message.context, "context", &reply.status);
  if (context != nullptr) {
    cl_uint count = 0;
    reply.status =
        clGetSupportedImageFormats(context->native.get(), message.flags, message.image_type, 0, nullptr, &count);
    std::vector<cl_image_format> formats(count);
    if (reply.status == CL_SUCCESS && count != 0) {
      reply.status = clGetSupportedImageFormats(context->native.get(), message.flags, message.image_type, count,
                                                formats.data(), nullptr);
    }
    if (reply.status == CL_SUCCESS) {
      for (const cl_image_format& format : formats) {
        orders.push_back(format.image_channel_order);
        types.push_back(format.image_channel_data_type);
      }
    }
  }
  if (reply.status != CL_SUCCESS) Fail(call, reply.status);
  reply.orders = wire::ArrayView<uint32_t>(orders.data(), orders.size());
  reply.types = wire::ArrayView<uint32_t>(types.data(), types.size());
  Reply(call, reply);
  return CL_SUCCESS;
}

bool OpenClBackend::OnQueueDrained(Completion& completion, int32_t) {
  OneDrained(static_cast<DrainCount*>(completion.context), true);
  return false;
}

void OpenClBackend::ReleaseBehindQueues(Handle<cl_mem> memory, wire::Id id) {
  auto* count = new DrainCount;
  count->account = memory_account_;
  count->id = id;
  count->memory = std::move(memory);
  objects_->Table<QueueObject>().ForEach([&](wire::Id, QueueObject& object) {
    if (object.error != 0) return;
    int32_t status = CL_SUCCESS;
    Completion* drain = NewDrain(object.queue, &status);
    if (drain == nullptr) return;
    count->left.fetch_add(1, std::memory_order_relaxed);
    drain->action = &OnQueueDrained;
    drain->context = count;
    completions_->Arm(drain);
  });
  OneDrained(count, false);
}

void OpenClBackend::ReleaseMemory(wire::Id id, bool notify) {
  Memory& memory = *objects_->Table<Memory>().Find(id);
  Handle<cl_mem> native = std::move(memory.native);
  const uint64_t charge = memory.charge;
  const bool is_view = memory.is_view;
  objects_->Table<Memory>().Erase(id);
  if (!native) {
    if (notify) memory_account_->Announce(id, false);
  } else if (is_view && notify) {
    // PoCL 3.1 never calls the destructor callback of such an image.
    ReleaseBehindQueues(std::move(native), id);
  } else {
    memory_account_->Release(native.Release(), id, charge, notify);
  }
}

}  // namespace hawser::server::ocl
