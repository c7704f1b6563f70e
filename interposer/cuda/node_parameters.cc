// SPDX-License-Identifier: Apache-2.0
#include "interposer/cuda/node_parameters.h"

#include "interposer/cuda/host_functions.h"
#include "interposer/cuda/host_mirror.h"
#include "interposer/cuda/module.h"
#include "interposer/cuda/stream_values.h"

namespace hawser::cu {
namespace {

/// The node's context; null means the current one.
CUresult ContextOf(CUcontext context, CUctx_st** result) {
  if (context == nullptr) return CurrentContext(result);
  *result = context;
  return CheckContext(context);
}

/// Rows of bytes that lie in one piece of memory which is there for as long as nobody frees it.
bool IsKnown(uint64_t address, uint64_t width, uint64_t height, uint64_t depth, uint64_t pitch, uint64_t slice_rows) {
  const auto range = Client::Get().pointers().Find(address);
  if (!range) return false;
  const bool whole = range->kind == PointerKind::kDevice || range->kind == PointerKind::kPool ||
                     range->kind == PointerKind::kGlobal || range->kind == PointerKind::kManaged;
  const uint64_t left = range->size - (address - range->begin);
  uint64_t rows = 0;
  uint64_t span = 0;
  return whole && width != 0 && height != 0 && depth != 0 && (pitch >= width || (height == 1 && depth == 1)) &&
         !__builtin_mul_overflow(depth - 1, slice_rows, &rows) && !__builtin_add_overflow(rows, height - 1, &rows) &&
         !__builtin_mul_overflow(rows, pitch, &span) && !__builtin_add_overflow(span, width, &span) && span <= left;
}

bool IsKnown(const RegionSide& side, const CUDA_MEMCPY3D& copy) {
  if (side.host) return true;  // Heap pages, or a stand-in that was made for it.
  const cuda::CopySide& wire = side.wire;
  if (wire.object || wire.height == 0) return false;
  uint64_t offset = 0;
  if (__builtin_mul_overflow(wire.z, wire.height, &offset) || __builtin_add_overflow(offset, wire.y, &offset) ||
      __builtin_mul_overflow(offset, wire.pitch, &offset) || __builtin_add_overflow(offset, wire.x_bytes, &offset) ||
      __builtin_add_overflow(offset, wire.address, &offset)) {
    return false;
  }
  return IsKnown(offset, copy.WidthInBytes, copy.Height, copy.Depth, wire.pitch, wire.height);
}

}  // namespace

CUresult KernelNode(const CUDA_KERNEL_NODE_PARAMS& from, NodeMessage* to) {
  CUctx_st* context = nullptr;
  if (const CUresult error = ContextOf(from.ctx, &context); error != CUDA_SUCCESS) return error;
  FunctionBase* function = nullptr;
  const void* handle = from.func != nullptr ? static_cast<const void*>(from.func) : static_cast<const void*>(from.kern);
  if (const CUresult error = CheckFunction(handle, &function); error != CUDA_SUCCESS) return error;
  cuda::NodeParameters& node = to->parameters;
  node.kind = CU_GRAPH_NODE_TYPE_KERNEL;
  node.context = context->id;
  node.function = function->id;
  node.grid = {from.gridDimX, from.gridDimY, from.gridDimZ};
  node.block = {from.blockDimX, from.blockDimY, from.blockDimZ};
  node.shared = from.sharedMemBytes;
  const Device& device = *Client::Get().device(context->device);
  if (const CUresult error = CheckLaunch(device, *function, node.grid, node.block, node.shared);
      error != CUDA_SUCCESS) {
    return error;
  }
  CUresult error = to->packed.Pack(*function, from.kernelParams, from.extra);
  if (error == CUDA_SUCCESS) error = TranslateHostAddresses(context, &to->packed);
  node.parameters = to->packed.bytes();
  to->kernel = from;
  to->function = function;
  to->sure = function->context == nullptr || function->context == context;
  return error;
}

CUresult CopyNode(const CUDA_MEMCPY3D& from, CUcontext handle, NodeMessage* to) {
  CUctx_st* context = nullptr;
  if (const CUresult error = ContextOf(handle, &context); error != CUDA_SUCCESS) return error;
  CUDA_MEMCPY3D copy = from;
  if (copy.WidthInBytes == 0 || copy.Height == 0 || copy.Depth == 0) return CUDA_ERROR_INVALID_VALUE;
  RegionSide destination;
  RegionSide source;
  if (const CUresult error = Destination(copy, &destination); error != CUDA_SUCCESS) return error;
  if (const CUresult error = Source(copy, &source); error != CUDA_SUCCESS) return error;
  // A node has one stand-in.
  if (destination.host && !destination.in_heap && source.host && !source.in_heap) return CUDA_ERROR_NOT_SUPPORTED;
  for (RegionSide* side : {&destination, &source}) {
    if (!side->host || side->in_heap) continue;
    const CUresult error = MakeHostCopy(context, side->memory, side == &destination, &to->host_copy);
    if (error != CUDA_SUCCESS) return error;
    side->wire = SideOf(*to->host_copy);
  }
  cuda::NodeParameters& node = to->parameters;
  to->copy = copy;
  node.kind = CU_GRAPH_NODE_TYPE_MEMCPY;
  node.context = context->id;
  node.destination = destination.wire;
  node.source = source.wire;
  node.width = copy.WidthInBytes;
  node.height = copy.Height;
  node.depth = copy.Depth;
  to->sure = copy.srcLOD == 0 && copy.dstLOD == 0 && IsKnown(destination, copy) && IsKnown(source, copy);
  return CUDA_SUCCESS;
}

CUresult MemsetNode(const CUDA_MEMSET_NODE_PARAMS& from, CUcontext handle, NodeMessage* to) {
  CUctx_st* context = nullptr;
  if (const CUresult error = ContextOf(handle, &context); error != CUDA_SUCCESS) return error;
  if (from.elementSize != 1 && from.elementSize != 2 && from.elementSize != 4) return CUDA_ERROR_INVALID_VALUE;
  if (from.dst == 0 || from.width == 0 || from.height == 0) return CUDA_ERROR_INVALID_VALUE;
  cuda::NodeParameters& node = to->parameters;
  node.kind = CU_GRAPH_NODE_TYPE_MEMSET;
  node.context = context->id;
  node.address = from.dst;
  node.pitch = from.pitch;
  node.element = from.elementSize;
  node.value = from.value;
  node.width = from.width;
  node.height = from.height;
  uint64_t bytes = 0;
  const bool aligned = from.dst % from.elementSize == 0 && (from.height == 1 || from.pitch % from.elementSize == 0);
  const bool fits = from.elementSize == 4 || from.value >> (8 * from.elementSize) == 0;
  to->sure = aligned && fits && !__builtin_mul_overflow(from.width, uint64_t{from.elementSize}, &bytes) &&
             IsKnown(from.dst, bytes, from.height, 1, from.pitch, from.height);
  return CUDA_SUCCESS;
}

CUresult BatchNode(const CUDA_BATCH_MEM_OP_NODE_PARAMS& from, NodeMessage* to) {
  CUctx_st* context = nullptr;
  if (const CUresult error = ContextOf(from.ctx, &context); error != CUDA_SUCCESS) return error;
  if (from.flags != 0) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult error = ToWire(from.paramArray, from.count, &to->values); error != CUDA_SUCCESS) return error;
  // Barriers and flushes alone are nothing that crosses the wire.
  if (to->values.empty()) return CUDA_ERROR_NOT_SUPPORTED;
  to->batch.assign(from.paramArray, from.paramArray + from.count);
  to->parameters.kind = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP;
  to->parameters.context = context->id;
  to->parameters.values = wire::ListView<cuda::StreamValue>(std::span<const cuda::StreamValue>(to->values));
  return CUDA_SUCCESS;
}

CUresult HostNode(const CUDA_HOST_NODE_PARAMS& from, NodeMessage* to) {
  if (from.fn == nullptr) return CUDA_ERROR_INVALID_VALUE;
  HostNode([function = from.fn, data = from.userData](CUresult) { function(data); }, HostFunctions::Calls::kOften, to);
  return CUDA_SUCCESS;
}

void HostNode(std::function<void(CUresult)> function, HostFunctions::Calls calls, NodeMessage* to) {
  to->parameters.kind = CU_GRAPH_NODE_TYPE_HOST;
  to->sure = true;
  to->parameters.callback = HostFunctions::Get().Add(std::move(function), {}, calls);
  to->host_function = std::make_shared<const GraphFunction>(to->parameters.callback);
}

}  // namespace hawser::cu
