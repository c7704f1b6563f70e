// SPDX-License-Identifier: Apache-2.0
#include "interposer/cudart/graph_params.h"

#include <cstring>

#include "interposer/cudart/copy.h"
#include "interposer/cudart/entry.h"

namespace hawser::cudart {
namespace {

// These are alike in both interfaces and are passed on as they are.
static_assert(sizeof(cudaGraphNodeParams) == sizeof(CUgraphNodeParams));
static_assert(offsetof(cudaGraphNodeParams, kernel) == offsetof(CUgraphNodeParams, kernel));
static_assert(sizeof(cudaHostNodeParamsV2) == sizeof(CUDA_HOST_NODE_PARAMS_v2));
static_assert(sizeof(cudaMemAllocNodeParamsV2) == sizeof(CUDA_MEM_ALLOC_NODE_PARAMS_v2));
static_assert(sizeof(cudaChildGraphNodeParams) == sizeof(CUDA_CHILD_GRAPH_NODE_PARAMS));
static_assert(sizeof(cudaEventRecordNodeParams) == sizeof(CUDA_EVENT_RECORD_NODE_PARAMS));
static_assert(sizeof(cudaEventWaitNodeParams) == sizeof(CUDA_EVENT_WAIT_NODE_PARAMS));
static_assert(int{cudaGraphNodeTypeConditional} == int{CU_GRAPH_NODE_TYPE_CONDITIONAL});

template <typename Parameters>
cudaError_t FillKernel(const Parameters& from, CUDA_KERNEL_NODE_PARAMS* to) {
  *to = {};
  if (const cudaError_t error = ResolveKernel(from.func, &to->kern); error != cudaSuccess) return error;
  to->gridDimX = from.gridDim.x;
  to->gridDimY = from.gridDim.y;
  to->gridDimZ = from.gridDim.z;
  to->blockDimX = from.blockDim.x;
  to->blockDimY = from.blockDim.y;
  to->blockDimZ = from.blockDim.z;
  to->sharedMemBytes = from.sharedMemBytes;
  to->kernelParams = from.kernelParams;
  to->extra = from.extra;
  return cudaSuccess;
}

bool IsElementSize(unsigned size) { return size == 1 || size == 2 || size == 4; }

}  // namespace

CUcontext CurrentContext(const Driver& driver) {
  CUcontext context = nullptr;
  driver.cuCtxGetCurrent(&context);
  return context;
}

cudaError_t ToDriverKernelNode(const cudaKernelNodeParams* from, CUDA_KERNEL_NODE_PARAMS* to) {
  return from == nullptr ? cudaErrorInvalidValue : FillKernel(*from, to);
}

cudaError_t FromDriverKernelNode(const Driver& driver, const CUDA_KERNEL_NODE_PARAMS& from, cudaKernelNodeParams* to) {
  const void* host = Runtime::Get().registry().HostOf([&](CUkernel kernel) {
    if (kernel == from.kern || reinterpret_cast<CUfunction>(kernel) == from.func) return true;
    CUfunction function = nullptr;
    return from.func != nullptr && driver.cuKernelGetFunction(&function, kernel) == CUDA_SUCCESS &&
           function == from.func;
  });
  // A kernel that was not registered but loaded by the program: its handle stands for it.
  to->func = host != nullptr ? const_cast<void*>(host)
                             : (from.kern != nullptr ? static_cast<void*>(from.kern) : static_cast<void*>(from.func));
  to->gridDim = dim3(from.gridDimX, from.gridDimY, from.gridDimZ);
  to->blockDim = dim3(from.blockDimX, from.blockDimY, from.blockDimZ);
  to->sharedMemBytes = from.sharedMemBytes;
  to->kernelParams = from.kernelParams;
  to->extra = from.extra;
  return cudaSuccess;
}

cudaError_t ToDriverMemsetNode(const cudaMemsetParams* from, CUDA_MEMSET_NODE_PARAMS* to) {
  if (from == nullptr || from->dst == nullptr || !IsElementSize(from->elementSize)) return cudaErrorInvalidValue;
  *to = {};
  to->dst = Address(from->dst);
  to->pitch = from->pitch;
  to->value = from->value;
  to->elementSize = from->elementSize;
  to->width = from->width;
  to->height = from->height;
  return cudaSuccess;
}

cudaError_t ToDriverNode(const Driver& driver, const cudaGraphNodeParams& from, CUgraphNodeParams* to) {
  std::memcpy(static_cast<void*>(to), &from, sizeof(*to));
  switch (from.type) {
    case cudaGraphNodeTypeKernel: {
      CUDA_KERNEL_NODE_PARAMS kernel;
      if (const cudaError_t error = FillKernel(from.kernel, &kernel); error != cudaSuccess) return error;
      static_assert(sizeof(kernel) == sizeof(to->kernel));
      std::memcpy(&to->kernel, &kernel, sizeof(kernel));
      return cudaSuccess;
    }
    case cudaGraphNodeTypeMemcpy: {
      CUDA_MEMCPY3D copy;
      if (const cudaError_t error = ToDriverCopy(driver, from.memcpy.copyParams, &copy); error != cudaSuccess) {
        return error;
      }
      to->memcpy = {};
      to->memcpy.flags = from.memcpy.flags;
      to->memcpy.copyCtx = CurrentContext(driver);
      to->memcpy.copyParams = copy;
      return cudaSuccess;
    }
    case cudaGraphNodeTypeMemset:
      if (from.memset.dst == nullptr || !IsElementSize(from.memset.elementSize)) return cudaErrorInvalidValue;
      to->memset.ctx = CurrentContext(driver);
      return cudaSuccess;
    case cudaGraphNodeTypeConditional:
      to->conditional.ctx = CurrentContext(driver);
      return cudaSuccess;
    case cudaGraphNodeTypeExtSemaphoreSignal:
    case cudaGraphNodeTypeExtSemaphoreWait:
      return NotSupported("external semaphores in graphs");
    default:
      return cudaSuccess;
  }
}

cudaError_t ToDriverSymbolCopy(const void* symbol, const void* source, size_t count, size_t offset, cudaMemcpyKind kind,
                               CUDA_MEMCPY3D* to) {
  if (kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyHostToHost) return cudaErrorInvalidMemcpyDirection;
  CUdeviceptr address = 0;
  size_t size = 0;
  if (const cudaError_t error = ResolveSymbol(symbol, &address, &size); error != cudaSuccess) return error;
  if (offset > size || count > size - offset) return cudaErrorInvalidValue;
  return ToDriverCopy(reinterpret_cast<void*>(address + offset), source, count, kind, to);
}

cudaError_t FromDriverSymbolCopy(void* destination, const void* symbol, size_t count, size_t offset,
                                 cudaMemcpyKind kind, CUDA_MEMCPY3D* to) {
  if (kind == cudaMemcpyHostToDevice || kind == cudaMemcpyHostToHost) return cudaErrorInvalidMemcpyDirection;
  CUdeviceptr address = 0;
  size_t size = 0;
  if (const cudaError_t error = ResolveSymbol(symbol, &address, &size); error != cudaSuccess) return error;
  if (offset > size || count > size - offset) return cudaErrorInvalidValue;
  return ToDriverCopy(destination, reinterpret_cast<const void*>(address + offset), count, kind, to);
}

}  // namespace hawser::cudart
