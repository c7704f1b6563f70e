// SPDX-License-Identifier: Apache-2.0
// Setting arguments: checked here from what the build told, sent without waiting. Only where the type says too little
// (structures, vectors of three, kernels from binaries without argument info) does the first set of each form wait for
// the server's verdict; a form that was accepted never waits again.
#include <algorithm>

#include "interposer/opencl/entry.h"
#include "interposer/opencl/info_filter.h"
#include "proto/opencl/guest_entries.h"

namespace hawser::ocl {
namespace {

// opencl::SetKernelArg::kind
constexpr uint32_t kValueKind = 1;
constexpr uint32_t kMemKind = 2;
constexpr uint32_t kSamplerKind = 3;
constexpr uint32_t kLocalKind = 4;
constexpr uint32_t kQueueKind = 5;

constexpr size_t kLargestValue = 65536;  // Of the message's field; devices take far less.

void MarkSet(cl_kernel kernel, _cl_kernel::Arg& arg) {
  if (arg.set) return;
  arg.set = true;
  --kernel->unset_args;
}

/// What KernelMetadata::accepted remembers.
uint64_t AcceptedKey(uint32_t kind, size_t size) { return uint64_t{kind} << 56 | size; }

cl_int SendArg(cl_kernel kernel, const opencl::SetKernelArg& message, bool checked) {
  if (checked) return kernel->session->Send(message);
  std::atomic<uint64_t>& accepted = kernel->metadata->accepted[message.index];
  const uint64_t key = AcceptedKey(message.kind, message.size);
  if (accepted.load(std::memory_order_relaxed) == key) return kernel->session->Send(message);
  const cl_int error = kernel->session->SendAndWait(message);
  if (error == CL_SUCCESS) accepted.store(key, std::memory_order_relaxed);
  return error;
}

template <typename Handle>
Handle HandleAt(const void* value) {
  Handle handle;
  std::memcpy(&handle, value, sizeof(handle));
  return handle;
}

/// Fills kind and object for an argument that is a memory object.
cl_int UseMem(const void* value, size_t size, bool null_pointer_allowed, opencl::SetKernelArg* message, cl_mem* mem) {
  message->kind = kMemKind;
  if (size != sizeof(cl_mem)) return CL_INVALID_ARG_SIZE;
  if (value == nullptr) return null_pointer_allowed ? CL_SUCCESS : CL_INVALID_ARG_VALUE;
  *mem = HandleAt<cl_mem>(value);
  if (*mem == nullptr) return CL_SUCCESS;
  if (const cl_int error = CheckHandle(*mem)) return error;
  message->object = (*mem)->id;
  return CL_SUCCESS;
}

cl_int UseSampler(const void* value, size_t size, opencl::SetKernelArg* message) {
  message->kind = kSamplerKind;
  if (size != sizeof(cl_sampler)) return CL_INVALID_ARG_SIZE;
  if (value == nullptr) return CL_INVALID_ARG_VALUE;
  const auto sampler = HandleAt<cl_sampler>(value);
  if (const cl_int error = CheckHandle(sampler)) return error;
  message->object = sampler->id;
  return CL_SUCCESS;
}

cl_int UseQueue(const void* value, size_t size, opencl::SetKernelArg* message) {
  message->kind = kQueueKind;
  if (size != sizeof(cl_command_queue)) return CL_INVALID_ARG_SIZE;
  if (value == nullptr) return CL_INVALID_ARG_VALUE;
  const auto queue = HandleAt<cl_command_queue>(value);
  if (CheckHandle(queue) != CL_SUCCESS || (queue->properties & CL_QUEUE_ON_DEVICE) == 0) {
    return CL_INVALID_DEVICE_QUEUE;
  }
  message->object = queue->id;
  return CL_SUCCESS;
}

/// An argument about whose type nothing is known, or only that it is no pointer: what the value points to decides.
cl_int UseWhatItIs(const void* value, size_t size, opencl::SetKernelArg* message, cl_mem* mem) {
  if (value == nullptr) {
    message->kind = kLocalKind;  // Or a null buffer, which is set in the same way.
    return size == 0 ? CL_INVALID_ARG_SIZE : CL_SUCCESS;
  }
  if (size == sizeof(void*)) {
    const void* pointer = HandleAt<const void*>(value);
    if (Registry::Get().IsMem(pointer)) return UseMem(value, size, true, message, mem);
    if (Registry::Get().IsSampler(pointer)) return UseSampler(value, size, message);
    if (Registry::Get().IsQueue(pointer)) return UseQueue(value, size, message);
  }
  message->kind = kValueKind;
  if (size == 0 || size > kLargestValue) return CL_INVALID_ARG_SIZE;
  message->value = wire::AsBytes(value, size);
  return CL_SUCCESS;
}

bool HasCoarseSvm(cl_kernel kernel) {
  const auto& devices = kernel->program->devices;
  return std::any_of(devices.begin(), devices.end(), [](cl_device_id device) {
    return ValueOr<cl_device_svm_capabilities>(device->info, CL_DEVICE_SVM_CAPABILITIES, 0) != 0;
  });
}

}  // namespace

cl_int CL_API_CALL clSetKernelArg(cl_kernel kernel, cl_uint index, size_t size, const void* value) {
  if (const cl_int error = CheckHandle(kernel)) return error;
  if (index >= kernel->args.size()) return CL_INVALID_ARG_INDEX;
  const KernelMetadata::Arg& expected = kernel->metadata->args[index];
  opencl::SetKernelArg message;
  message.kernel = kernel->id;
  message.index = index;
  message.size = size;
  cl_mem mem = nullptr;
  bool checked = true;
  cl_int error = CL_SUCCESS;
  switch (expected.kind) {
    case ArgKind::kValue:
      if (value == nullptr) return CL_INVALID_ARG_VALUE;
      if (expected.value_size == 0) {
        checked = false;
        error = UseWhatItIs(value, size, &message, &mem);
      } else {
        if (size != expected.value_size) return CL_INVALID_ARG_SIZE;
        message.kind = kValueKind;
        message.value = wire::AsBytes(value, size);
      }
      break;
    case ArgKind::kBuffer:
      error = UseMem(value, size, true, &message, &mem);
      break;
    case ArgKind::kImage:
    case ArgKind::kPipe:
      error = UseMem(value, size, false, &message, &mem);
      break;
    case ArgKind::kSampler:
      error = UseSampler(value, size, &message);
      break;
    case ArgKind::kQueue:
      error = UseQueue(value, size, &message);
      break;
    case ArgKind::kLocal:
      message.kind = kLocalKind;
      if (value != nullptr) return CL_INVALID_ARG_VALUE;
      if (size == 0) return CL_INVALID_ARG_SIZE;
      break;
    case ArgKind::kUnknown:
      checked = false;
      error = UseWhatItIs(value, size, &message, &mem);
      break;
  }
  if (error != CL_SUCCESS) return error;
  error = SendArg(kernel, message, checked);
  if (error != CL_SUCCESS) return error;
  _cl_kernel::Arg& arg = kernel->args[index];
  arg.local_size = message.kind == kLocalKind && expected.kind != ArgKind::kBuffer ? size : 0;
  arg.mem = mem;
  MarkSet(kernel, arg);
  return CL_SUCCESS;
}

cl_int CL_API_CALL clSetKernelArgSVMPointer(cl_kernel kernel, cl_uint index, const void* value) {
  if (const cl_int error = CheckHandle(kernel)) return error;
  if (!HasCoarseSvm(kernel)) return CL_INVALID_OPERATION;
  if (index >= kernel->args.size()) return CL_INVALID_ARG_INDEX;
  const ArgKind expected = kernel->metadata->args[index].kind;
  if (expected != ArgKind::kBuffer && expected != ArgKind::kUnknown) return CL_INVALID_ARG_VALUE;
  opencl::SetKernelArgSVMPointer message;
  message.kernel = kernel->id;
  message.index = index;
  message.address = reinterpret_cast<uintptr_t>(value);
  if (const cl_int error = kernel->session->Send(message)) return error;
  _cl_kernel::Arg& arg = kernel->args[index];
  arg.local_size = 0;
  arg.mem = nullptr;
  MarkSet(kernel, arg);
  return CL_SUCCESS;
}

cl_int CL_API_CALL clSetKernelExecInfo(cl_kernel kernel, cl_kernel_exec_info param, size_t size, const void* value) {
  if (const cl_int error = CheckHandle(kernel)) return error;
  if (!HasCoarseSvm(kernel)) return CL_INVALID_OPERATION;
  if (value == nullptr || size == 0) return CL_INVALID_VALUE;
  switch (param) {
    case CL_KERNEL_EXEC_INFO_SVM_PTRS:
      if (size % sizeof(void*) != 0) return CL_INVALID_VALUE;
      break;
    case CL_KERNEL_EXEC_INFO_SVM_FINE_GRAIN_SYSTEM:
      if (size != sizeof(cl_bool)) return CL_INVALID_VALUE;
      // Host memory is not the device's.
      if (HandleAt<cl_bool>(value) != CL_FALSE) return CL_INVALID_OPERATION;
      return CL_SUCCESS;
    default:
      return CL_INVALID_VALUE;
  }
  opencl::SetKernelExecInfo message;
  message.kernel = kernel->id;
  message.param = param;
  message.value = wire::AsBytes(value, size);
  return kernel->session->Send(message);
}

}  // namespace hawser::ocl
