// SPDX-License-Identifier: Apache-2.0
#include "interposer/cuda/launch_attributes.h"

#include <cstring>

#include "interposer/core/log.h"
#include "interposer/cuda/objects.h"

namespace hawser::cu {

CUresult ToWire(const CUlaunchAttribute& attribute, cuda::LaunchAttribute* message) {
  const CUlaunchAttributeValue& value = attribute.value;
  message->id = attribute.id;
  switch (attribute.id) {
    case CU_LAUNCH_ATTRIBUTE_IGNORE:
      return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
      message->address = reinterpret_cast<uintptr_t>(value.accessPolicyWindow.base_ptr);
      message->number = value.accessPolicyWindow.num_bytes;
      static_assert(sizeof(value.accessPolicyWindow.hitRatio) == sizeof(message->x));
      std::memcpy(&message->x, &value.accessPolicyWindow.hitRatio, sizeof(message->x));
      message->y = value.accessPolicyWindow.hitProp;
      message->z = value.accessPolicyWindow.missProp;
      return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
      message->number = static_cast<uint64_t>(value.cooperative);
      return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
      message->number = value.syncPolicy;
      return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
      message->x = value.clusterDim.x;
      message->y = value.clusterDim.y;
      message->z = value.clusterDim.z;
      return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
      message->number = value.clusterSchedulingPolicyPreference;
      return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
      message->number = static_cast<uint64_t>(value.programmaticStreamSerializationAllowed);
      return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT:
      if (const CUresult error = CheckObject(value.programmaticEvent.event, Kind::kEvent); error != CUDA_SUCCESS) {
        return error;
      }
      message->event = value.programmaticEvent.event->id;
      message->x = static_cast<uint32_t>(value.programmaticEvent.flags);
      message->number = static_cast<uint64_t>(value.programmaticEvent.triggerAtBlockStart);
      return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT:
      if (const CUresult error = CheckObject(value.launchCompletionEvent.event, Kind::kEvent); error != CUDA_SUCCESS) {
        return error;
      }
      message->event = value.launchCompletionEvent.event->id;
      message->x = static_cast<uint32_t>(value.launchCompletionEvent.flags);
      return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_PRIORITY:
      message->number = static_cast<uint64_t>(static_cast<int64_t>(value.priority));
      return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
      message->x = value.memSyncDomainMap.default_;
      message->y = value.memSyncDomainMap.remote;
      return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
      message->number = value.memSyncDomain;
      return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
      message->number = value.sharedMemCarveout;
      return CUDA_SUCCESS;
    default:
      guest::Log(guest::LogLevel::kWarning, "launch attribute %d is not supported", static_cast<int>(attribute.id));
      return CUDA_ERROR_NOT_SUPPORTED;
  }
}

CUresult ToWire(const CUlaunchAttribute* attributes, unsigned count, std::vector<cuda::LaunchAttribute>* messages) {
  if (count > 32 || (count != 0 && attributes == nullptr)) return CUDA_ERROR_INVALID_VALUE;
  for (unsigned i = 0; i < count; ++i) {
    if (attributes[i].id == CU_LAUNCH_ATTRIBUTE_IGNORE) continue;
    cuda::LaunchAttribute message;
    if (const CUresult error = ToWire(attributes[i], &message); error != CUDA_SUCCESS) return error;
    messages->push_back(message);
  }
  return CUDA_SUCCESS;
}

CUresult FromWire(const cuda::LaunchAttribute& message, CUlaunchAttributeValue* value) {
  *value = {};
  switch (message.id) {
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
      value->accessPolicyWindow.base_ptr = reinterpret_cast<void*>(message.address);
      value->accessPolicyWindow.num_bytes = message.number;
      std::memcpy(&value->accessPolicyWindow.hitRatio, &message.x, sizeof(message.x));
      value->accessPolicyWindow.hitProp = static_cast<CUaccessProperty>(message.y);
      value->accessPolicyWindow.missProp = static_cast<CUaccessProperty>(message.z);
      return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
      value->cooperative = static_cast<int>(message.number);
      return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
      value->syncPolicy = static_cast<CUsynchronizationPolicy>(message.number);
      return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
      value->clusterDim.x = message.x;
      value->clusterDim.y = message.y;
      value->clusterDim.z = message.z;
      return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
      value->clusterSchedulingPolicyPreference = static_cast<CUclusterSchedulingPolicy>(message.number);
      return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
      value->programmaticStreamSerializationAllowed = static_cast<int>(message.number);
      return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_PRIORITY:
      value->priority = static_cast<int>(message.number);
      return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
      value->memSyncDomainMap.default_ = static_cast<unsigned char>(message.x);
      value->memSyncDomainMap.remote = static_cast<unsigned char>(message.y);
      return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
      value->memSyncDomain = static_cast<CUlaunchMemSyncDomain>(message.number);
      return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
      value->sharedMemCarveout = static_cast<unsigned>(message.number);
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_NOT_SUPPORTED;
  }
}

}  // namespace hawser::cu
