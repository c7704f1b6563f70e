// SPDX-License-Identifier: Apache-2.0
#include "server/backends/opencl/build_report.h"

#include <algorithm>

namespace hawser::server::ocl {
namespace {

// A log that does not end here is cut: nobody reads more, and a frame has its limits.
constexpr size_t kLongestText = 1u << 20;

// query(size, value, size_ret) as the driver's functions. Without the final 0.
template <typename Query>
std::string Text(Query&& query) {
  size_t size = 0;
  if (query(size_t{0}, static_cast<void*>(nullptr), &size) != CL_SUCCESS || size == 0) return {};
  std::string text(size, '\0');
  if (query(size, static_cast<void*>(text.data()), static_cast<size_t*>(nullptr)) != CL_SUCCESS) return {};
  text.resize(std::min(text.find('\0'), text.size()));
  if (text.size() > kLongestText) text.resize(kLongestText);
  return text;
}

struct WorkGroupParameter {
  uint32_t param;
  size_t size;
};
constexpr WorkGroupParameter kWorkGroupParameters[] = {
    {CL_KERNEL_WORK_GROUP_SIZE, sizeof(size_t)},    {CL_KERNEL_COMPILE_WORK_GROUP_SIZE, 3 * sizeof(size_t)},
    {CL_KERNEL_LOCAL_MEM_SIZE, sizeof(cl_ulong)},   {CL_KERNEL_PREFERRED_WORK_GROUP_SIZE_MULTIPLE, sizeof(size_t)},
    {CL_KERNEL_PRIVATE_MEM_SIZE, sizeof(cl_ulong)}, {CL_KERNEL_GLOBAL_WORK_SIZE, 3 * sizeof(size_t)},
};

}  // namespace

std::string_view BuildReport::Keep(std::string text) { return texts_.emplace_back(std::move(text)); }

void BuildReport::AddBuilds(cl_program program, const std::vector<NamedDevice>& devices, std::string_view options) {
  for (const NamedDevice& device : devices) {
    opencl::DeviceBuild build;
    build.device = device.id;
    cl_build_status status = CL_BUILD_NONE;
    clGetProgramBuildInfo(program, device.native, CL_PROGRAM_BUILD_STATUS, sizeof(status), &status, nullptr);
    build.status = status;
    if (device.version >= 12) {
      cl_program_binary_type type = CL_PROGRAM_BINARY_TYPE_NONE;
      clGetProgramBuildInfo(program, device.native, CL_PROGRAM_BINARY_TYPE, sizeof(type), &type, nullptr);
      build.binary_type = type;
    }
    if (device.version >= 20) {
      size_t size = 0;
      clGetProgramBuildInfo(program, device.native, CL_PROGRAM_BUILD_GLOBAL_VARIABLE_TOTAL_SIZE, sizeof(size), &size,
                            nullptr);
      build.global_variable_size = size;
    }
    build.log = Keep(Text([&](size_t size, void* value, size_t* size_ret) {
      return clGetProgramBuildInfo(program, device.native, CL_PROGRAM_BUILD_LOG, size, value, size_ret);
    }));
    build.options = Keep(std::string(options));
    builds_.push_back(build);
  }
}

void BuildReport::AddKernel(cl_kernel kernel, const std::vector<NamedDevice>& devices) {
  opencl::KernelInfo info;
  const auto kernel_text = [&](cl_kernel_info param) {
    return Keep(Text([&](size_t size, void* value, size_t* size_ret) {
      return clGetKernelInfo(kernel, param, size, value, size_ret);
    }));
  };
  info.name = kernel_text(CL_KERNEL_FUNCTION_NAME);
  info.attributes = kernel_text(CL_KERNEL_ATTRIBUTES);

  cl_uint count = 0;
  clGetKernelInfo(kernel, CL_KERNEL_NUM_ARGS, sizeof(count), &count, nullptr);
  std::vector<opencl::KernelArg>& args = args_.emplace_back(count);
  for (cl_uint i = 0; i < count; ++i) {
    opencl::KernelArg& arg = args[i];
    cl_kernel_arg_address_qualifier address = 0;
    arg.status = clGetKernelArgInfo(kernel, i, CL_KERNEL_ARG_ADDRESS_QUALIFIER, sizeof(address), &address, nullptr);
    if (arg.status != CL_SUCCESS) continue;
    cl_kernel_arg_access_qualifier access = 0;
    cl_kernel_arg_type_qualifier type = 0;
    clGetKernelArgInfo(kernel, i, CL_KERNEL_ARG_ACCESS_QUALIFIER, sizeof(access), &access, nullptr);
    clGetKernelArgInfo(kernel, i, CL_KERNEL_ARG_TYPE_QUALIFIER, sizeof(type), &type, nullptr);
    arg.address_qualifier = address;
    arg.access_qualifier = access;
    arg.type_qualifier = type;
    const auto arg_text = [&](cl_kernel_arg_info param) {
      return Keep(Text([&](size_t size, void* value, size_t* size_ret) {
        return clGetKernelArgInfo(kernel, i, param, size, value, size_ret);
      }));
    };
    arg.type_name = arg_text(CL_KERNEL_ARG_TYPE_NAME);
    arg.name = arg_text(CL_KERNEL_ARG_NAME);
  }
  info.args = wire::ListView<opencl::KernelArg>(args);

  std::vector<opencl::KernelWorkGroup>& groups = work_groups_.emplace_back();
  for (const NamedDevice& device : devices) {
    std::vector<opencl::InfoValue>& values = infos_.emplace_back();
    for (const WorkGroupParameter& parameter : kWorkGroupParameters) {
      std::string bytes(parameter.size, '\0');
      opencl::InfoValue value;
      value.param = parameter.param;
      value.status =
          clGetKernelWorkGroupInfo(kernel, device.native, parameter.param, bytes.size(), bytes.data(), nullptr);
      if (value.status == CL_SUCCESS) value.value = wire::AsBytes(Keep(std::move(bytes)));
      values.push_back(value);
    }
    opencl::KernelWorkGroup group;
    group.device = device.id;
    group.info = wire::ListView<opencl::InfoValue>(values);
    groups.push_back(group);
  }
  info.work_groups = wire::ListView<opencl::KernelWorkGroup>(groups);
  kernels_.push_back(info);
}

void BuildReport::AddKernels(cl_program program, const std::vector<NamedDevice>& devices) {
  cl_uint count = 0;
  kernels_status_ = clCreateKernelsInProgram(program, 0, nullptr, &count);
  if (kernels_status_ != CL_SUCCESS || count == 0) return;
  std::vector<cl_kernel> kernels(count);
  kernels_status_ = clCreateKernelsInProgram(program, count, kernels.data(), nullptr);
  if (kernels_status_ != CL_SUCCESS) return;
  for (cl_kernel kernel : kernels) {
    const Handle<cl_kernel> owned(kernel);
    AddKernel(kernel, devices);
  }
}

opencl::BuildResult BuildReport::View(int32_t status) const {
  opencl::BuildResult result;
  result.status = status;
  result.builds = wire::ListView<opencl::DeviceBuild>(builds_);
  result.kernels = wire::ListView<opencl::KernelInfo>(kernels_);
  result.kernels_status = static_cast<uint32_t>(kernels_status_);
  return result;
}

}  // namespace hawser::server::ocl
