// SPDX-License-Identifier: Apache-2.0
// Coarse-grained shared virtual memory: clSVMAlloc and clSVMFree. The server allocates; the guest maps memory of its
// own at the same address, so that pointers mean the same on both sides. Commands move the bytes (svm_commands.cc).
#include "interposer/opencl/svm.h"

#include <algorithm>

#include "interposer/opencl/entry.h"
#include "interposer/opencl/mem.h"
#include "interposer/opencl/mem_flags.h"
#include "interposer/opencl/svm_pages.h"
#include "proto/opencl/guest_entries.h"

namespace hawser::ocl {
namespace {

constexpr int kTries = 8;
constexpr cl_uint kLargestAlignment = 128;  // Of the largest data type, long16.

void SendFree(cl_context context, uint64_t address) {
  opencl::SVMFree message;
  message.context = context->id;
  message.address = address;
  context->session->Send(message);
}

/// One allocation of the server; 0 when it refuses.
uint64_t AskServer(cl_context context, cl_svm_mem_flags flags, size_t size, cl_uint alignment) {
  opencl::SVMAlloc message;
  message.context = context->id;
  message.flags = flags;
  message.size = size;
  message.alignment = alignment;
  opencl::SVMAddress reply;
  const cl_int error = context->session->CallInto(opencl::Opcode::kSVMAlloc, message, &reply);
  return error == CL_SUCCESS && reply.status == CL_SUCCESS ? reply.address : 0;
}

}  // namespace

bool SupportsSvm(cl_context context) {
  return std::any_of(context->devices.begin(), context->devices.end(), [](cl_device_id device) {
    cl_device_svm_capabilities capabilities = 0;
    return ocl::clGetDeviceInfo(device, CL_DEVICE_SVM_CAPABILITIES, sizeof(capabilities), &capabilities, nullptr) ==
               CL_SUCCESS &&
           (capabilities & CL_DEVICE_SVM_COARSE_GRAIN_BUFFER) != 0;
  });
}

void ForgetSvm(cl_context context, uintptr_t address) {
  size_t size = 0;
  {
    std::lock_guard lock(context->mutex);
    const auto found = context->svm.find(address);
    if (found == context->svm.end()) return;
    size = found->second.size;
    context->svm.erase(found);
  }
  SvmPages::Get().Unmap(address, size);
}

void* CL_API_CALL clSVMAlloc(cl_context context, cl_svm_mem_flags flags, size_t size, cl_uint alignment) {
  if (CheckHandle(context) != CL_SUCCESS || size == 0 || size > MaxAllocation(context)) return nullptr;
  if ((flags & (CL_MEM_SVM_FINE_GRAIN_BUFFER | CL_MEM_SVM_ATOMICS)) != 0) {
    RefuseOnce("clSVMAlloc", "the guest's memory is not the device's, so that only coarse-grained SVM is possible");
    return nullptr;
  }
  if ((flags & ~kDeviceAccess) != 0 || CheckMemFlags(flags) != CL_SUCCESS) return nullptr;
  if ((alignment & (alignment - 1)) != 0 || alignment > kLargestAlignment || !SupportsSvm(context)) return nullptr;
  uint64_t unusable[kTries];
  int tries = 0;
  void* result = nullptr;
  while (tries < kTries) {
    const uint64_t address = AskServer(context, flags == 0 ? CL_MEM_READ_WRITE : flags, size, alignment);
    if (address == 0) break;
    if (SvmPages::Get().Map(address, size)) {
      std::lock_guard lock(context->mutex);
      context->svm[address] = {size, flags, {}};
      result = reinterpret_cast<void*>(address);
      break;
    }
    unusable[tries++] = address;  // Kept until one fits, so that the server does not give it out again.
  }
  for (int i = 0; i < tries; ++i) SendFree(context, unusable[i]);
  return result;
}

void CL_API_CALL clSVMFree(cl_context context, void* pointer) {
  if (CheckHandle(context) != CL_SUCCESS || pointer == nullptr) return;
  const auto address = reinterpret_cast<uintptr_t>(pointer);
  {
    std::lock_guard lock(context->mutex);
    if (context->svm.count(address) == 0) return;
  }
  SendFree(context, address);
  ForgetSvm(context, address);
}

}  // namespace hawser::ocl
