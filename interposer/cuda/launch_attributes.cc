// SPDX-License-Identifier: Apache-2.0
#include "interposer/cuda/launch_attributes.h"

#include "interposer/cuda/entry.h"
#include "interposer/cuda/objects.h"
#include "proto/cuda_api/launch_attribute.h"

namespace hawser::cu {

CUresult ToWire(const CUlaunchAttribute& attribute, cuda::LaunchAttribute* message) {
  const CUlaunchAttributeValue& value = attribute.value;
  if (cuda_api::PlainToWire(attribute.id, value, message)) return CUDA_SUCCESS;
  switch (attribute.id) {
    case CU_LAUNCH_ATTRIBUTE_IGNORE:
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
    default: {
      const CUresult refused = cuda_api::WhyRefused(attribute.id);
      if (refused == CUDA_ERROR_NOT_SUPPORTED) {
        static std::atomic_flag said;
        return RefuseOnce("CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE", "kernels change no graphs here", &said);
      }
      return refused;
    }
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
  return cuda_api::PlainFromWire(message, value) ? CUDA_SUCCESS : CUDA_ERROR_UNKNOWN;  // The server's mistake.
}

}  // namespace hawser::cu
