// SPDX-License-Identifier: Apache-2.0
// Rare questions. The answer's bytes are those of the C result.
#include <cstring>

#include "server/backends/cuda/backend.h"

namespace hawser::server::cuda_backend {
namespace {

enum class Question : uint32_t {
  kPeerAttribute = 1,
  kPointerAttribute = 2,
  kStreamAttribute = 3,
  kGraphExecFlags = 4,
  kArrayRequirements = 5,
  kArraySparse = 6,
  kPoolAccess = 7,
};

/// Attributes of pointers that are plain values, with their sizes.
size_t PointerAttributeSize(uint32_t attribute) {
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    case CU_POINTER_ATTRIBUTE_MAPPED:
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
      return 4;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
      return 8;
    default:
      return 0;  // Handles of the server's process, and what is not known.
  }
}

}  // namespace

int32_t CudaBackend::Ask(const cuda::Call& call, const cuda::Query& message) {
  cuda::QueryReply reply;
  std::vector<std::byte> value;
  const auto put = [&](const void* data, size_t size) {
    value.assign(static_cast<const std::byte*>(data), static_cast<const std::byte*>(data) + size);
  };
  if (message.context) (void)Enter(message.context, &reply.status);
  const auto device = [&](uint32_t index, CUdevice* native) {
    if (index >= devices_.size()) return static_cast<int32_t>(CUDA_ERROR_INVALID_DEVICE);
    *native = devices_[index];
    return int32_t{0};
  };
  if (reply.status == 0) {
    switch (static_cast<Question>(message.kind)) {
      case Question::kPeerAttribute: {
        CUdevice one = 0, other = 0;
        int result = 0;
        reply.status = device(message.device, &one);
        if (reply.status == 0) reply.status = device(message.other, &other);
        if (reply.status != 0) break;
        reply.status = driver_.cuDeviceGetP2PAttribute == nullptr
                           ? kNotSupported
                           : driver_.cuDeviceGetP2PAttribute(&result, static_cast<CUdevice_P2PAttribute>(message.param),
                                                             one, other);
        put(&result, sizeof(result));
        break;
      }
      case Question::kPointerAttribute: {
        const size_t size = PointerAttributeSize(message.param);
        if (size == 0 || driver_.cuPointerGetAttribute == nullptr) {
          reply.status = kNotSupported;
          break;
        }
        if (!Owns(message.address, 1)) {
          reply.status = CUDA_ERROR_INVALID_VALUE;
          break;
        }
        uint64_t result = 0;
        reply.status =
            driver_.cuPointerGetAttribute(&result, static_cast<CUpointer_attribute>(message.param), message.address);
        put(&result, size);
        break;
      }
      case Question::kStreamAttribute: {
        const Stream* stream = Use<Stream>(message.object, &reply.status);
        if (stream == nullptr) break;
        if (driver_.cuStreamGetAttribute == nullptr) {
          reply.status = kNotSupported;
          break;
        }
        CUstreamAttrValue result{};
        reply.status =
            driver_.cuStreamGetAttribute(stream->state->native(), static_cast<CUstreamAttrID>(message.param), &result);
        put(&result, sizeof(result));
        break;
      }
      case Question::kGraphExecFlags: {
        const GraphExec* exec = Use<GraphExec>(message.object, &reply.status);
        cuuint64_t flags = 0;
        if (exec == nullptr) break;
        reply.status = driver_.cuGraphExecGetFlags == nullptr ? kNotSupported
                                                              : driver_.cuGraphExecGetFlags(exec->owned.get(), &flags);
        put(&flags, sizeof(flags));
        break;
      }
      case Question::kArrayRequirements: {
        const Array* array = Use<Array>(message.object, &reply.status);
        CUdevice native = 0;
        if (array == nullptr) break;
        if (reply.status = device(message.device, &native); reply.status != 0) break;
        CUDA_ARRAY_MEMORY_REQUIREMENTS result{};
        reply.status = driver_.cuArrayGetMemoryRequirements == nullptr
                           ? kNotSupported
                           : driver_.cuArrayGetMemoryRequirements(&result, array->native, native);
        put(&result, sizeof(result));
        break;
      }
      case Question::kArraySparse: {
        const Array* array = Use<Array>(message.object, &reply.status);
        if (array == nullptr) break;
        CUDA_ARRAY_SPARSE_PROPERTIES result{};
        reply.status = driver_.cuArrayGetSparseProperties == nullptr
                           ? kNotSupported
                           : driver_.cuArrayGetSparseProperties(&result, array->native);
        put(&result, sizeof(result));
        break;
      }
      case Question::kPoolAccess: {
        const Pool* pool = Use<Pool>(message.object, &reply.status);
        CUmemLocation location{};
        CUdevice native = 0;
        if (pool == nullptr) break;
        if (reply.status = device(message.device, &native); reply.status != 0) break;
        location.type = CU_MEM_LOCATION_TYPE_DEVICE;
        location.id = native;
        CUmemAccess_flags flags{};
        reply.status = driver_.cuMemPoolGetAccess == nullptr
                           ? kNotSupported
                           : driver_.cuMemPoolGetAccess(&flags, pool->native, &location);
        put(&flags, sizeof(flags));
        break;
      }
    }
  }
  reason_.clear();
  if (reply.status == 0) reply.value = value;
  Reply(call, reply);
  return 0;
}

}  // namespace hawser::server::cuda_backend
