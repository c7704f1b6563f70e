// SPDX-License-Identifier: Apache-2.0
// clEnqueueNDRangeKernel and clEnqueueTask. Without event and wait list this is the launch path: no allocation, no
// lock but the stream's.
#include <limits>

#include "interposer/opencl/entry.h"
#include "interposer/opencl/launch_shape.h"
#include "proto/opencl/guest_entries.h"

namespace hawser::ocl {
namespace {

/// A value of the kernel's work-group info for this device; null if the server did not tell.
const std::vector<std::byte>* WorkGroupInfo(const KernelMetadata& metadata, cl_device_id device, cl_uint param) {
  const auto for_device = metadata.work_groups.find(device->id.raw());
  if (for_device == metadata.work_groups.end()) return nullptr;
  const auto found = for_device->second.find(param);
  if (found == for_device->second.end() || found->second.first != CL_SUCCESS) return nullptr;
  return &found->second.second;
}

LaunchLimits LimitsOf(cl_kernel kernel, cl_device_id device) {
  LaunchLimits limits;
  limits.dimensions = device->max_dimensions;
  limits.group = device->max_group;
  for (size_t i = 0; i < 3; ++i) limits.items[i] = device->max_items[i];
  limits.non_uniform = device->non_uniform_groups;
  limits.local_required = device->version < 210;
  limits.empty_allowed = device->version >= 210;
  if (kernel->metadata == nullptr) return limits;
  for (cl_device_id at = device; at != nullptr; at = at->parent) {
    const auto* group = WorkGroupInfo(*kernel->metadata, at, CL_KERNEL_WORK_GROUP_SIZE);
    if (group == nullptr || group->size() != sizeof(size_t)) continue;
    size_t size = 0;
    std::memcpy(&size, group->data(), sizeof(size));
    if (size != 0 && size < limits.group) limits.group = size;
    const auto* required = WorkGroupInfo(*kernel->metadata, at, CL_KERNEL_COMPILE_WORK_GROUP_SIZE);
    if (required != nullptr && required->size() == sizeof(limits.required)) {
      std::memcpy(limits.required, required->data(), sizeof(limits.required));
    }
    break;
  }
  return limits;
}

cl_int CheckArguments(cl_kernel kernel, cl_command_queue queue) {
  if (kernel->unset_args != 0) return CL_INVALID_KERNEL_ARGS;
  for (const auto& arg : kernel->args) {
    if (arg.mem == nullptr) continue;
    const cl_int failed = arg.mem->failed.load(std::memory_order_relaxed);
    if (failed != CL_SUCCESS) return failed;
    if (arg.mem->parent != nullptr && arg.mem->type == CL_MEM_OBJECT_BUFFER) {
      const size_t alignment = queue->device->base_align_bits / 8;
      if (alignment > 1 && arg.mem->origin % alignment != 0) return CL_MISALIGNED_SUB_BUFFER_OFFSET;
    }
  }
  return CL_SUCCESS;
}

wire::ArrayView<uint64_t> View(const size_t* values, cl_uint count) {
  static_assert(sizeof(size_t) == sizeof(uint64_t));
  return values == nullptr ? wire::ArrayView<uint64_t>()
                           : wire::ArrayView<uint64_t>(reinterpret_cast<const uint64_t*>(values), count);
}

cl_int Launch(cl_command_type type, cl_command_queue queue, cl_kernel kernel, cl_uint work_dim, const size_t* offset,
              const size_t* global, const size_t* local, cl_uint num_events, const cl_event* wait_list,
              cl_event* event) {
  Enqueue enqueue(queue, type, num_events, wait_list, event);
  cl_int error = enqueue.Begin();
  if (error == CL_SUCCESS) error = CheckHandle(kernel);
  if (error != CL_SUCCESS) return error;
  if (kernel->program->context != queue->context) return CL_INVALID_CONTEXT;
  bool empty = false;
  error = CheckShape(LimitsOf(kernel, queue->device), work_dim, offset, global, local, &empty);
  if (error == CL_SUCCESS) error = CheckArguments(kernel, queue);
  if (error != CL_SUCCESS) return error;
  if (empty) {  // Nothing to run: the command only takes its place in the queue.
    opencl::EnqueueMarkerWithWaitList marker;
    return enqueue.Submit(marker);
  }
  opencl::EnqueueNDRangeKernel message;
  message.kernel = kernel->id;
  message.work_dim = work_dim;
  message.offset = View(offset, work_dim);
  message.global = View(global, work_dim);
  message.local = View(local, work_dim);
  return enqueue.Submit(message);
}

}  // namespace

cl_int CL_API_CALL clEnqueueNDRangeKernel(cl_command_queue queue, cl_kernel kernel, cl_uint work_dim,
                                          const size_t* global_work_offset, const size_t* global_work_size,
                                          const size_t* local_work_size, cl_uint num_events, const cl_event* wait_list,
                                          cl_event* event) {
  return Launch(CL_COMMAND_NDRANGE_KERNEL, queue, kernel, work_dim, global_work_offset, global_work_size,
                local_work_size, num_events, wait_list, event);
}

cl_int CL_API_CALL clEnqueueTask(cl_command_queue queue, cl_kernel kernel, cl_uint num_events,
                                 const cl_event* wait_list, cl_event* event) {
  const size_t one = 1;
  return Launch(CL_COMMAND_TASK, queue, kernel, 1, nullptr, &one, &one, num_events, wait_list, event);
}

}  // namespace hawser::ocl
