// SPDX-License-Identifier: Apache-2.0
// Shared virtual memory. Every address is a guest's word and is looked up.
#include <vector>

#include "server/backends/opencl/transfers.h"

namespace hawser::server::ocl {
namespace {

constexpr std::string_view kForeign = "the range is in no shared virtual memory of this session";
constexpr uint32_t kSvmVersion = 20;

}  // namespace

int32_t OpenClBackend::SVMAlloc(const opencl::Call& call, const opencl::SVMAlloc& message) {
  opencl::SVMAddress reply;
  const Context* context = Use<Context>(message.context, "context", &reply.status);
  if (context != nullptr) {
    if (context->version < kSvmVersion) {
      reply.status = CL_INVALID_OPERATION;
    } else if (message.size == 0) {
      reply.status = CL_INVALID_VALUE;
    } else if (!memory_account_->Charge(message.size)) {
      reply.status = Explain(CL_MEM_OBJECT_ALLOCATION_FAILURE, "the session's limit on device memory");
    } else if (void* memory = clSVMAlloc(context->native.get(), message.flags, message.size, message.alignment)) {
      svm_->Add(context->native.get(), memory, message.size);
      reply.address = SvmRanges::Address(memory);
    } else {
      memory_account_->Uncharge(message.size);
      reply.status = CL_MEM_OBJECT_ALLOCATION_FAILURE;
    }
  }
  if (reply.status != CL_SUCCESS) Fail(call, reply.status);
  Reply(call, reply);
  return CL_SUCCESS;
}

int32_t OpenClBackend::SVMFree(const opencl::Call& call, const opencl::SVMFree& message) {
  const uint64_t size = svm_->SizeOf(message.address);
  if (size == 0) return Fail(call, Explain(CL_INVALID_VALUE, kForeign));
  svm_->Free(message.address);
  memory_account_->Uncharge(size);
  return CL_SUCCESS;
}

int32_t OpenClBackend::EnqueueSVMFree(const opencl::Call& call, const opencl::EnqueueSVMFree& message) {
  Command command(*this, call, message.queue, message.wait_list, message.event);
  command.RequireVersion(kSvmVersion);
  std::vector<void*> pointers;
  for (uint32_t i = 0; i < message.addresses.size(); ++i) {
    command.Require(svm_->IsBase(message.addresses[i]), CL_INVALID_VALUE, kForeign);
    for (void* earlier : pointers) {
      command.Require(earlier != SvmRanges::Pointer(message.addresses[i]), CL_INVALID_VALUE, "an address twice");
    }
    if (!command.ok()) return command.Fail();
    pointers.push_back(SvmRanges::Pointer(message.addresses[i]));
  }
  command.Require(!pointers.empty(), CL_INVALID_VALUE, "no addresses");
  if (!command.ok()) return command.Fail();
  const int32_t status =
      command.Run([&](cl_command_queue queue, cl_uint count, const cl_event* waits, cl_event* event) {
        return clEnqueueSVMFree(queue, static_cast<cl_uint>(pointers.size()), pointers.data(), nullptr, nullptr, count,
                                waits, event);
      });
  if (status != CL_SUCCESS) return status;
  for (const void* pointer : pointers) {
    memory_account_->Uncharge(svm_->SizeOf(SvmRanges::Address(pointer)));
    svm_->Forget(SvmRanges::Address(pointer));
  }
  return CL_SUCCESS;
}

int32_t OpenClBackend::CopySVM(const opencl::Call& call, const opencl::SVMCopy& message) {
  Command command(*this, call, message.queue, message.wait_list, message.event);
  command.RequireVersion(kSvmVersion);
  command.Require(svm_->Contains(message.destination, message.size) && svm_->Contains(message.source, message.size),
                  CL_INVALID_VALUE, kForeign);
  if (!command.ok()) return command.Fail();
  return command.Run([&](cl_command_queue queue, cl_uint count, const cl_event* waits, cl_event* event) {
    return clEnqueueSVMMemcpy(queue, CL_FALSE, SvmRanges::Pointer(message.destination),
                              SvmRanges::Pointer(message.source), message.size, count, waits, event);
  });
}

int32_t OpenClBackend::ReadSVM(const opencl::Call& call, const opencl::SVMRead& message) {
  Command command(*this, call, message.queue, message.wait_list, message.event);
  command.RequireVersion(kSvmVersion);
  command.Require(message.size != 0 && svm_->Contains(message.address, message.size), CL_INVALID_VALUE, kForeign);
  void* memory = SvmRanges::Pointer(message.address);
  if (message.transfer == 0) {
    return ReadInline(
        call, command, message.size,
        [&](cl_command_queue queue, std::byte* to, cl_uint count, const cl_event* waits, cl_event* event) {
          return clEnqueueSVMMemcpy(queue, CL_FALSE, to, memory, message.size, count, waits, event);
        });
  }
  return ReadMapped(
      call, command, message.transfer, message.size,
      [&](cl_command_queue queue, void** mapping, cl_uint count, const cl_event* waits, cl_event* event) {
        *mapping = memory;
        return clEnqueueSVMMap(queue, CL_FALSE, CL_MAP_READ, memory, message.size, count, waits, event);
      },
      [&](cl_command_queue queue, void*, cl_uint count, const cl_event* waits, cl_event* event) {
        return clEnqueueSVMUnmap(queue, memory, count, waits, event);
      });
}

int32_t OpenClBackend::WriteSVM(const opencl::Call& call, const opencl::SVMWrite& message) {
  Command command(*this, call, message.queue, message.wait_list, message.event);
  command.RequireVersion(kSvmVersion);
  command.Require(message.size != 0 && svm_->Contains(message.address, message.size), CL_INVALID_VALUE, kForeign);
  void* memory = SvmRanges::Pointer(message.address);
  if (message.transfer == 0) {
    command.Require(message.data.size() == message.size, CL_INVALID_VALUE, "the data has another size than it says");
    return WriteInline(
        command, message.data,
        [&](cl_command_queue queue, const std::byte* from, cl_uint count, const cl_event* waits, cl_event* event) {
          return clEnqueueSVMMemcpy(queue, CL_FALSE, memory, from, message.size, count, waits, event);
        });
  }
  return WriteMapped(
      command, message.transfer, message.size,
      [&](cl_command_queue queue, void** mapping, cl_uint count, const cl_event* waits, cl_event* event) {
        *mapping = memory;
        return clEnqueueSVMMap(queue, CL_FALSE, CL_MAP_WRITE_INVALIDATE_REGION, memory, message.size, count, waits,
                               event);
      },
      [&](cl_command_queue queue, void*, cl_uint count, const cl_event* waits, cl_event* event) {
        return clEnqueueSVMUnmap(queue, memory, count, waits, event);
      });
}

int32_t OpenClBackend::EnqueueSVMMemFill(const opencl::Call& call, const opencl::EnqueueSVMMemFill& message) {
  Command command(*this, call, message.queue, message.wait_list, message.event);
  command.RequireVersion(kSvmVersion);
  const size_t pattern = message.pattern.size();
  command.Require(pattern != 0 && pattern <= 128 && (pattern & (pattern - 1)) == 0 && message.size % pattern == 0 &&
                      message.address % pattern == 0,
                  CL_INVALID_VALUE, "the pattern does not fit");
  command.Require(svm_->Contains(message.address, message.size), CL_INVALID_VALUE, kForeign);
  if (!command.ok()) return command.Fail();
  return command.Run([&](cl_command_queue queue, cl_uint count, const cl_event* waits, cl_event* event) {
    return clEnqueueSVMMemFill(queue, SvmRanges::Pointer(message.address), message.pattern.data(), pattern,
                               message.size, count, waits, event);
  });
}

int32_t OpenClBackend::EnqueueSVMMigrateMem(const opencl::Call& call, const opencl::EnqueueSVMMigrateMem& message) {
  Command command(*this, call, message.queue, message.wait_list, message.event);
  command.RequireVersion(21);
  command.Require(
      !message.addresses.empty() && (message.sizes.empty() || message.sizes.size() == message.addresses.size()),
      CL_INVALID_VALUE, "no addresses, or another number of sizes");
  std::vector<const void*> pointers;
  std::vector<size_t> sizes;
  for (uint32_t i = 0; i < message.addresses.size() && command.ok(); ++i) {
    const uint64_t size = message.sizes.empty() ? 0 : message.sizes[i];
    command.Require(svm_->Contains(message.addresses[i], size), CL_INVALID_VALUE, kForeign);
    pointers.push_back(SvmRanges::Pointer(message.addresses[i]));
    sizes.push_back(size);
  }
  if (!command.ok()) return command.Fail();
  return command.Run([&](cl_command_queue queue, cl_uint count, const cl_event* waits, cl_event* event) {
    return clEnqueueSVMMigrateMem(queue, static_cast<cl_uint>(pointers.size()), pointers.data(), sizes.data(),
                                  message.flags, count, waits, event);
  });
}

}  // namespace hawser::server::ocl
