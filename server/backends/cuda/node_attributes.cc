// SPDX-License-Identifier: Apache-2.0
// Attributes of kernel nodes: the driver keeps them, so that those of captured and cloned nodes are known too.
#include <cstring>

#include "server/backends/cuda/backend.h"

namespace hawser::server::cuda_backend {
namespace {

/// False for what belongs to a launch alone: a node would keep the name of an event that may end before it.
bool MayBeANodes(uint32_t id) {
  return id != CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT && id != CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT;
}

/// The reverse of FillAttribute(). False for an attribute that does not travel.
bool Describe(const CUlaunchAttribute& from, cuda::LaunchAttribute* to) {
  const CUlaunchAttributeValue& value = from.value;
  to->id = from.id;
  switch (from.id) {
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
      to->address = reinterpret_cast<uintptr_t>(value.accessPolicyWindow.base_ptr);
      to->number = value.accessPolicyWindow.num_bytes;
      std::memcpy(&to->x, &value.accessPolicyWindow.hitRatio, sizeof(to->x));
      to->y = value.accessPolicyWindow.hitProp;
      to->z = value.accessPolicyWindow.missProp;
      return true;
    case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
      to->number = static_cast<uint64_t>(value.cooperative);
      return true;
    case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
      to->number = value.syncPolicy;
      return true;
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
      to->x = value.clusterDim.x;
      to->y = value.clusterDim.y;
      to->z = value.clusterDim.z;
      return true;
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
      to->number = value.clusterSchedulingPolicyPreference;
      return true;
    case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
      to->number = static_cast<uint64_t>(value.programmaticStreamSerializationAllowed);
      return true;
    case CU_LAUNCH_ATTRIBUTE_PRIORITY:
      to->number = static_cast<uint64_t>(static_cast<int64_t>(value.priority));
      return true;
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
      to->x = value.memSyncDomainMap.default_;
      to->y = value.memSyncDomainMap.remote;
      return true;
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
      to->number = value.memSyncDomain;
      return true;
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
      to->number = value.sharedMemCarveout;
      return true;
    default:
      return false;
  }
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
    if (driver_.cuGraphKernelNodeGetAttribute == nullptr || !Describe(native, &reply.attribute)) {
      reply.status = kNotSupported;
    } else {
      reply.status = driver_.cuGraphKernelNodeGetAttribute(node->native, native.id, &native.value);
    }
  }
  reply.attribute = {};
  if (reply.status == 0) (void)Describe(native, &reply.attribute);
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
