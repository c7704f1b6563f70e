// SPDX-License-Identifier: Apache-2.0
// Commands on shared virtual memory. Mapping reads the device's bytes into the guest's memory at the same address,
// unmapping writes them back.
#include <algorithm>

#include "interposer/opencl/mapping_book.h"
#include "interposer/opencl/mem.h"
#include "interposer/opencl/svm.h"
#include "interposer/opencl/transfers.h"
#include "proto/opencl/guest_entries.h"

namespace hawser::ocl {
namespace {

enum class Side { kHost, kSvm, kBroken };

Side SideOf(cl_context context, const void* pointer, size_t size) {
  if (IsSvmRange(context, pointer, size)) return Side::kSvm;
  return IsSvmPointer(context, pointer) ? Side::kBroken : Side::kHost;
}

uint64_t Address(const void* pointer) { return reinterpret_cast<uint64_t>(pointer); }

cl_int Begin(Enqueue& enqueue) {
  const cl_int error = enqueue.Begin();
  if (error != CL_SUCCESS) return error;
  return SupportsSvm(enqueue.queue()->context) ? CL_SUCCESS : CL_INVALID_OPERATION;
}

/// The command that only takes its place.
cl_int SubmitPlace(Enqueue& enqueue, bool blocking) {
  cl_int error = CL_SUCCESS;
  if (ReadyInPlace(enqueue, blocking, &error)) return error == CL_SUCCESS ? enqueue.CompleteLocally() : error;
  if (blocking) enqueue.ForceEvent();
  error = SubmitMarker(enqueue);
  return error == CL_SUCCESS && blocking ? AwaitMade(enqueue) : error;
}

/// The range that holds `address`; null if there is none. The caller holds the context's mutex.
_cl_context::SvmRange* FindRange(cl_context context, uintptr_t address) {
  auto after = context->svm.upper_bound(address);
  if (after == context->svm.begin()) return nullptr;
  --after;
  return address - after->first < after->second.size ? &after->second : nullptr;
}

cl_int CopyOnHost(Enqueue& enqueue, bool blocking, void* destination, const void* source, size_t size) {
  cl_int error = CL_SUCCESS;
  if (ReadyInPlace(enqueue, blocking, &error)) {
    if (error != CL_SUCCESS) return error;
    std::memcpy(destination, source, size);
    return enqueue.CompleteLocally();
  }
  CopyWhenComplete(enqueue, destination, source, size);
  error = SubmitMarker(enqueue);
  return error == CL_SUCCESS && blocking ? AwaitMade(enqueue) : error;
}

cl_int SubmitFree(Enqueue& enqueue, const std::vector<uint64_t>& addresses) {
  cl_context context = enqueue.queue()->context;
  // Earlier commands may still bring data to the ranges, so the guest's memory goes when the command is done.
  enqueue.OnComplete([context = Use(context), addresses] {
    for (const uint64_t address : addresses) ForgetSvm(context, address);
    DropUse(context);
  });
  opencl::EnqueueSVMFree message;
  message.addresses = wire::ArrayView<uint64_t>(addresses.data(), addresses.size());
  return enqueue.Submit(message);
}

}  // namespace

cl_int CL_API_CALL clEnqueueSVMFree(cl_command_queue queue, cl_uint count, void* pointers[],
                                    void(CL_CALLBACK* free_function)(cl_command_queue, cl_uint, void*[], void*),
                                    void* user_data, cl_uint num_events, const cl_event* wait_list, cl_event* event) {
  Enqueue enqueue(queue, CL_COMMAND_SVM_FREE, num_events, wait_list, event);
  const cl_int error = Begin(enqueue);
  if (error != CL_SUCCESS) return error;
  if ((count == 0) != (pointers == nullptr)) return CL_INVALID_VALUE;
  if (count == 0) return CL_INVALID_VALUE;
  std::vector<void*> list(pointers, pointers + count);
  if (std::find(list.begin(), list.end(), nullptr) != list.end()) return CL_INVALID_VALUE;
  if (free_function == nullptr) {
    std::vector<uint64_t> addresses;
    for (void* pointer : list) addresses.push_back(Address(pointer));
    {
      std::lock_guard lock(queue->context->mutex);
      for (const uint64_t address : addresses) {
        if (queue->context->svm.count(address) == 0) return CL_INVALID_VALUE;
      }
    }
    return SubmitFree(enqueue, addresses);
  }
  // The function is the command: complete is what it has done.
  guest::Session* session = queue->session;
  auto landing = LandingBook::Get().Open();
  enqueue.Land(landing);
  session->AddListener();
  enqueue.OnComplete([=, used = Use(queue)]() mutable {
    session->PostCallback([=]() mutable {
      free_function(used, static_cast<cl_uint>(list.size()), list.data(), user_data);
      ShowLanded(LandingBook::Get().Land(landing, CL_SUCCESS));
      session->Wake();
      session->RemoveListener();
      DropUse(used);
    });
  });
  const cl_int sent = SubmitMarker(enqueue);
  if (sent != CL_SUCCESS) {
    LandingBook::Get().Land(landing, sent);
    session->RemoveListener();
  }
  return sent;
}

cl_int CL_API_CALL clEnqueueSVMMemcpy(cl_command_queue queue, cl_bool blocking, void* destination, const void* source,
                                      size_t size, cl_uint num_events, const cl_event* wait_list, cl_event* event) {
  Enqueue enqueue(queue, CL_COMMAND_SVM_MEMCPY, num_events, wait_list, event);
  cl_int error = Begin(enqueue);
  if (error != CL_SUCCESS) return error;
  if (destination == nullptr || source == nullptr || size == 0) return CL_INVALID_VALUE;
  const uint64_t to = Address(destination);
  const uint64_t from = Address(source);
  if (from < to + size && to < from + size) return CL_MEM_COPY_OVERLAP;
  const Side to_side = SideOf(queue->context, destination, size);
  const Side from_side = SideOf(queue->context, source, size);
  if (to_side == Side::kBroken || from_side == Side::kBroken) return CL_INVALID_VALUE;
  if (blocking && enqueue.waits_for_failed()) return CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST;
  if (from_side == Side::kHost && to_side == Side::kHost) {
    return CopyOnHost(enqueue, blocking != CL_FALSE, destination, source, size);
  }
  if (from_side == Side::kHost) {
    opencl::SVMWrite message;
    message.address = to;
    message.size = size;
    return SubmitWrite(enqueue, opencl::Opcode::kWriteSVM, message, source, Region::Flat(size), blocking != CL_FALSE);
  }
  if (to_side == Side::kHost) {
    opencl::SVMRead message;
    message.address = from;
    message.size = size;
    return SubmitRead(enqueue, opencl::Opcode::kReadSVM, message, destination, Region::Flat(size),
                      blocking != CL_FALSE);
  }
  opencl::SVMCopy message;
  message.destination = to;
  message.source = from;
  message.size = size;
  if (blocking) enqueue.ForceEvent();
  error = enqueue.SubmitAs(opencl::Opcode::kCopySVM, message);
  return error == CL_SUCCESS && blocking ? AwaitMade(enqueue) : error;
}

cl_int CL_API_CALL clEnqueueSVMMap(cl_command_queue queue, cl_bool blocking, cl_map_flags flags, void* pointer,
                                   size_t size, cl_uint num_events, const cl_event* wait_list, cl_event* event) {
  Enqueue enqueue(queue, CL_COMMAND_SVM_MAP, num_events, wait_list, event);
  cl_int error = Begin(enqueue);
  if (error == CL_SUCCESS) error = CheckMapFlags(flags);
  if (error != CL_SUCCESS) return error;
  if (pointer == nullptr || size == 0 || SideOf(queue->context, pointer, size) != Side::kSvm) return CL_INVALID_VALUE;
  if (blocking && enqueue.waits_for_failed()) return CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST;
  if (MapsContents(flags)) {
    opencl::SVMRead message;
    message.address = Address(pointer);
    message.size = size;
    error = SubmitRead(enqueue, opencl::Opcode::kReadSVM, message, pointer, Region::Flat(size), blocking != CL_FALSE);
  } else {
    error = SubmitPlace(enqueue, blocking != CL_FALSE);
  }
  if (error != CL_SUCCESS) return error;
  std::lock_guard lock(queue->context->mutex);
  if (_cl_context::SvmRange* range = FindRange(queue->context, Address(pointer))) {
    range->maps.push_back({Address(pointer), size, flags});
  }
  return CL_SUCCESS;
}

cl_int CL_API_CALL clEnqueueSVMUnmap(cl_command_queue queue, void* pointer, cl_uint num_events,
                                     const cl_event* wait_list, cl_event* event) {
  Enqueue enqueue(queue, CL_COMMAND_SVM_UNMAP, num_events, wait_list, event);
  const cl_int error = Begin(enqueue);
  if (error != CL_SUCCESS) return error;
  if (pointer == nullptr) return CL_INVALID_VALUE;
  _cl_context::SvmRange::Map map = {};
  {
    std::lock_guard lock(queue->context->mutex);
    _cl_context::SvmRange* range = FindRange(queue->context, Address(pointer));
    if (range == nullptr) return CL_INVALID_VALUE;
    const auto found = std::find_if(range->maps.begin(), range->maps.end(),
                                    [&](const auto& each) { return each.address == Address(pointer); });
    if (found != range->maps.end()) {
      map = *found;
      range->maps.erase(found);
    }
  }
  if (!MapsForWriting(map.flags)) return SubmitPlace(enqueue, false);
  opencl::SVMWrite message;
  message.address = map.address;
  message.size = map.size;
  return SubmitWrite(enqueue, opencl::Opcode::kWriteSVM, message, pointer, Region::Flat(map.size));
}

cl_int CL_API_CALL clEnqueueSVMMigrateMem(cl_command_queue queue, cl_uint count, const void** pointers,
                                          const size_t* sizes, cl_mem_migration_flags flags, cl_uint num_events,
                                          const cl_event* wait_list, cl_event* event) {
  Enqueue enqueue(queue, CL_COMMAND_SVM_MIGRATE_MEM, num_events, wait_list, event);
  const cl_int error = Begin(enqueue);
  if (error != CL_SUCCESS) return error;
  constexpr cl_mem_migration_flags kKnown = CL_MIGRATE_MEM_OBJECT_HOST | CL_MIGRATE_MEM_OBJECT_CONTENT_UNDEFINED;
  if (count == 0 || pointers == nullptr || (flags & ~kKnown) != 0) return CL_INVALID_VALUE;
  std::vector<uint64_t> addresses;
  std::vector<uint64_t> lengths;
  for (cl_uint i = 0; i < count; ++i) {
    const size_t size = sizes == nullptr ? 0 : sizes[i];
    if (!IsSvmRange(queue->context, pointers[i], size)) return CL_INVALID_VALUE;
    addresses.push_back(Address(pointers[i]));
    if (sizes != nullptr) lengths.push_back(size);
  }
  opencl::EnqueueSVMMigrateMem message;
  message.addresses = wire::ArrayView<uint64_t>(addresses.data(), addresses.size());
  message.sizes = wire::ArrayView<uint64_t>(lengths.data(), lengths.size());
  message.flags = flags;
  return enqueue.Submit(message);
}

}  // namespace hawser::ocl
