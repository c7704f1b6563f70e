// SPDX-License-Identifier: Apache-2.0
// Launch attributes that name no object, between the driver API's union and how they travel. Both ends use this, so
// that neither carries what the other drops.
//
// Threads: nothing here keeps state.
#ifndef HAWSER_PROTO_CUDA_API_LAUNCH_ATTRIBUTE_H_
#define HAWSER_PROTO_CUDA_API_LAUNCH_ATTRIBUTE_H_

#include <cuda.h>

#include <cstdint>
#include <cstring>

#include "proto/cuda/messages.h"

namespace hawser::cuda_api {

/// What an attribute is refused with that neither of these functions knows and that names no event: the manual has it,
/// but kernels would be given a handle that nobody makes here, or there is no such attribute.
inline CUresult WhyRefused(CUlaunchAttributeID id) {
  return id == CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_VALUE;
}

/// False: the attribute names an event, or is not known; `to` has its number all the same.
inline bool PlainToWire(CUlaunchAttributeID id, const CUlaunchAttributeValue& value, cuda::LaunchAttribute* to) {
  to->id = id;
  switch (id) {
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
      to->address = reinterpret_cast<uintptr_t>(value.accessPolicyWindow.base_ptr);
      to->number = value.accessPolicyWindow.num_bytes;
      static_assert(sizeof(value.accessPolicyWindow.hitRatio) == sizeof(to->x));
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
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION:
      to->x = value.preferredClusterDim.x;
      to->y = value.preferredClusterDim.y;
      to->z = value.preferredClusterDim.z;
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
    case CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING:
      to->number = value.nvlinkUtilCentricScheduling;
      return true;
    default:
      return false;
  }
}

/// The reverse. False: the attribute names an event, or is not known; `value` is not touched. An address is whatever
/// the other end says: check whose it is first.
inline bool PlainFromWire(const cuda::LaunchAttribute& from, CUlaunchAttributeValue* value) {
  switch (from.id) {
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
      value->accessPolicyWindow.base_ptr = reinterpret_cast<void*>(from.address);
      value->accessPolicyWindow.num_bytes = from.number;
      std::memcpy(&value->accessPolicyWindow.hitRatio, &from.x, sizeof(from.x));
      value->accessPolicyWindow.hitProp = static_cast<CUaccessProperty>(from.y);
      value->accessPolicyWindow.missProp = static_cast<CUaccessProperty>(from.z);
      return true;
    case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
      value->cooperative = static_cast<int>(from.number);
      return true;
    case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
      value->syncPolicy = static_cast<CUsynchronizationPolicy>(from.number);
      return true;
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
      value->clusterDim.x = from.x;
      value->clusterDim.y = from.y;
      value->clusterDim.z = from.z;
      return true;
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION:
      value->preferredClusterDim.x = from.x;
      value->preferredClusterDim.y = from.y;
      value->preferredClusterDim.z = from.z;
      return true;
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
      value->clusterSchedulingPolicyPreference = static_cast<CUclusterSchedulingPolicy>(from.number);
      return true;
    case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
      value->programmaticStreamSerializationAllowed = static_cast<int>(from.number);
      return true;
    case CU_LAUNCH_ATTRIBUTE_PRIORITY:
      value->priority = static_cast<int>(from.number);
      return true;
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
      value->memSyncDomainMap.default_ = static_cast<unsigned char>(from.x);
      value->memSyncDomainMap.remote = static_cast<unsigned char>(from.y);
      return true;
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
      value->memSyncDomain = static_cast<CUlaunchMemSyncDomain>(from.number);
      return true;
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
      value->sharedMemCarveout = static_cast<unsigned>(from.number);
      return true;
    case CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING:
      value->nvlinkUtilCentricScheduling = static_cast<unsigned>(from.number);
      return true;
    default:
      return false;
  }
}

}  // namespace hawser::cuda_api

#endif  // HAWSER_PROTO_CUDA_API_LAUNCH_ATTRIBUTE_H_
