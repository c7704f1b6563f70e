// SPDX-License-Identifier: Apache-2.0
// What is changed of graphs' nodes after they were made.
#include "server/backends/cuda/backend.h"
#include "server/backends/cuda/graph_host_memory.h"
#include "server/backends/cuda/graph_nodes.h"

namespace hawser::server::cuda_backend {
namespace {

/// CopySide::kind of staging memory.
constexpr uint32_t kStagingSide = 3;

/// What GraphHostMemory::NameIn() will say of a node with these parameters.
uint64_t NameOf(const cuda::NodeParameters& from) {
  if (static_cast<NodeKind>(from.kind) == NodeKind::kHost) return from.callback;
  if (from.source.kind == kStagingSide) return from.source.object.raw();
  return from.destination.kind == kStagingSide ? from.destination.object.raw() : 0;
}

}  // namespace

uint64_t CudaBackend::NameIn(wire::Id id, const Node& node, const GraphExec* exec) {
  const bool known = exec != nullptr && exec->names.contains(id.raw());
  return known ? exec->names.at(id.raw()) : HostMemoryOfGraphs().NameIn(node.native);
}

int32_t CudaBackend::EnableNode(const cuda::Call& call, const cuda::EnableNode& message) {
  cuda::SetNodeResult reply;
  const GraphExec* exec = Use<GraphExec>(message.exec, &reply.status);
  const Node* node = exec != nullptr ? Use<Node>(message.node, &reply.status) : nullptr;
  reason_.clear();
  if (node != nullptr && driver_.cuGraphNodeSetEnabled == nullptr) reply.status = kNotSupported;
  if (reply.status == 0) {
    reply.status = driver_.cuGraphNodeSetEnabled(exec->owned.get(), node->native, message.enabled);
    reply.before = NameIn(message.node, *node, exec);
  }
  Reply(call, reply);
  return 0;
}

int32_t CudaBackend::SetNode(const cuda::Call& call, const cuda::SetNode& message) {
  int32_t status = 0;
  cuda::SetNodeResult reply;
  GraphExec* changed = nullptr;
  const cuda::NodeParameters& from = message.parameters;
  const auto answer = [&](int32_t result) {
    reason_.clear();
    reply.status = result;
    if (result == 0 && changed != nullptr) changed->names[message.node.raw()] = NameOf(from);
    Reply(call, reply);
    return 0;
  };
  const Node* node = Use<Node>(message.node, &status);
  if (node == nullptr) return answer(status);
  CUgraphExec exec = nullptr;
  if (message.exec) {
    changed = Use<GraphExec>(message.exec, &status);
    if (changed == nullptr) return answer(status);
    exec = changed->owned.get();
  }
  const auto kind = static_cast<NodeKind>(from.kind);
  if (kind == NodeKind::kCopy || kind == NodeKind::kHost) reply.before = NameIn(message.node, *node, changed);
  if (from.context && Enter(from.context, &status) == nullptr) return answer(status);
  CUcontext context = nullptr;
  const auto call_one = [&](auto in_exec, auto in_graph) {
    return exec != nullptr ? (in_exec == nullptr ? kNotSupported : -1) : (in_graph == nullptr ? kNotSupported : -1);
  };
  switch (kind) {
    case NodeKind::kKernel: {
      KernelParameters kernel;
      if (call_one(driver_.cuGraphExecKernelNodeSetParams, driver_.cuGraphKernelNodeSetParams) != -1) break;
      if (status = FillKernel(from, &kernel); status != 0) return answer(status);
      return answer(exec != nullptr ? driver_.cuGraphExecKernelNodeSetParams(exec, node->native, &kernel.native)
                                    : driver_.cuGraphKernelNodeSetParams(node->native, &kernel.native));
    }
    case NodeKind::kCopy: {
      CUDA_MEMCPY3D copy{};
      if (call_one(driver_.cuGraphExecMemcpyNodeSetParams, driver_.cuGraphMemcpyNodeSetParams) != -1) break;
      if (status = FillCopy(from, &copy, &context); status != 0) return answer(status);
      return answer(exec != nullptr ? driver_.cuGraphExecMemcpyNodeSetParams(exec, node->native, &copy, context)
                                    : driver_.cuGraphMemcpyNodeSetParams(node->native, &copy));
    }
    case NodeKind::kMemset: {
      CUDA_MEMSET_NODE_PARAMS memset{};
      if (call_one(driver_.cuGraphExecMemsetNodeSetParams, driver_.cuGraphMemsetNodeSetParams) != -1) break;
      if (status = FillMemset(from, &memset, &context); status != 0) return answer(status);
      return answer(exec != nullptr ? driver_.cuGraphExecMemsetNodeSetParams(exec, node->native, &memset, context)
                                    : driver_.cuGraphMemsetNodeSetParams(node->native, &memset));
    }
    case NodeKind::kHost: {
      CUDA_HOST_NODE_PARAMS host{};
      if (call_one(driver_.cuGraphExecHostNodeSetParams, driver_.cuGraphHostNodeSetParams) != -1) break;
      host.fn = RunHostCall;
      host.userData = NewHostCall(from.callback);
      return answer(exec != nullptr ? driver_.cuGraphExecHostNodeSetParams(exec, node->native, &host)
                                    : driver_.cuGraphHostNodeSetParams(node->native, &host));
    }
    case NodeKind::kGraph: {
      const Graph* child = Use<Graph>(from.graph, &status);
      if (child == nullptr) return answer(status);
      if (exec == nullptr || driver_.cuGraphExecChildGraphNodeSetParams == nullptr) break;
      return answer(driver_.cuGraphExecChildGraphNodeSetParams(exec, node->native, child->native));
    }
    case NodeKind::kWait:
    case NodeKind::kRecord: {
      Event* event = Use<Event>(from.event, &status);
      if (event == nullptr) return answer(status);
      event->fixed = true;
      const bool wait = kind == NodeKind::kWait;
      if (exec != nullptr) {
        const auto set = wait ? driver_.cuGraphExecEventWaitNodeSetEvent : driver_.cuGraphExecEventRecordNodeSetEvent;
        return answer(set == nullptr ? kNotSupported : set(exec, node->native, event->native()));
      }
      const auto set = wait ? driver_.cuGraphEventWaitNodeSetEvent : driver_.cuGraphEventRecordNodeSetEvent;
      return answer(set == nullptr ? kNotSupported : set(node->native, event->native()));
    }
    case NodeKind::kBatch: {
      std::vector<CUstreamBatchMemOpParams> operations;
      CUDA_BATCH_MEM_OP_NODE_PARAMS batch{};
      if (call_one(driver_.cuGraphExecBatchMemOpNodeSetParams, driver_.cuGraphBatchMemOpNodeSetParams) != -1) break;
      if (status = FillBatch(from, &operations, &batch); status != 0) return answer(status);
      return answer(exec != nullptr ? driver_.cuGraphExecBatchMemOpNodeSetParams(exec, node->native, &batch)
                                    : driver_.cuGraphBatchMemOpNodeSetParams(node->native, &batch));
    }
    default:
      return answer(CUDA_ERROR_INVALID_VALUE);
  }
  return answer(kNotSupported);
}

}  // namespace hawser::server::cuda_backend
