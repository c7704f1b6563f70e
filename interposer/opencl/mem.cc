// SPDX-License-Identifier: Apache-2.0
// Memory objects: their life and their queries.
//
// A buffer's heap room, and destructor callbacks, wait for the server's word that nothing on the device uses the
// object any more: until then they are kept in the process-wide list of releases under way. Its mutex is taken last.
#include "interposer/opencl/mem.h"

#include <sys/mman.h>

#include <algorithm>

#include "interposer/opencl/delivery.h"
#include "interposer/opencl/entry.h"
#include "interposer/opencl/mem_flags.h"
#include "proto/opencl/guest_entries.h"

namespace hawser::ocl {
namespace {

struct Leaving {
  guest::Session* session;
  uint64_t heap_offset;  // kNoHeap: owns none.
  uint64_t heap_size;
  cl_mem mem;  // Kept for its destructor callbacks; else null.
};

struct Departures {
  std::mutex mutex;
  std::unordered_map<uint64_t, Leaving> by_id;

  static Departures& Get() {
    static auto* departures = new Departures;
    return *departures;
  }
};

void FreeMem(cl_mem mem) {
  if (mem->shadow != nullptr) munmap(mem->shadow, mem->size);
  delete mem;
}

void RunAndFree(guest::Session* session, cl_mem mem) {
  std::vector<DestructorCallback> callbacks = std::move(mem->destructors);
  session->PostCallback([callbacks = std::move(callbacks), mem, session] {
    for (auto it = callbacks.rbegin(); it != callbacks.rend(); ++it) (*it)();
    FreeMem(mem);  // Only now: its address names it in the callbacks.
    session->RemoveListener();
  });
}

}  // namespace

cl_mem NewMem(cl_context context, cl_mem_object_type type, cl_mem_flags flags) {
  guest::Session* session = context->session;
  auto* mem = new _cl_mem(Magic::kMem, session, session->NewId(HandleTraits<cl_mem>::kType));
  mem->context = Use(context);
  mem->type = type;
  mem->flags = flags;
  Registry::Get().Add(mem);
  return mem;
}

void DiscardMem(cl_mem mem) {
  Registry::Get().Remove(mem);
  mem->session->FreeId(mem->id);
  if (mem->owns_heap) mem->session->HeapFree(mem->heap_offset, mem->size);
  mem->magic = Magic::kFreed;
  DropUse(mem->parent);
  DropUse(mem->context);
  FreeMem(mem);
}

cl_mem ReturnMem(cl_mem mem, cl_int error, cl_int* errcode_ret) {
  if (errcode_ret != nullptr) *errcode_ret = error;
  if (error == CL_SUCCESS) return mem;
  if (mem != nullptr) DiscardMem(mem);
  return nullptr;
}

void Destroy(cl_mem mem) {
  guest::Session* session = mem->session;
  Registry::Get().Remove(mem);
  mem->magic = Magic::kFreed;
  cl_mem parent = mem->parent;
  cl_context context = mem->context;
  const bool calls = !mem->destructors.empty();
  if (mem->owns_heap || calls) {
    const wire::Id id = mem->id;
    Departures& departures = Departures::Get();
    {
      std::lock_guard lock(departures.mutex);
      departures.by_id[id.raw()] = {session, mem->owns_heap ? mem->heap_offset : guest::Session::kNoHeap, mem->size,
                                    calls ? mem : nullptr};
    }
    // From here on the answer may free `mem`.
    if (calls) session->AddListener();
    SendRelease(session, id, true);
    if (session->lost()) OnReleased(id);  // OnMemsLost() may have been before it was noted.
  } else {
    SendRelease(*mem);
  }
  if (!calls) FreeMem(mem);
  DropUse(parent);
  DropUse(context);
}

void OnReleased(wire::Id object) {
  Leaving leaving;
  {
    Departures& departures = Departures::Get();
    std::lock_guard lock(departures.mutex);
    const auto found = departures.by_id.find(object.raw());
    if (found == departures.by_id.end()) return;
    leaving = found->second;
    departures.by_id.erase(found);
  }
  if (leaving.heap_offset != guest::Session::kNoHeap) leaving.session->HeapFree(leaving.heap_offset, leaving.heap_size);
  if (leaving.mem != nullptr) RunAndFree(leaving.session, leaving.mem);
  if (!leaving.session->lost()) leaving.session->FreeId(object);
}

void OnMemsLost() {
  std::vector<wire::Id> orphans;
  {
    Departures& departures = Departures::Get();
    std::lock_guard lock(departures.mutex);
    for (const auto& [raw, leaving] : departures.by_id) {
      if (leaving.session->lost()) orphans.push_back(wire::Id(raw));
    }
  }
  for (const wire::Id id : orphans) OnReleased(id);
}

cl_int CheckMemProperties(const cl_mem_properties* properties) {
  return properties == nullptr || properties[0] == 0 ? CL_SUCCESS : CL_INVALID_PROPERTY;
}

void KeepMemProperties(cl_mem mem, const cl_mem_properties* properties) {
  if (properties == nullptr) return;
  mem->has_property_list = true;
  mem->property_list = {0};
}

std::byte* Shadow(cl_mem mem) {
  if (mem->parent != nullptr && mem->type == CL_MEM_OBJECT_BUFFER) {
    std::byte* whole = Shadow(mem->parent);
    return whole == nullptr ? nullptr : whole + mem->origin;
  }
  std::lock_guard lock(mem->mutex);
  if (mem->shadow == nullptr) {
    void* memory = mmap(nullptr, mem->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return nullptr;
    mem->shadow = static_cast<std::byte*>(memory);
  }
  return mem->shadow;
}

cl_ulong MaxAllocation(cl_context context) {
  cl_ulong most = 0;
  for (cl_device_id device : context->devices) most = std::max(most, device->max_alloc);
  return most;
}

bool IsSvmPointer(cl_context context, const void* pointer) { return IsSvmRange(context, pointer, 1); }

bool IsSvmRange(cl_context context, const void* pointer, size_t size) {
  if (pointer == nullptr) return false;
  const auto address = reinterpret_cast<uintptr_t>(pointer);
  std::lock_guard lock(context->mutex);
  auto after = context->svm.upper_bound(address);
  if (after == context->svm.begin()) return false;
  --after;
  const size_t offset = address - after->first;
  return offset < after->second.size && size <= after->second.size - offset;
}

cl_int CL_API_CALL clGetMemObjectInfo(cl_mem mem, cl_mem_info param, size_t size, void* value, size_t* size_ret) {
  const cl_int error = CheckHandle(mem);
  if (error != CL_SUCCESS) return error;
  switch (param) {
    case CL_MEM_TYPE:
      return ReturnInfo(mem->type, size, value, size_ret);
    case CL_MEM_FLAGS:
      return ReturnInfo(mem->flags, size, value, size_ret);
    case CL_MEM_SIZE:
      return ReturnInfo(mem->size, size, value, size_ret);
    case CL_MEM_HOST_PTR:
      return ReturnInfo(mem->host_ptr, size, value, size_ret);
    case CL_MEM_MAP_COUNT: {
      std::lock_guard lock(mem->mutex);
      return ReturnInfo<cl_uint>(static_cast<cl_uint>(mem->mappings.size()), size, value, size_ret);
    }
    case CL_MEM_REFERENCE_COUNT:
      return ReturnInfo<cl_uint>(mem->refs.load(std::memory_order_relaxed), size, value, size_ret);
    case CL_MEM_CONTEXT:
      return ReturnInfo(mem->context, size, value, size_ret);
    case CL_MEM_ASSOCIATED_MEMOBJECT:
      return ReturnInfo(mem->parent, size, value, size_ret);
    case CL_MEM_OFFSET:
      return ReturnInfo(mem->origin, size, value, size_ret);
    case CL_MEM_USES_SVM_POINTER:
      return ReturnInfo<cl_bool>(IsSvmPointer(mem->context, mem->host_ptr) ? CL_TRUE : CL_FALSE, size, value, size_ret);
    case CL_MEM_PROPERTIES:
      return ReturnInfo(mem->property_list.data(), mem->property_list.size() * sizeof(cl_mem_properties), size, value,
                        size_ret);
    default:
      return CL_INVALID_VALUE;
  }
}

cl_int CL_API_CALL clSetMemObjectDestructorCallback(cl_mem mem, void(CL_CALLBACK* notify)(cl_mem, void*),
                                                    void* user_data) {
  const cl_int error = CheckHandle(mem);
  if (error != CL_SUCCESS) return error;
  if (notify == nullptr) return CL_INVALID_VALUE;
  std::lock_guard lock(mem->mutex);
  mem->destructors.push_back([mem, notify, user_data] { notify(mem, user_data); });
  return CL_SUCCESS;
}

cl_mem CL_API_CALL clCreatePipe(cl_context context, cl_mem_flags flags, cl_uint packet_size, cl_uint max_packets,
                                const cl_pipe_properties* properties, cl_int* errcode_ret) {
  cl_int error = CheckHandle(context);
  if (error != CL_SUCCESS) return ReturnMem(nullptr, error, errcode_ret);
  const bool supported = std::any_of(context->devices.begin(), context->devices.end(), [](cl_device_id device) {
    cl_bool pipes = CL_FALSE;
    return ocl::clGetDeviceInfo(device, CL_DEVICE_PIPE_SUPPORT, sizeof(pipes), &pipes, nullptr) == CL_SUCCESS && pipes;
  });
  if (!supported) return ReturnMem(nullptr, CL_INVALID_OPERATION, errcode_ret);
  if ((flags & ~(CL_MEM_READ_WRITE | CL_MEM_HOST_NO_ACCESS)) != 0 || properties != nullptr) {
    return ReturnMem(nullptr, CL_INVALID_VALUE, errcode_ret);
  }
  cl_uint largest = 0;
  for (cl_device_id device : context->devices) {
    cl_uint most = 0;
    if (ocl::clGetDeviceInfo(device, CL_DEVICE_PIPE_MAX_PACKET_SIZE, sizeof(most), &most, nullptr) == CL_SUCCESS) {
      largest = std::max(largest, most);
    }
  }
  if (packet_size == 0 || max_packets == 0 || packet_size > largest) {
    return ReturnMem(nullptr, CL_INVALID_PIPE_SIZE, errcode_ret);
  }
  cl_mem mem = NewMem(context, CL_MEM_OBJECT_PIPE, flags == 0 ? CL_MEM_READ_WRITE | CL_MEM_HOST_NO_ACCESS : flags);
  mem->packet_size = packet_size;
  mem->max_packets = max_packets;
  mem->size = size_t{packet_size} * max_packets;
  opencl::CreatePipe message;
  message.pipe = mem->id;
  message.context = context->id;
  message.flags = mem->flags;
  message.packet_size = packet_size;
  message.max_packets = max_packets;
  return ReturnMem(mem, context->session->Send(message), errcode_ret);
}

cl_int CL_API_CALL clGetPipeInfo(cl_mem pipe, cl_pipe_info param, size_t size, void* value, size_t* size_ret) {
  const cl_int error = CheckHandle(pipe);
  if (error != CL_SUCCESS) return error;
  if (pipe->type != CL_MEM_OBJECT_PIPE) return CL_INVALID_MEM_OBJECT;
  switch (param) {
    case CL_PIPE_PACKET_SIZE:
      return ReturnInfo(pipe->packet_size, size, value, size_ret);
    case CL_PIPE_MAX_PACKETS:
      return ReturnInfo(pipe->max_packets, size, value, size_ret);
    case CL_PIPE_PROPERTIES:
      return ReturnInfo(nullptr, 0, size, value, size_ret);
    default:
      return CL_INVALID_VALUE;
  }
}

}  // namespace hawser::ocl
