// SPDX-License-Identifier: Apache-2.0
// Creating, cloning and ending kernels.
#include <algorithm>

#include "interposer/opencl/entry.h"
#include "interposer/opencl/query.h"
#include "proto/opencl/guest_entries.h"

namespace hawser::ocl {
namespace {

cl_kernel NewKernel(cl_program program, std::shared_ptr<const KernelMetadata> metadata) {
  guest::Session* session = program->session;
  auto* kernel = new _cl_kernel(Magic::kKernel, session, session->NewId(HandleTraits<cl_kernel>::kType));
  kernel->program = Use(program);
  kernel->args.resize(metadata->args.size());
  kernel->unset_args = static_cast<uint32_t>(metadata->args.size());
  kernel->metadata = std::move(metadata);
  program->attached_kernels.fetch_add(1, std::memory_order_relaxed);
  Registry::Get().Add(kernel);
  return kernel;
}

cl_int SendCreate(cl_kernel kernel) {
  opencl::CreateKernel message;
  message.kernel = kernel->id;
  message.program = kernel->program->id;
  message.name = kernel->metadata->name;
  return kernel->session->Send(message);
}

/// Where the build could not tell the kernels, the server finds the name or does not, and counts the arguments.
cl_int CreateUnknown(cl_program program, const char* name, cl_kernel* out) {
  auto metadata = std::make_shared<KernelMetadata>();
  metadata->name = name;
  metadata->known = false;
  cl_kernel kernel = NewKernel(program, metadata);
  opencl::CreateKernel message;
  message.kernel = kernel->id;
  message.program = program->id;
  message.name = name;
  std::vector<std::byte> value;
  cl_int error = program->session->SendAndWait(message);
  if (error == CL_SUCCESS) error = QueryServer(QueryKind::kKernel, *kernel, nullptr, CL_KERNEL_NUM_ARGS, {}, &value);
  cl_uint count = 0;
  if (error == CL_SUCCESS && value.size() == sizeof(count)) std::memcpy(&count, value.data(), sizeof(count));
  if (error != CL_SUCCESS) {
    ReleaseObject(kernel);
    return error;
  }
  metadata->args.resize(count);
  metadata->accepted = std::make_unique<std::atomic<uint64_t>[]>(count);
  kernel->args.resize(count);
  kernel->unset_args = count;
  *out = kernel;
  return CL_SUCCESS;
}

cl_int Create(cl_program program, const char* name, cl_kernel* out) {
  if (const cl_int error = CheckHandle(program)) return error;
  if (name == nullptr) return CL_INVALID_VALUE;
  std::shared_ptr<const KernelMetadata> metadata;
  bool unknown = false;
  {
    std::lock_guard lock(program->mutex);
    if (!program->executable) return CL_INVALID_PROGRAM_EXECUTABLE;
    unknown = program->kernels_status != CL_SUCCESS;
    for (const auto& kernel : program->kernels) {
      if (kernel->name == name) metadata = kernel;
    }
  }
  if (unknown) return CreateUnknown(program, name, out);
  if (metadata == nullptr) return CL_INVALID_KERNEL_NAME;
  cl_kernel kernel = NewKernel(program, std::move(metadata));
  if (const cl_int error = SendCreate(kernel)) {
    ReleaseObject(kernel);
    return error;
  }
  *out = kernel;
  return CL_SUCCESS;
}

/// In the server's order.
cl_int KernelNames(cl_program program, std::vector<std::string>* names) {
  {
    std::lock_guard lock(program->mutex);
    if (!program->executable) return CL_INVALID_PROGRAM_EXECUTABLE;
    for (const auto& kernel : program->kernels) names->push_back(kernel->name);
    if (program->kernels_status == CL_SUCCESS) return CL_SUCCESS;
  }
  std::vector<std::byte> value;
  if (const cl_int error = QueryServer(QueryKind::kProgram, *program, nullptr, CL_PROGRAM_KERNEL_NAMES, {}, &value)) {
    return error;
  }
  std::string_view list(reinterpret_cast<const char*>(value.data()), value.size());
  list = list.substr(0, list.find('\0'));
  while (!list.empty()) {
    const size_t end = std::min(list.find(';'), list.size());
    if (end != 0) names->emplace_back(list.substr(0, end));
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return CL_SUCCESS;
}

}  // namespace

void Destroy(cl_kernel kernel) {
  Registry::Get().Remove(kernel);
  SendRelease(*kernel);
  cl_program program = kernel->program;
  kernel->magic = Magic::kFreed;
  delete kernel;
  program->attached_kernels.fetch_sub(1, std::memory_order_release);
  DropUse(program);
}

// ---------------------------------------------------------------------- entry points

cl_kernel CL_API_CALL clCreateKernel(cl_program program, const char* name, cl_int* errcode) {
  cl_kernel kernel = nullptr;
  const cl_int error = Create(program, name, &kernel);
  if (errcode != nullptr) *errcode = error;
  return kernel;
}

cl_int CL_API_CALL clCreateKernelsInProgram(cl_program program, cl_uint num_kernels, cl_kernel* kernels,
                                            cl_uint* num_kernels_ret) {
  if (const cl_int error = CheckHandle(program)) return error;
  std::vector<std::string> names;
  if (const cl_int error = KernelNames(program, &names)) return error;
  if (kernels != nullptr) {
    if (num_kernels < names.size()) return CL_INVALID_VALUE;
    for (size_t i = 0; i < names.size(); ++i) {
      const cl_int error = Create(program, names[i].c_str(), &kernels[i]);
      if (error == CL_SUCCESS) continue;
      while (i != 0) ReleaseObject(kernels[--i]);
      return error;
    }
  }
  if (num_kernels_ret != nullptr) *num_kernels_ret = static_cast<cl_uint>(names.size());
  return CL_SUCCESS;
}

cl_kernel CL_API_CALL clCloneKernel(cl_kernel source, cl_int* errcode) {
  cl_int error = CheckHandle(source);
  cl_kernel kernel = nullptr;
  if (error == CL_SUCCESS) {
    kernel = NewKernel(source->program, source->metadata);
    kernel->args = source->args;
    kernel->unset_args = source->unset_args;
    opencl::CloneKernel message;
    message.kernel = kernel->id;
    message.source = source->id;
    error = kernel->session->Send(message);
    if (error != CL_SUCCESS) {
      ReleaseObject(kernel);
      kernel = nullptr;
    }
  }
  if (errcode != nullptr) *errcode = error;
  return kernel;
}

}  // namespace hawser::ocl
