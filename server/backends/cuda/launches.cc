// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "server/backends/cuda/backend.h"

namespace hawser::server::cuda_backend {

int32_t CudaBackend::Launch(const cuda::Call& call, const cuda::Launch& message) {
  const Place at = At(message.context, message.stream);
  if (!at.ok()) [[unlikely]]
    return Fail(call, at.status, {}, message.context);
  int32_t status = 0;
  const Function* function = Use<Function>(message.function, &status);
  if (function == nullptr) [[unlikely]]
    return Fail(call, status, {}, message.context);
  size_t size = message.parameters.size();
  if (size < function->parameter_bytes) [[unlikely]] {
    return Fail(call, Explain(CUDA_ERROR_INVALID_VALUE, "the kernel has more parameters than came"), {},
                message.context);
  }
  // The driver copies the parameters before it returns; the frame stays until then.
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER,
                   const_cast<std::byte*>(message.parameters.data()),  // NOLINT(cppcoreguidelines-pro-type-const-cast)
                   CU_LAUNCH_PARAM_BUFFER_SIZE, &size, CU_LAUNCH_PARAM_END};
  services_.stats->kernels.Add(1);
  return Finish(call,
                driver_.cuLaunchKernel(function->native, message.grid[0], message.grid[1], message.grid[2],
                                       message.block[0], message.block[1], message.block[2], message.shared,
                                       at.native(), nullptr, size == 0 ? nullptr : extra),
                message.context);
}

int32_t CudaBackend::LaunchWith(const cuda::Call& call, const cuda::LaunchWith& message) {
  const Place at = At(message.context, message.stream);
  if (!at.ok()) return Fail(call, at.status, {}, message.context);
  int32_t status = 0;
  const Function* function = Use<Function>(message.function, &status);
  if (function == nullptr) return Fail(call, status, {}, message.context);
  if (driver_.cuLaunchKernelEx == nullptr) return Fail(call, kNotSupported, {}, message.context);
  size_t size = message.parameters.size();
  if (size < function->parameter_bytes) {
    return Fail(call, Explain(CUDA_ERROR_INVALID_VALUE, "the kernel has more parameters than came"), {},
                message.context);
  }
  std::vector<CUlaunchAttribute> attributes;
  message.attributes.ForEach([&](const cuda::LaunchAttribute& attribute) {
    CUlaunchAttribute& native = attributes.emplace_back();
    if (status == 0) status = FillAttribute(attribute, &native);
  });
  if (status != 0) return Fail(call, status, {}, message.context);
  CUlaunchConfig config{};
  config.gridDimX = message.grid[0];
  config.gridDimY = message.grid[1];
  config.gridDimZ = message.grid[2];
  config.blockDimX = message.block[0];
  config.blockDimY = message.block[1];
  config.blockDimZ = message.block[2];
  config.sharedMemBytes = message.shared;
  config.hStream = at.native();
  config.attrs = attributes.data();
  config.numAttrs = static_cast<unsigned>(attributes.size());
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER,
                   const_cast<std::byte*>(message.parameters.data()),  // NOLINT(cppcoreguidelines-pro-type-const-cast)
                   CU_LAUNCH_PARAM_BUFFER_SIZE, &size, CU_LAUNCH_PARAM_END};
  services_.stats->kernels.Add(1);
  return Finish(call, driver_.cuLaunchKernelEx(&config, function->native, nullptr, size == 0 ? nullptr : extra),
                message.context);
}

int32_t CudaBackend::FillAttribute(const cuda::LaunchAttribute& from, CUlaunchAttribute* to) {
  std::memset(to, 0, sizeof(*to));
  to->id = static_cast<CUlaunchAttributeID>(from.id);
  CUlaunchAttributeValue& value = to->value;
  const auto event = [&](CUevent* native) {
    int32_t status = 0;
    const Event* object = Use<Event>(from.event, &status);
    if (object != nullptr) *native = object->native();
    return status;
  };
  switch (to->id) {
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW: {
      if (!Owns(from.address, from.number)) {
        return Explain(CUDA_ERROR_INVALID_VALUE, "the memory is not the session's");
      }
      value.accessPolicyWindow.base_ptr = reinterpret_cast<void*>(from.address);
      value.accessPolicyWindow.num_bytes = from.number;
      std::memcpy(&value.accessPolicyWindow.hitRatio, &from.x, sizeof(float));
      value.accessPolicyWindow.hitProp = static_cast<CUaccessProperty>(from.y);
      value.accessPolicyWindow.missProp = static_cast<CUaccessProperty>(from.z);
      return 0;
    }
    case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
      value.cooperative = static_cast<int>(from.number);
      return 0;
    case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
      value.syncPolicy = static_cast<CUsynchronizationPolicy>(from.number);
      return 0;
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
      value.clusterDim.x = from.x;
      value.clusterDim.y = from.y;
      value.clusterDim.z = from.z;
      return 0;
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
      value.clusterSchedulingPolicyPreference = static_cast<CUclusterSchedulingPolicy>(from.number);
      return 0;
    case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
      value.programmaticStreamSerializationAllowed = static_cast<int>(from.number);
      return 0;
    case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT:
      value.programmaticEvent.flags = static_cast<int>(from.x);
      value.programmaticEvent.triggerAtBlockStart = static_cast<int>(from.number);
      return event(&value.programmaticEvent.event);
    case CU_LAUNCH_ATTRIBUTE_PRIORITY:
      value.priority = static_cast<int>(from.number);
      return 0;
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
      value.memSyncDomainMap.default_ = static_cast<unsigned char>(from.x);
      value.memSyncDomainMap.remote = static_cast<unsigned char>(from.y);
      return 0;
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
      value.memSyncDomain = static_cast<CUlaunchMemSyncDomain>(from.number);
      return 0;
    case CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT:
      value.launchCompletionEvent.flags = static_cast<int>(from.x);
      return event(&value.launchCompletionEvent.event);
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
      value.sharedMemCarveout = static_cast<unsigned>(from.number);
      return 0;
    default:
      return Explain(CUDA_ERROR_NOT_SUPPORTED, "the launch attribute is not known");
  }
}

}  // namespace hawser::server::cuda_backend
