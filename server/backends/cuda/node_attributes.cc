// SPDX-License-Identifier: Apache-2.0
// Attributes of kernel nodes: the driver keeps them, so that those of captured and cloned nodes are known too.
#include "proto/cuda_api/launch_attribute.h"
#include "server/backends/cuda/backend.h"

namespace hawser::server::cuda_backend {
namespace {

/// False for what belongs to a launch alone: a node would keep the name of an event that may end before it.
bool MayBeANodes(uint32_t id) {
  return id != CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT && id != CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT;
}

}  // namespace

const Node* CudaBackend::UseKernelNode(wire::Id id, int32_t* status) {
  const Node* node = Use<Node>(id, status);
  if (node == nullptr || driver_.cuGraphNodeGetType == nullptr) return node;
  CUgraphNodeType type{};
  *status = driver_.cuGraphNodeGetType(node->native, &type);
  if (*status == 0 && type != CU_GRAPH_NODE_TYPE_KERNEL) *status = CUDA_ERROR_INVALID_VALUE;
  return *status == 0 ? node : nullptr;
}

int32_t CudaBackend::SetNativeAttribute(CUgraphNode node, const cuda::LaunchAttribute& attribute) {
  if (driver_.cuGraphKernelNodeSetAttribute == nullptr) return kNotSupported;
  if (!MayBeANodes(attribute.id)) return CUDA_ERROR_INVALID_VALUE;
  CUlaunchAttribute native{};
  if (const int32_t status = FillAttribute(attribute, &native); status != 0) return status;
  return driver_.cuGraphKernelNodeSetAttribute(node, native.id, &native.value);
}

int32_t CudaBackend::SetNodeAttribute(const cuda::Call& call, const cuda::SetNodeAttribute& message) {
  int32_t status = 0;
  const Node* node = UseKernelNode(message.node, &status);
  if (node != nullptr) status = SetNativeAttribute(node->native, message.attribute);
  reason_.clear();
  return ReplyStatus(call, status);
}

int32_t CudaBackend::GetNodeAttribute(const cuda::Call& call, const cuda::GetNodeAttribute& message) {
  cuda::NodeAttribute reply;
  CUlaunchAttribute native{};
  native.id = static_cast<CUlaunchAttributeID>(message.id);
  const Node* node = UseKernelNode(message.node, &reply.status);
  if (node != nullptr) {
    // An attribute that does not travel is refused before the driver is asked to write it.
    if (driver_.cuGraphKernelNodeGetAttribute == nullptr) {
      reply.status = kNotSupported;
    } else if (!cuda_api::PlainToWire(native.id, native.value, &reply.attribute)) {
      reply.status = cuda_api::WhyRefused(native.id);
    } else {
      reply.status = driver_.cuGraphKernelNodeGetAttribute(node->native, native.id, &native.value);
    }
  }
  reply.attribute = {};
  if (reply.status == 0) (void)cuda_api::PlainToWire(native.id, native.value, &reply.attribute);
  reason_.clear();
  Reply(call, reply);
  return 0;
}

int32_t CudaBackend::CopyNodeAttributes(const cuda::Call& call, const cuda::CopyNodeAttributes& message) {
  int32_t status = 0;
  const Node* from = UseKernelNode(message.from, &status);
  const Node* to = from != nullptr ? UseKernelNode(message.to, &status) : nullptr;
  reason_.clear();
  if (to == nullptr) return ReplyStatus(call, status);
  if (driver_.cuGraphKernelNodeCopyAttributes == nullptr) return ReplyStatus(call, kNotSupported);
  return ReplyStatus(call, driver_.cuGraphKernelNodeCopyAttributes(to->native, from->native));
}

}  // namespace hawser::server::cuda_backend
