// SPDX-License-Identifier: Apache-2.0
// Queries about kernels: answered from what the build told.
#include <algorithm>

#include "interposer/opencl/entry.h"
#include "interposer/opencl/info_filter.h"
#include "interposer/opencl/query.h"
#include "proto/opencl/guest_entries.h"

namespace hawser::ocl {
namespace {

/// The device that a query means: null is allowed where there is only one.
cl_int SelectDevice(cl_kernel kernel, cl_device_id* device) {
  const auto& devices = kernel->program->devices;
  if (*device == nullptr) {
    if (devices.size() != 1) return CL_INVALID_DEVICE;
    *device = devices.front();
    return CL_SUCCESS;
  }
  if (const cl_int error = CheckHandle(*device)) return error;
  return std::find(devices.begin(), devices.end(), *device) != devices.end() ? CL_SUCCESS : CL_INVALID_DEVICE;
}

}  // namespace

cl_int CL_API_CALL clGetKernelInfo(cl_kernel kernel, cl_kernel_info param, size_t size, void* value, size_t* size_ret) {
  if (const cl_int error = CheckHandle(kernel)) return error;
  switch (param) {
    case CL_KERNEL_FUNCTION_NAME:
      return ReturnString(kernel->metadata->name, size, value, size_ret);
    case CL_KERNEL_NUM_ARGS:
      return ReturnInfo(static_cast<cl_uint>(kernel->args.size()), size, value, size_ret);
    case CL_KERNEL_REFERENCE_COUNT:
      return ReturnInfo(cl_uint{kernel->refs}, size, value, size_ret);
    case CL_KERNEL_CONTEXT:
      return ReturnInfo(kernel->program->context, size, value, size_ret);
    case CL_KERNEL_PROGRAM:
      return ReturnInfo(kernel->program, size, value, size_ret);
    case CL_KERNEL_ATTRIBUTES:
      if (!kernel->metadata->known)
        return ReturnQuery(QueryKind::kKernel, *kernel, nullptr, param, {}, size, value, size_ret);
      return ReturnString(kernel->metadata->attributes, size, value, size_ret);
    default:
      return CL_INVALID_VALUE;
  }
}

cl_int CL_API_CALL clGetKernelArgInfo(cl_kernel kernel, cl_uint index, cl_kernel_arg_info param, size_t size,
                                      void* value, size_t* size_ret) {
  if (const cl_int error = CheckHandle(kernel)) return error;
  if (index >= kernel->metadata->args.size()) return CL_INVALID_ARG_INDEX;
  const KernelMetadata::Arg& arg = kernel->metadata->args[index];
  if (arg.status != CL_SUCCESS) return arg.status;
  switch (param) {
    case CL_KERNEL_ARG_ADDRESS_QUALIFIER:
      return ReturnInfo(cl_kernel_arg_address_qualifier{arg.address}, size, value, size_ret);
    case CL_KERNEL_ARG_ACCESS_QUALIFIER:
      return ReturnInfo(cl_kernel_arg_access_qualifier{arg.access}, size, value, size_ret);
    case CL_KERNEL_ARG_TYPE_QUALIFIER:
      return ReturnInfo(cl_kernel_arg_type_qualifier{arg.type_qualifier}, size, value, size_ret);
    case CL_KERNEL_ARG_TYPE_NAME:
      return ReturnString(arg.type_name, size, value, size_ret);
    case CL_KERNEL_ARG_NAME:
      return ReturnString(arg.name, size, value, size_ret);
    default:
      return CL_INVALID_VALUE;
  }
}

cl_int CL_API_CALL clGetKernelWorkGroupInfo(cl_kernel kernel, cl_device_id device, cl_kernel_work_group_info param,
                                            size_t size, void* value, size_t* size_ret) {
  if (const cl_int error = CheckHandle(kernel)) return error;
  if (const cl_int error = SelectDevice(kernel, &device)) return error;
  const auto& groups = kernel->metadata->work_groups;
  const auto group = groups.find(device->id.raw());
  if (group == groups.end() || group->second.count(param) == 0) {
    return ReturnQuery(QueryKind::kKernelWorkGroup, *kernel, device, param, {}, size, value, size_ret);
  }
  if (param == CL_KERNEL_LOCAL_MEM_SIZE) {
    // The build told what the kernel declares; what the program set for __local arguments comes on top.
    if (std::optional<cl_ulong> declared = ValueOf<cl_ulong>(group->second, param)) {
      for (const _cl_kernel::Arg& arg : kernel->args) *declared += arg.local_size;
      return ReturnInfo(*declared, size, value, size_ret);
    }
  }
  return ReturnFrom(group->second, param, size, value, size_ret);
}

cl_int CL_API_CALL clGetKernelSubGroupInfo(cl_kernel kernel, cl_device_id device, cl_kernel_sub_group_info param,
                                           size_t input_size, const void* input, size_t size, void* value,
                                           size_t* size_ret) {
  if (const cl_int error = CheckHandle(kernel)) return error;
  if (const cl_int error = SelectDevice(kernel, &device)) return error;
  constexpr size_t kLargestInput = 4096;
  if (input_size > kLargestInput || (input_size != 0 && input == nullptr)) return CL_INVALID_VALUE;
  return ReturnQuery(QueryKind::kKernelSubGroup, *kernel, device, param, wire::AsBytes(input, input_size), size, value,
                     size_ret);
}

}  // namespace hawser::ocl
