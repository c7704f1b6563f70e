// SPDX-License-Identifier: Apache-2.0
#include "interposer/opencl/properties.h"

#include <CL/cl_gl.h>

#include <algorithm>

#include "interposer/opencl/entry.h"
#include "interposer/opencl/extension_filter.h"
#include "interposer/opencl/info_filter.h"

namespace hawser::ocl {
namespace {

constexpr size_t kMostProperties = 31;  // Pairs. Also bounds the search for a final 0 that somebody forgot.

template <typename T>
bool IsRepeated(const T* list, const T* at) {
  for (const T* before = list; before != at; before += 2) {
    if (*before == *at) return true;
  }
  return false;
}

bool IsGraphicsContext(cl_context_properties key) {
  return key == CL_GL_CONTEXT_KHR || key == CL_EGL_DISPLAY_KHR || key == CL_GLX_DISPLAY_KHR || key == CL_WGL_HDC_KHR ||
         key == CL_CGL_SHAREGROUP_KHR;
}

}  // namespace

cl_int ParseContextProperties(const cl_context_properties* list, ContextProperties* out) {
  if (list == nullptr) return CL_SUCCESS;
  for (const cl_context_properties* at = list; *at != 0; at += 2) {
    if (static_cast<size_t>(at - list) >= 2 * kMostProperties || IsRepeated(list, at)) return CL_INVALID_PROPERTY;
    const cl_context_properties value = at[1];
    switch (*at) {
      case CL_CONTEXT_PLATFORM:
        out->platform = reinterpret_cast<cl_platform_id>(value);
        out->has_platform = true;
        continue;
      case CL_CONTEXT_INTEROP_USER_SYNC:
        if (value != CL_TRUE && value != CL_FALSE) return CL_INVALID_PROPERTY;
        break;
      default:
        if (IsGraphicsContext(*at)) {
          RefuseOnce("clCreateContext", "a context that shares objects with a graphics API lives in the guest");
        }
        return CL_INVALID_PROPERTY;
    }
    out->forwarded.insert(out->forwarded.end(), {*at, value});
  }
  return CL_SUCCESS;
}

cl_int ParseQueueProperties(const cl_queue_properties* list, const InfoMap& device, QueueProperties* out) {
  if (list == nullptr) return CL_SUCCESS;
  bool has_size = false;
  for (const cl_queue_properties* at = list; *at != 0; at += 2) {
    if (static_cast<size_t>(at - list) >= 2 * kMostProperties || IsRepeated(list, at)) return CL_INVALID_VALUE;
    const cl_queue_properties value = at[1];
    switch (*at) {
      case CL_QUEUE_PROPERTIES:
        out->flags = value;
        break;
      case CL_QUEUE_SIZE:
        if (value > UINT32_MAX) return CL_INVALID_VALUE;
        out->size = static_cast<cl_uint>(value);
        has_size = true;
        break;
      case CL_QUEUE_PRIORITY_KHR:
      case CL_QUEUE_THROTTLE_KHR: {
        const char* extension = *at == CL_QUEUE_PRIORITY_KHR ? "cl_khr_priority_hints" : "cl_khr_throttle_hints";
        if (!HasExtension(TextOf(device, CL_DEVICE_EXTENSIONS), extension)) return CL_INVALID_QUEUE_PROPERTIES;
        if (value != 1 && value != 2 && value != 4) return CL_INVALID_VALUE;  // High, medium, low: the same for both.
        break;
      }
      default:
        return CL_INVALID_VALUE;
    }
    out->forwarded.insert(out->forwarded.end(), {*at, value});
  }
  constexpr cl_command_queue_properties kLegal = CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE | CL_QUEUE_PROFILING_ENABLE |
                                                 CL_QUEUE_ON_DEVICE | CL_QUEUE_ON_DEVICE_DEFAULT;
  const bool on_device = (out->flags & CL_QUEUE_ON_DEVICE) != 0;
  if ((out->flags & ~kLegal) != 0) return CL_INVALID_VALUE;
  if (on_device && (out->flags & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE) == 0) return CL_INVALID_VALUE;
  if ((out->flags & CL_QUEUE_ON_DEVICE_DEFAULT) != 0 && !on_device) return CL_INVALID_VALUE;
  if (has_size && !on_device) return CL_INVALID_VALUE;
  if (on_device) {
    if (out->size > ValueOr<cl_uint>(device, CL_DEVICE_QUEUE_ON_DEVICE_MAX_SIZE, 0)) {
      return CL_INVALID_QUEUE_PROPERTIES;
    }
    if (out->size == 0) out->size = ValueOr<cl_uint>(device, CL_DEVICE_QUEUE_ON_DEVICE_PREFERRED_SIZE, 0);
  }
  const cl_uint supported_by = on_device ? CL_DEVICE_QUEUE_ON_DEVICE_PROPERTIES : CL_DEVICE_QUEUE_ON_HOST_PROPERTIES;
  const auto supported = ValueOr<cl_command_queue_properties>(device, supported_by, 0);
  constexpr cl_command_queue_properties kModes = CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE | CL_QUEUE_PROFILING_ENABLE;
  return (out->flags & kModes & ~supported) != 0 ? CL_INVALID_QUEUE_PROPERTIES : CL_SUCCESS;
}

cl_int ParseSamplerProperties(const cl_sampler_properties* list, SamplerProperties* out) {
  if (list != nullptr) {
    for (const cl_sampler_properties* at = list; *at != 0; at += 2) {
      if (static_cast<size_t>(at - list) >= 2 * kMostProperties || IsRepeated(list, at)) return CL_INVALID_VALUE;
      switch (*at) {
        case CL_SAMPLER_NORMALIZED_COORDS:
          if (at[1] > CL_TRUE) return CL_INVALID_VALUE;
          out->normalized = static_cast<cl_bool>(at[1]);
          break;
        case CL_SAMPLER_ADDRESSING_MODE:
          if (at[1] < CL_ADDRESS_NONE || at[1] > CL_ADDRESS_MIRRORED_REPEAT) return CL_INVALID_VALUE;
          out->addressing = static_cast<cl_addressing_mode>(at[1]);
          break;
        case CL_SAMPLER_FILTER_MODE:
          if (at[1] != CL_FILTER_NEAREST && at[1] != CL_FILTER_LINEAR) return CL_INVALID_VALUE;
          out->filter = static_cast<cl_filter_mode>(at[1]);
          break;
        default:
          return CL_INVALID_VALUE;
      }
    }
  }
  const bool repeats = out->addressing == CL_ADDRESS_REPEAT || out->addressing == CL_ADDRESS_MIRRORED_REPEAT;
  return repeats && out->normalized == CL_FALSE ? CL_INVALID_VALUE : CL_SUCCESS;
}

}  // namespace hawser::ocl
