// SPDX-License-Identifier: Apache-2.0
// Graphs: nodes one by one. What a stream records is in captures.cc, what is changed afterwards in graph_changes.cc,
// what becomes of whole graphs in executable_graphs.cc.
#include <algorithm>
#include <cstring>
#include <map>

#include "server/backends/cuda/backend.h"
#include "server/backends/cuda/graph_nodes.h"

namespace hawser::server::cuda_backend {
namespace {

constexpr size_t kMaxNodes = 1u << 20;

}  // namespace

// --- lookups

int32_t CudaBackend::UseNodes(const wire::ArrayView<wire::Id>& ids, std::vector<CUgraphNode>* nodes) {
  nodes->reserve(ids.size());
  for (uint32_t i = 0; i < ids.size(); ++i) {
    int32_t status = 0;
    const Node* node = Use<Node>(ids[i], &status);
    if (node == nullptr) return status;
    nodes->push_back(node->native);
  }
  return 0;
}

wire::Id CudaBackend::NameNode(wire::Id graph, CUgraphNode node, const wire::ArrayView<wire::Id>& names, size_t* used) {
  Graph* object = objects_->Table<Graph>().Find(graph);
  if (object == nullptr) return {};
  if (const auto at = object->names.find(node); at != object->names.end()) return at->second;
  if (*used >= names.size()) return {};
  const wire::Id name = names[(*used)++];
  Node named;
  named.native = node;
  named.graph = graph;
  if (Keep(name, named) != 0) return {};
  object->names[node] = name;
  return name;
}

// --- graphs and nodes
//
// A name for which the guest has heard that nothing became of it is free again: it is not kept as an error.

int32_t CudaBackend::CreateGraph(const cuda::Call& call, const cuda::CreateGraph& message) {
  if (driver_.cuGraphCreate == nullptr) return Fail(call, kNotSupported, message.graph);
  Graph graph;
  const CUresult result = driver_.cuGraphCreate(&graph.native, message.flags);
  if (result != CUDA_SUCCESS) return Fail(call, result, message.graph);
  graph.owned = OwnedGraph(&driver_, graph.native);
  const int32_t status = Keep(message.graph, std::move(graph));
  return status == 0 ? 0 : Fail(call, status);
}

int32_t CudaBackend::CloneGraph(const cuda::Call& call, const cuda::CloneGraph& message) {
  int32_t status = 0;
  const Graph* graph = Use<Graph>(message.graph, &status);
  if (graph == nullptr) return ReplyStatus(call, status);
  if (driver_.cuGraphClone == nullptr) return ReplyStatus(call, kNotSupported);
  if (graph->lacks != 0) return ReplyStatus(call, graph->lacks);
  Graph clone;
  const CUresult result = driver_.cuGraphClone(&clone.native, graph->native);
  if (result != CUDA_SUCCESS) return ReplyStatus(call, result);
  clone.owned = OwnedGraph(&driver_, clone.native);
  return ReplyStatus(call, Keep(message.clone, std::move(clone)));
}

int32_t CudaBackend::FillKernel(const cuda::NodeParameters& from, KernelParameters* to) {
  int32_t status = 0;
  const Function* function = Use<Function>(from.function, &status);
  if (function == nullptr) return status;
  if (from.parameters.size() < function->parameter_bytes) {
    return Explain(CUDA_ERROR_INVALID_VALUE, "the kernel has more parameters than came");
  }
  CUDA_KERNEL_NODE_PARAMS& native = to->native;
  if (function->is_kernel) {
    native.kern = reinterpret_cast<CUkernel>(function->native);
    native.ctx = current_;
  } else {
    native.func = function->native;
  }
  native.gridDimX = from.grid[0];
  native.gridDimY = from.grid[1];
  native.gridDimZ = from.grid[2];
  native.blockDimX = from.block[0];
  native.blockDimY = from.block[1];
  native.blockDimZ = from.block[2];
  native.sharedMemBytes = from.shared;
  to->size = from.parameters.size();
  if (!function->facts->offsets.empty()) {
    // The driver takes `extra` for nodes that are not cooperative alone, and they may become that later.
    to->pointers.reserve(function->facts->offsets.size());
    for (const uint32_t offset : function->facts->offsets) {
      // NOLINTNEXTLINE(cppcoreguidelines-pro-type-const-cast)
      to->pointers.push_back(const_cast<std::byte*>(from.parameters.data()) + offset);
    }
    native.kernelParams = to->pointers.data();
  } else if (to->size != 0) {
    to->extra[0] = CU_LAUNCH_PARAM_BUFFER_POINTER;
    to->extra[1] = const_cast<std::byte*>(from.parameters.data());  // NOLINT(cppcoreguidelines-pro-type-const-cast)
    to->extra[2] = CU_LAUNCH_PARAM_BUFFER_SIZE;
    to->extra[3] = &to->size;
    to->extra[4] = CU_LAUNCH_PARAM_END;
    native.extra = to->extra;
  }
  return 0;
}

int32_t CudaBackend::FillCopy(const cuda::NodeParameters& from, CUDA_MEMCPY3D* to, CUcontext* context) {
  int32_t status = 0;
  const Context* object = Enter(from.context, &status);
  if (object == nullptr) return status;
  *context = object->native;
  if (!DescribeSide(from.destination, from.width, from.height, from.depth, true, to, &status) ||
      !DescribeSide(from.source, from.width, from.height, from.depth, false, to, &status)) {
    return status;
  }
  to->WidthInBytes = from.width;
  to->Height = from.height;
  to->Depth = from.depth;
  return 0;
}

int32_t CudaBackend::FillMemset(const cuda::NodeParameters& from, CUDA_MEMSET_NODE_PARAMS* to, CUcontext* context) {
  int32_t status = 0;
  const Context* object = Enter(from.context, &status);
  if (object == nullptr) return status;
  *context = object->native;
  uint64_t bytes = 0;
  if (__builtin_mul_overflow(from.width, uint64_t{from.element}, &bytes) ||
      !memory_.HoldsRegion(from.address, bytes, from.height, from.pitch, 1, 0)) {
    return Explain(CUDA_ERROR_INVALID_VALUE, "the memory is not the session's");
  }
  to->dst = from.address;
  to->pitch = from.pitch;
  to->value = from.value;
  to->elementSize = from.element;
  to->width = from.width;
  to->height = from.height;
  return 0;
}

CudaBackend::HostCall* CudaBackend::NewHostCall(uint64_t callback) {
  host_calls_.push_back(std::make_unique<HostCall>(HostCall{this, current_, callback}));
  return host_calls_.back().get();
}

int32_t CudaBackend::AddNativeNode(const cuda::NodeParameters& from, CUgraph graph,
                                   const std::vector<CUgraphNode>& dependencies, CUgraphNode* node) {
  const CUgraphNode* before = dependencies.data();
  const size_t count = dependencies.size();
  int32_t status = 0;
  CUcontext context = nullptr;
  if (from.context && Enter(from.context, &status) == nullptr) return status;
  switch (static_cast<NodeKind>(from.kind)) {
    case NodeKind::kKernel: {
      KernelParameters kernel;
      if (driver_.cuGraphAddKernelNode == nullptr) return kNotSupported;
      if (status = FillKernel(from, &kernel); status != 0) return status;
      status = driver_.cuGraphAddKernelNode(node, graph, before, count, &kernel.native);
      if (status != 0) return status;
      from.attributes.ForEach([&](const cuda::LaunchAttribute& attribute) {
        if (status == 0) status = SetNativeAttribute(*node, attribute);
      });
      return status;
    }
    case NodeKind::kCopy: {
      CUDA_MEMCPY3D copy{};
      if (driver_.cuGraphAddMemcpyNode == nullptr) return kNotSupported;
      if (status = FillCopy(from, &copy, &context); status != 0) return status;
      return driver_.cuGraphAddMemcpyNode(node, graph, before, count, &copy, context);
    }
    case NodeKind::kMemset: {
      CUDA_MEMSET_NODE_PARAMS memset{};
      if (driver_.cuGraphAddMemsetNode == nullptr) return kNotSupported;
      if (status = FillMemset(from, &memset, &context); status != 0) return status;
      return driver_.cuGraphAddMemsetNode(node, graph, before, count, &memset, context);
    }
    case NodeKind::kHost: {
      CUDA_HOST_NODE_PARAMS host{};
      if (driver_.cuGraphAddHostNode == nullptr) return kNotSupported;
      host.fn = RunHostCall;
      host.userData = NewHostCall(from.callback);
      return driver_.cuGraphAddHostNode(node, graph, before, count, &host);
    }
    case NodeKind::kGraph: {
      const Graph* child = Use<Graph>(from.graph, &status);
      if (child == nullptr) return status;
      if (child->lacks != 0) return child->lacks;
      if (driver_.cuGraphAddChildGraphNode == nullptr) return kNotSupported;
      return driver_.cuGraphAddChildGraphNode(node, graph, before, count, child->native);
    }
    case NodeKind::kEmpty:
      if (driver_.cuGraphAddEmptyNode == nullptr) return kNotSupported;
      return driver_.cuGraphAddEmptyNode(node, graph, before, count);
    case NodeKind::kWait:
    case NodeKind::kRecord: {
      Event* event = Use<Event>(from.event, &status);
      if (event == nullptr) return status;
      event->fixed = true;
      const auto add = static_cast<NodeKind>(from.kind) == NodeKind::kWait ? driver_.cuGraphAddEventWaitNode
                                                                           : driver_.cuGraphAddEventRecordNode;
      return add == nullptr ? kNotSupported : add(node, graph, before, count, event->native());
    }
    case NodeKind::kFree:
      if (driver_.cuGraphAddMemFreeNode == nullptr) return kNotSupported;
      if (memory_.At(from.address) == nullptr) return CUDA_ERROR_INVALID_VALUE;
      return driver_.cuGraphAddMemFreeNode(node, graph, before, count, from.address);
    case NodeKind::kBatch: {
      std::vector<CUstreamBatchMemOpParams> operations;
      CUDA_BATCH_MEM_OP_NODE_PARAMS batch{};
      if (driver_.cuGraphAddBatchMemOpNode == nullptr) return kNotSupported;
      if (status = FillBatch(from, &operations, &batch); status != 0) return status;
      return driver_.cuGraphAddBatchMemOpNode(node, graph, before, count, &batch);
    }
    case NodeKind::kAllocation:
      break;  // Has a message of its own.
  }
  return CUDA_ERROR_INVALID_VALUE;
}

template <typename Message>
int32_t CudaBackend::MakeNode(const Message& message) {
  int32_t status = 0;
  const Graph* graph = Use<Graph>(message.graph, &status);
  std::vector<CUgraphNode> dependencies;
  if (graph == nullptr) return status;
  if (status = UseNodes(message.dependencies, &dependencies); status != 0) return status;
  Node node;
  node.graph = message.graph;
  status = AddNativeNode(message.parameters, graph->native, dependencies, &node.native);
  if (status != 0) return status;
  const CUgraphNode native = node.native;
  if (status = Keep(message.node, node); status != 0) return status;
  objects_->Table<Graph>().Find(message.graph)->names[native] = message.node;
  return 0;
}

int32_t CudaBackend::AddNode(const cuda::Call& call, const cuda::AddNode& message) {
  const int32_t status = MakeNode(message);
  reason_.clear();
  return ReplyStatus(call, status);
}

int32_t CudaBackend::PlaceNode(const cuda::Call& call, const cuda::PlaceNode& message) {
  const int32_t status = MakeNode(message);
  if (status == 0) return 0;
  if (Graph* graph = objects_->Table<Graph>().Find(message.graph); graph != nullptr) graph->lacks = status;
  return Fail(call, status, message.node, message.parameters.context);
}

int32_t CudaBackend::AddAllocationNode(const cuda::Call& call, const cuda::AddAllocationNode& message) {
  cuda::Address reply;
  std::vector<CUgraphNode> dependencies;
  const Graph* graph = Use<Graph>(message.graph, &reply.status);
  if (graph != nullptr) reply.status = UseNodes(message.dependencies, &dependencies);
  if (reply.status == 0 && message.device >= devices_.size()) reply.status = CUDA_ERROR_INVALID_DEVICE;
  if (reply.status == 0 && driver_.cuGraphAddMemAllocNode == nullptr) reply.status = kNotSupported;
  if (reply.status == 0 && !ledger_->Reserve(message.size)) reply.status = CUDA_ERROR_OUT_OF_MEMORY;
  if (reply.status == 0) {
    CUDA_MEM_ALLOC_NODE_PARAMS parameters{};
    parameters.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    parameters.poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    parameters.poolProps.location.id = devices_[message.device];
    parameters.bytesize = message.size;
    Node node;
    node.graph = message.graph;
    reply.status = driver_.cuGraphAddMemAllocNode(&node.native, graph->native, dependencies.data(), dependencies.size(),
                                                  &parameters);
    if (reply.status != 0) {
      ledger_->Cancel(message.size);
    } else {
      ledger_->Commit(message.size);
      reply.address = parameters.dptr;
      MemoryRange range;
      range.address = parameters.dptr;
      range.size = message.size;
      range.kind = MemoryKind::kGraph;
      range.charge = message.size;
      (void)memory_.Add(range);
      const CUgraphNode native = node.native;
      reply.status = Keep(message.node, node);
      if (reply.status == 0) objects_->Table<Graph>().Find(message.graph)->names[native] = message.node;
    }
  }
  reason_.clear();
  Reply(call, reply);
  return 0;
}

int32_t CudaBackend::SetDependencies(const cuda::Call& call, const cuda::SetDependencies& message) {
  int32_t status = 0;
  const Graph* graph = Use<Graph>(message.graph, &status);
  std::vector<CUgraphNode> from, to;
  if (graph != nullptr) status = UseNodes(message.from, &from);
  if (status == 0) status = UseNodes(message.to, &to);
  reason_.clear();
  if (status != 0) return ReplyStatus(call, status);
  if (from.size() != to.size()) return ReplyStatus(call, CUDA_ERROR_INVALID_VALUE);
  const auto set = message.add != 0 ? driver_.cuGraphAddDependencies : driver_.cuGraphRemoveDependencies;
  if (set == nullptr) return ReplyStatus(call, kNotSupported);
  return ReplyStatus(call, set(graph->native, from.data(), to.data(), nullptr, from.size()));
}

int32_t CudaBackend::GetNodes(const cuda::Call& call, const cuda::GetNodes& message) {
  enum : uint32_t { kAll = 0, kRoots = 1, kEdges = 2, kDependencies = 3, kDependents = 4 };
  cuda::Nodes reply;
  std::vector<wire::Id> names, to_names;
  std::vector<CUgraphNode> nodes, to;
  wire::Id graph_id = message.graph;
  const Node* node = nullptr;
  if (message.list >= kDependencies) {
    node = Use<Node>(message.node, &reply.status);
    if (node != nullptr) graph_id = node->graph;
  }
  const Graph* graph = reply.status == 0 ? Use<Graph>(graph_id, &reply.status) : nullptr;
  // Asked twice: how many, and which.
  const auto list = [&](bool count_only, size_t* count) -> CUresult {
    CUgraphNode* into = count_only ? nullptr : nodes.data();
    switch (message.list) {
      case kAll:
        return driver_.cuGraphGetNodes == nullptr ? CUDA_ERROR_NOT_SUPPORTED
                                                  : driver_.cuGraphGetNodes(graph->native, into, count);
      case kRoots:
        return driver_.cuGraphGetRootNodes == nullptr ? CUDA_ERROR_NOT_SUPPORTED
                                                      : driver_.cuGraphGetRootNodes(graph->native, into, count);
      case kEdges:
        return driver_.cuGraphGetEdges == nullptr
                   ? CUDA_ERROR_NOT_SUPPORTED
                   : driver_.cuGraphGetEdges(graph->native, into, count_only ? nullptr : to.data(), nullptr, count);
      case kDependencies:
        return driver_.cuGraphNodeGetDependencies == nullptr
                   ? CUDA_ERROR_NOT_SUPPORTED
                   : driver_.cuGraphNodeGetDependencies(node->native, into, nullptr, count);
      default:
        return driver_.cuGraphNodeGetDependentNodes == nullptr
                   ? CUDA_ERROR_NOT_SUPPORTED
                   : driver_.cuGraphNodeGetDependentNodes(node->native, into, nullptr, count);
    }
  };
  size_t count = 0;
  if (reply.status == 0) reply.status = list(true, &count);
  if (reply.status == 0 && count > kMaxNodes) reply.status = CUDA_ERROR_OUT_OF_MEMORY;
  if (reply.status == 0 && count != 0) {
    nodes.resize(count);
    to.resize(count);
    reply.status = list(false, &count);
  }
  if (reply.status == 0) {
    reply.total = static_cast<uint32_t>(count);
    size_t used = 0;
    for (size_t i = 0; i < count; ++i) {
      const wire::Id name = NameNode(graph_id, nodes[i], message.names, &used);
      const wire::Id to_name = message.list == kEdges ? NameNode(graph_id, to[i], message.names, &used) : name;
      if (!name || !to_name) break;
      names.push_back(name);
      if (message.list == kEdges) to_names.push_back(to_name);
    }
  }
  reply.nodes = wire::ArrayView<wire::Id>(names.data(), names.size());
  reply.to = wire::ArrayView<wire::Id>(to_names.data(), to_names.size());
  reason_.clear();
  Reply(call, reply);
  return 0;
}

int32_t CudaBackend::DescribeNode(const cuda::Call& call, const cuda::DescribeNode& message) {
  cuda::NodeReply reply;
  const Node* node = Use<Node>(message.node, &reply.status);
  if (node != nullptr && driver_.cuGraphNodeGetType == nullptr) reply.status = kNotSupported;
  CUgraphNodeType type{};
  if (reply.status == 0) reply.status = driver_.cuGraphNodeGetType(node->native, &type);
  std::vector<cuda::StreamValue> values;  // To which the reply points.
  cuda::NodeParameters& to = reply.parameters;
  if (reply.status == 0) {
    to.kind = static_cast<uint32_t>(type);
    switch (type) {
      case CU_GRAPH_NODE_TYPE_KERNEL: {
        CUDA_KERNEL_NODE_PARAMS native{};
        if (driver_.cuGraphKernelNodeGetParams == nullptr) break;
        reply.status = driver_.cuGraphKernelNodeGetParams(node->native, &native);
        to.grid = {native.gridDimX, native.gridDimY, native.gridDimZ};
        to.block = {native.blockDimX, native.blockDimY, native.blockDimZ};
        to.shared = native.sharedMemBytes;
        objects_->Table<Function>().ForEach([&](wire::Id id, Function& function) {
          if (function.error != 0) return;
          CUfunction of_library = nullptr;  // What the driver made of a library's kernel in this context.
          if (function.is_kernel && driver_.cuKernelGetFunction != nullptr) {
            (void)driver_.cuKernelGetFunction(&of_library, reinterpret_cast<CUkernel>(function.native));
          }
          if (function.native == native.func || reinterpret_cast<CUfunction>(native.kern) == function.native ||
              (of_library != nullptr && of_library == native.func)) {
            to.function = id;
          }
        });
        break;
      }
      case CU_GRAPH_NODE_TYPE_MEMSET: {
        CUDA_MEMSET_NODE_PARAMS native{};
        if (driver_.cuGraphMemsetNodeGetParams == nullptr) break;
        reply.status = driver_.cuGraphMemsetNodeGetParams(node->native, &native);
        to.address = native.dst;
        to.pitch = native.pitch;
        to.value = native.value;
        to.element = native.elementSize;
        to.width = native.width;
        to.height = native.height;
        break;
      }
      case CU_GRAPH_NODE_TYPE_GRAPH: {
        Graph child;
        child.inner = true;
        if (!message.child || driver_.cuGraphChildGraphNodeGetGraph == nullptr) break;
        reply.status = driver_.cuGraphChildGraphNodeGetGraph(node->native, &child.native);
        if (reply.status == 0) reply.status = Keep(message.child, std::move(child));
        if (reply.status == 0) {
          to.graph = message.child;
          Node* const parent = objects_->Table<Node>().Find(message.node);
          EndInnerGraphs(*parent);  // Names that it had before.
          parent->inner = {message.child};
        }
        break;
      }
      case CU_GRAPH_NODE_TYPE_MEM_ALLOC: {
        CUDA_MEM_ALLOC_NODE_PARAMS native{};
        if (driver_.cuGraphMemAllocNodeGetParams == nullptr) break;
        reply.status = driver_.cuGraphMemAllocNodeGetParams(node->native, &native);
        to.address = native.dptr;
        to.size = native.bytesize;
        const auto device = std::find(devices_.begin(), devices_.end(), native.poolProps.location.id);
        if (device != devices_.end()) to.device = static_cast<uint32_t>(device - devices_.begin());
        break;
      }
      case CU_GRAPH_NODE_TYPE_MEM_FREE: {
        CUdeviceptr address = 0;
        if (driver_.cuGraphMemFreeNodeGetParams == nullptr) break;
        reply.status = driver_.cuGraphMemFreeNodeGetParams(node->native, &address);
        to.address = address;
        break;
      }
      case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
        reply.status = DescribeBatch(node->native, &values);
        to.values = wire::ListView<cuda::StreamValue>(std::span<const cuda::StreamValue>(values));
        break;
      default:
        break;
    }
  }
  reason_.clear();
  Reply(call, reply);
  return 0;
}

int32_t CudaBackend::FindNodeInClone(const cuda::Call& call, const cuda::FindNodeInClone& message) {
  int32_t status = 0;
  const Node* original = Use<Node>(message.original, &status);
  const Graph* clone = original != nullptr ? Use<Graph>(message.clone, &status) : nullptr;
  reason_.clear();
  if (clone == nullptr) return ReplyStatus(call, status);
  if (driver_.cuGraphNodeFindInClone == nullptr) return ReplyStatus(call, kNotSupported);
  Node node;
  node.graph = message.clone;
  const CUresult result = driver_.cuGraphNodeFindInClone(&node.native, original->native, clone->native);
  if (result != CUDA_SUCCESS) return ReplyStatus(call, result);
  const CUgraphNode native = node.native;
  status = Keep(message.node, node);
  if (status == 0) objects_->Table<Graph>().Find(message.clone)->names[native] = message.node;
  return ReplyStatus(call, status);
}

}  // namespace hawser::server::cuda_backend
