// SPDX-License-Identifier: Apache-2.0
// Rare questions: parameters that the guest does not keep, and binaries.
#include <algorithm>
#include <vector>

#include "server/backends/opencl/backend.h"

namespace hawser::server::ocl {
namespace {

constexpr uint64_t kLargestAnswer = 1u << 20;
// What a frame can carry, with room for its other fields.
constexpr uint64_t kLargestBinaries = 60u << 20;

// Only these: others are handles, write through pointers, or make a driver compile.
constexpr uint32_t kProgramInfo[] = {CL_PROGRAM_REFERENCE_COUNT,
                                     CL_PROGRAM_NUM_DEVICES,
                                     CL_PROGRAM_SOURCE,
                                     CL_PROGRAM_NUM_KERNELS,
                                     CL_PROGRAM_KERNEL_NAMES,
                                     CL_PROGRAM_IL,
                                     CL_PROGRAM_SCOPE_GLOBAL_CTORS_PRESENT,
                                     CL_PROGRAM_SCOPE_GLOBAL_DTORS_PRESENT};
constexpr uint32_t kBuildInfo[] = {CL_PROGRAM_BUILD_STATUS, CL_PROGRAM_BUILD_OPTIONS, CL_PROGRAM_BUILD_LOG,
                                   CL_PROGRAM_BINARY_TYPE, CL_PROGRAM_BUILD_GLOBAL_VARIABLE_TOTAL_SIZE};
constexpr uint32_t kKernelInfo[] = {CL_KERNEL_FUNCTION_NAME, CL_KERNEL_NUM_ARGS, CL_KERNEL_REFERENCE_COUNT,
                                    CL_KERNEL_ATTRIBUTES};
constexpr uint32_t kWorkGroupInfo[] = {CL_KERNEL_WORK_GROUP_SIZE,  CL_KERNEL_COMPILE_WORK_GROUP_SIZE,
                                       CL_KERNEL_LOCAL_MEM_SIZE,   CL_KERNEL_PREFERRED_WORK_GROUP_SIZE_MULTIPLE,
                                       CL_KERNEL_PRIVATE_MEM_SIZE, CL_KERNEL_GLOBAL_WORK_SIZE};
constexpr uint32_t kSubGroupInfo[] = {CL_KERNEL_MAX_SUB_GROUP_SIZE_FOR_NDRANGE, CL_KERNEL_SUB_GROUP_COUNT_FOR_NDRANGE,
                                      CL_KERNEL_LOCAL_SIZE_FOR_SUB_GROUP_COUNT, CL_KERNEL_MAX_NUM_SUB_GROUPS,
                                      CL_KERNEL_COMPILE_NUM_SUB_GROUPS};

enum Kind : uint32_t { kProgram = 1, kBuild = 2, kKernel = 3, kWorkGroup = 4, kSubGroup = 5 };

template <size_t kCount>
bool IsAmong(uint32_t param, const uint32_t (&params)[kCount]) {
  return std::find(params, params + kCount, param) != params + kCount;
}

bool IsKnown(uint32_t kind, uint32_t param) {
  switch (kind) {
    case kProgram:
      return IsAmong(param, kProgramInfo);
    case kBuild:
      return IsAmong(param, kBuildInfo);
    case kKernel:
      return IsAmong(param, kKernelInfo);
    case kWorkGroup:
      return IsAmong(param, kWorkGroupInfo);
    case kSubGroup:
      return IsAmong(param, kSubGroupInfo);
    default:
      return false;
  }
}

// query(size, value, size_ret) as the driver's functions.
template <typename Query>
int32_t Ask(uint64_t max_size, std::vector<std::byte>* value, Query&& query) {
  size_t size = 0;
  int32_t status = query(size_t{0}, static_cast<void*>(nullptr), &size);
  if (status != CL_SUCCESS) return status;
  if (size > std::min(max_size, kLargestAnswer)) return CL_INVALID_VALUE;
  value->resize(size);
  if (size == 0) return CL_SUCCESS;
  return query(size, static_cast<void*>(value->data()), static_cast<size_t*>(nullptr));
}

// Sizes of sub-groups need the answer's room beforehand: some drivers refuse to be asked for the size alone.
int32_t AskSubGroup(cl_kernel kernel, cl_device_id device, const opencl::Query& message,
                    std::vector<std::byte>* value) {
  const size_t room = message.param == CL_KERNEL_LOCAL_SIZE_FOR_SUB_GROUP_COUNT
                          ? std::clamp<uint64_t>(message.max_size, sizeof(size_t), 3 * sizeof(size_t))
                          : sizeof(size_t);
  value->resize(room);
  size_t size = 0;
  const cl_int status =
      clGetKernelSubGroupInfo(kernel, device, message.param, message.input.size(),
                              message.input.empty() ? nullptr : message.input.data(), room, value->data(), &size);
  if (status == CL_SUCCESS) value->resize(std::min(size, room));
  return status;
}

void SendBinaries(Replies* replies, opencl::Opcode opcode, uint64_t seq, cl_program program, size_t devices) {
  opencl::ProgramBinaries reply;
  std::vector<size_t> sizes(devices);
  std::vector<std::vector<std::byte>> data(devices);
  std::vector<std::byte*> pointers;
  std::vector<opencl::Blob> blobs;
  reply.status = clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, devices * sizeof(size_t), sizes.data(), nullptr);
  uint64_t total = 0;
  for (const size_t size : sizes) total += std::min<uint64_t>(size, kLargestBinaries + 1);
  if (reply.status == CL_SUCCESS && total > kLargestBinaries) reply.status = CL_OUT_OF_RESOURCES;
  if (reply.status == CL_SUCCESS) {
    for (size_t i = 0; i < devices; ++i) {
      data[i].resize(sizes[i]);
      pointers.push_back(sizes[i] == 0 ? nullptr : data[i].data());
    }
    reply.status =
        clGetProgramInfo(program, CL_PROGRAM_BINARIES, devices * sizeof(std::byte*), pointers.data(), nullptr);
  }
  if (reply.status == CL_SUCCESS) {
    for (const std::vector<std::byte>& binary : data) {
      opencl::Blob& blob = blobs.emplace_back();
      blob.data = wire::Bytes(binary.data(), binary.size());
    }
  }
  reply.binaries = wire::ListView<opencl::Blob>(blobs);
  replies->Send(opcode, seq, reply, true);
}

}  // namespace

int32_t OpenClBackend::QueryObject(const opencl::Call& call, const opencl::Query& message) {
  opencl::QueryReply reply;
  std::vector<std::byte> value;
  cl_program program = nullptr;
  cl_kernel kernel = nullptr;
  cl_device_id device = nullptr;
  uint32_t version = 0;
  if (!IsKnown(message.kind, message.param)) reply.status = Explain(CL_INVALID_VALUE, "no parameter of this kind");
  if (reply.status == CL_SUCCESS && message.device) {
    if (const Device* found = UseDevice(message.device, &reply.status); found != nullptr) device = found->device;
  }
  if (reply.status == CL_SUCCESS) {
    if (message.kind == kProgram || message.kind == kBuild) {
      UseProgram(message.object, "program", &reply.status, &program);
    } else if (const Kernel* found = Use<Kernel>(message.object, "kernel", &reply.status); found != nullptr) {
      kernel = found->native.get();
      version = found->version;
    }
  }
  if (reply.status == CL_SUCCESS) {
    switch (message.kind) {
      case kProgram:
        if (message.param == CL_PROGRAM_SOURCE && ShareProgram(message.object)->has_prelude) {
          // The guest's own text, with its final 0.
          const std::string& source = ShareProgram(message.object)->source;
          const auto* bytes = reinterpret_cast<const std::byte*>(source.c_str());
          if (source.size() < message.max_size) {
            value.assign(bytes, bytes + source.size() + 1);
          } else {
            reply.status = CL_INVALID_VALUE;
          }
          break;
        }
        reply.status = Ask(message.max_size, &value, [&](size_t size, void* to, size_t* size_ret) {
          return clGetProgramInfo(program, message.param, size, to, size_ret);
        });
        break;
      case kBuild:
        reply.status = Ask(message.max_size, &value, [&](size_t size, void* to, size_t* size_ret) {
          return clGetProgramBuildInfo(program, device, message.param, size, to, size_ret);
        });
        break;
      case kKernel:
        reply.status = Ask(message.max_size, &value, [&](size_t size, void* to, size_t* size_ret) {
          return clGetKernelInfo(kernel, message.param, size, to, size_ret);
        });
        break;
      case kWorkGroup:
        reply.status = Ask(message.max_size, &value, [&](size_t size, void* to, size_t* size_ret) {
          return clGetKernelWorkGroupInfo(kernel, device, message.param, size, to, size_ret);
        });
        break;
      default:
        reply.status = version < 21 ? CL_INVALID_OPERATION : AskSubGroup(kernel, device, message, &value);
        break;
    }
  }
  if (reply.status != CL_SUCCESS) {
    Fail(call, reply.status);
    value.clear();
  }
  reply.value = wire::Bytes(value.data(), value.size());
  Reply(call, reply);
  return CL_SUCCESS;
}

int32_t OpenClBackend::GetBinaries(const opencl::Call& call, const opencl::GetProgramBinaries& message) {
  opencl::ProgramBinaries reply;
  cl_program native = nullptr;
  if (UseProgram(message.program, "program", &reply.status, &native) == nullptr) {
    Fail(call, reply.status);
    Reply(call, reply);
    return CL_SUCCESS;
  }
  cl_uint devices = 0;
  reply.status = clGetProgramInfo(native, CL_PROGRAM_NUM_DEVICES, sizeof(devices), &devices, nullptr);
  if (reply.status != CL_SUCCESS) {
    Fail(call, reply.status);
    Reply(call, reply);
    return CL_SUCCESS;
  }
  // On the builder: PoCL compiles every kernel for this.
  builder_->Post([replies = services_.replies, call, devices, program = ShareProgram(message.program)] {
    SendBinaries(replies, static_cast<opencl::Opcode>(call.opcode), call.seq, program->native.load(), devices);
  });
  return CL_SUCCESS;
}

}  // namespace hawser::server::ocl
