// SPDX-License-Identifier: Apache-2.0
#include "softcuda/driver/node_params.h"

#include "softcuda/driver/copy_builder.h"
#include "softcuda/driver/entry.h"
#include "softcuda/driver/launch_builder.h"

namespace hawser::soft {
namespace {

bool IsGoodOperation(const CUstreamBatchMemOpParams& op) {
  const MemoryMap& memory = GetDriver()->memory;
  switch (op.operation) {
    case CU_STREAM_MEM_OP_WAIT_VALUE_32:
      return op.waitValue.address % 4 == 0 && memory.Covers(op.waitValue.address, 4);
    case CU_STREAM_MEM_OP_WRITE_VALUE_32:
      return op.waitValue.address % 4 == 0 && memory.CoversForWriting(op.waitValue.address, 4);
    case CU_STREAM_MEM_OP_WAIT_VALUE_64:
      return op.waitValue.address % 8 == 0 && memory.Covers(op.waitValue.address, 8);
    case CU_STREAM_MEM_OP_WRITE_VALUE_64:
      return op.waitValue.address % 8 == 0 && memory.CoversForWriting(op.waitValue.address, 8);
    case CU_STREAM_MEM_OP_BARRIER:
    case CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES:
      return true;
    default:
      return false;
  }
}

}  // namespace

CUresult ToWork(const CUDA_KERNEL_NODE_PARAMS& params, Work* work) {
  KernelWork kernel;
  HAWSER_TRY(BuildLaunch(params, false, {}, &kernel));
  *work = std::move(kernel);
  return CUDA_SUCCESS;
}

CUresult ToWork(const CUDA_MEMCPY3D& params, Work* work) {
  CopyWork copy;
  HAWSER_TRY(BuildCopy(params, &copy));
  copy.pageable_source = copy.pageable_target = false;  // Read and written when the node runs.
  *work = std::move(copy);
  return CUDA_SUCCESS;
}

CUresult ToWork(const CUDA_MEMSET_NODE_PARAMS& params, Work* work) {
  MemsetWork set;
  HAWSER_TRY(BuildMemset(params, &set));
  *work = set;
  return CUDA_SUCCESS;
}

CUresult ToWork(const CUDA_HOST_NODE_PARAMS& params, Work* work) {
  if (params.fn == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *work = HostWork{params.fn, params.userData};
  return CUDA_SUCCESS;
}

CUresult ToWork(const CUDA_BATCH_MEM_OP_NODE_PARAMS& params, Work* work) {
  if (params.paramArray == nullptr || params.count == 0 || params.count > 256) return CUDA_ERROR_INVALID_VALUE;
  MemoryOperationsWork operations;
  operations.operations.assign(params.paramArray, params.paramArray + params.count);
  for (const CUstreamBatchMemOpParams& op : operations.operations) {
    if (!IsGoodOperation(op)) return CUDA_ERROR_INVALID_VALUE;
  }
  *work = std::move(operations);
  return CUDA_SUCCESS;
}

CUresult EventWork(CUevent handle, bool record, Work* work) {
  EventPtr event = GetDriver()->events.Find(handle);
  if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (record) {
    *work = EventRecordWork{std::move(event)};
  } else {
    *work = EventWaitWork{std::move(event)};
  }
  return CUDA_SUCCESS;
}

CUresult ChildGraphWork(CUgraph handle, Work* work) {
  const GraphPtr graph = GetDriver()->graphs.Find(handle);
  if (graph == nullptr || graph->HasConditionals()) return CUDA_ERROR_INVALID_VALUE;
  GraphPtr copy = graph->Clone();
  if (copy == nullptr) return CUDA_ERROR_INVALID_VALUE;
  copy->is_child = true;
  GetDriver()->graphs.Add(copy);  // cuGraphChildGraphNodeGetGraph names it.
  *work = ChildWork{std::move(copy)};
  return CUDA_SUCCESS;
}

CUresult AllocationWork(CUDA_MEM_ALLOC_NODE_PARAMS* params, Work* work) {
  Device* device = nullptr;
  if (params->bytesize == 0 || params->poolProps.location.type != CU_MEM_LOCATION_TYPE_DEVICE) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  HAWSER_TRY(GetDevice(params->poolProps.location.id, &device));
  ContextPtr context;
  HAWSER_TRY(WorkingContext(&context));
  AllocWork made;
  HAWSER_TRY(GetDriver()->Allocate(device, params->bytesize, 0, MemoryKind::kPool, context->handle, &made.allocation));
  made.allocation->graph = true;
  params->dptr = made.allocation->begin;
  made.params = *params;
  made.params.accessDescs = nullptr;
  made.params.accessDescCount = 0;
  *work = std::move(made);
  return CUDA_SUCCESS;
}

CUresult ReleaseWork(CUdeviceptr address, Work* work) {
  const AllocationPtr allocation = GetDriver()->memory.Find(address);
  if (allocation == nullptr || allocation->begin != address || allocation->kind != MemoryKind::kPool) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  *work = FreeWork{address};
  return CUDA_SUCCESS;
}

CUresult ToWork(CUgraphNodeParams* params, Work* work) {
  switch (params->type) {
    case CU_GRAPH_NODE_TYPE_EMPTY:
      *work = EmptyWork{};
      return CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_KERNEL: {
      CUDA_KERNEL_NODE_PARAMS plain{};
      const CUDA_KERNEL_NODE_PARAMS_v3& from = params->kernel;
      plain.func = from.func;
      plain.kern = from.kern;
      plain.gridDimX = from.gridDimX;
      plain.gridDimY = from.gridDimY;
      plain.gridDimZ = from.gridDimZ;
      plain.blockDimX = from.blockDimX;
      plain.blockDimY = from.blockDimY;
      plain.blockDimZ = from.blockDimZ;
      plain.sharedMemBytes = from.sharedMemBytes;
      plain.kernelParams = from.kernelParams;
      plain.extra = from.extra;
      return ToWork(plain, work);
    }
    case CU_GRAPH_NODE_TYPE_MEMCPY:
      return ToWork(params->memcpy.copyParams, work);
    case CU_GRAPH_NODE_TYPE_MEMSET: {
      const CUDA_MEMSET_NODE_PARAMS_v2& from = params->memset;
      return ToWork(
          CUDA_MEMSET_NODE_PARAMS{from.dst, from.pitch, from.value, from.elementSize, from.width, from.height}, work);
    }
    case CU_GRAPH_NODE_TYPE_HOST:
      return ToWork(CUDA_HOST_NODE_PARAMS{params->host.fn, params->host.userData}, work);
    case CU_GRAPH_NODE_TYPE_GRAPH:
      return ChildGraphWork(params->graph.graph, work);
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
      return EventWork(params->eventRecord.event, true, work);
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
      return EventWork(params->eventWait.event, false, work);
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC: {
      CUDA_MEM_ALLOC_NODE_PARAMS_v2& from = params->alloc;
      CUDA_MEM_ALLOC_NODE_PARAMS plain{};
      plain.poolProps = from.poolProps;
      plain.bytesize = from.bytesize;
      const CUresult result = AllocationWork(&plain, work);
      from.dptr = plain.dptr;
      return result;
    }
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
      return ReleaseWork(params->free.dptr, work);
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP: {
      const CUDA_BATCH_MEM_OP_NODE_PARAMS_v2& from = params->memOp;
      return ToWork(CUDA_BATCH_MEM_OP_NODE_PARAMS{from.ctx, from.count, from.paramArray, from.flags}, work);
    }
    default:
      return CUDA_ERROR_NOT_SUPPORTED;
  }
}

CUDA_KERNEL_NODE_PARAMS KernelParams(Node* node) {
  auto& work = std::get<KernelWork>(node->work);
  CUDA_KERNEL_NODE_PARAMS params{};
  // The kind of handle that was given is given back.
  if (GetDriver()->kernels.Find(work.handle) != nullptr) {
    params.kern = reinterpret_cast<CUkernel>(work.handle);
  } else {
    params.func = reinterpret_cast<CUfunction>(work.handle);
  }
  params.gridDimX = work.grid[0];
  params.gridDimY = work.grid[1];
  params.gridDimZ = work.grid[2];
  params.blockDimX = work.block[0];
  params.blockDimY = work.block[1];
  params.blockDimZ = work.block[2];
  params.sharedMemBytes = work.shared_bytes;
  node->pointers.clear();
  for (const exec::KernelParameter& parameter : work.function->info().parameters) {
    node->pointers.push_back(work.parameters.data() + parameter.offset);
  }
  params.kernelParams = node->pointers.data();
  return params;
}

CUDA_KERNEL_NODE_PARAMS Newer(const CUDA_KERNEL_NODE_PARAMS_v1& params) {
  CUDA_KERNEL_NODE_PARAMS newer{};
  newer.func = params.func;
  newer.gridDimX = params.gridDimX;
  newer.gridDimY = params.gridDimY;
  newer.gridDimZ = params.gridDimZ;
  newer.blockDimX = params.blockDimX;
  newer.blockDimY = params.blockDimY;
  newer.blockDimZ = params.blockDimZ;
  newer.sharedMemBytes = params.sharedMemBytes;
  newer.kernelParams = params.kernelParams;
  newer.extra = params.extra;
  return newer;
}

CUDA_KERNEL_NODE_PARAMS_v1 Older(const CUDA_KERNEL_NODE_PARAMS& params) {
  CUDA_KERNEL_NODE_PARAMS_v1 older{};
  older.func = params.func != nullptr ? params.func : reinterpret_cast<CUfunction>(params.kern);
  older.gridDimX = params.gridDimX;
  older.gridDimY = params.gridDimY;
  older.gridDimZ = params.gridDimZ;
  older.blockDimX = params.blockDimX;
  older.blockDimY = params.blockDimY;
  older.blockDimZ = params.blockDimZ;
  older.sharedMemBytes = params.sharedMemBytes;
  older.kernelParams = params.kernelParams;
  older.extra = params.extra;
  return older;
}

}  // namespace hawser::soft
