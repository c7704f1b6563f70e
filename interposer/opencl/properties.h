// SPDX-License-Identifier: Apache-2.0
// Property lists (key, value, ..., 0) of contexts, queues and samplers: reading and checking. Pure functions.
#ifndef HAWSER_INTERPOSER_OPENCL_PROPERTIES_H_
#define HAWSER_INTERPOSER_OPENCL_PROPERTIES_H_

#include "interposer/opencl/objects.h"

namespace hawser::ocl {

/// Number of elements of a list with its final 0; 0 for null.
template <typename T>
size_t PropertyCount(const T* list) {
  if (list == nullptr) return 0;
  size_t count = 0;
  while (list[count] != 0) count += 2;
  return count + 1;
}
/// A copy with the final 0; empty for null.
template <typename T>
std::vector<T> CopyProperties(const T* list) {
  return std::vector<T>(list, list + PropertyCount(list));
}

struct ContextProperties {
  cl_platform_id platform = nullptr;  ///< As given; null if none was.
  bool has_platform = false;
  std::vector<int64_t> forwarded;  ///< Without the platform and the final 0.
};
/// Checks keys and values, not the platform's handle.
cl_int ParseContextProperties(const cl_context_properties* list, ContextProperties* out);

struct QueueProperties {
  cl_command_queue_properties flags = 0;
  cl_uint size = 0;
  std::vector<uint64_t> forwarded;  ///< Without the final 0.
};
/// `device`: its info, from which it follows what it supports.
cl_int ParseQueueProperties(const cl_queue_properties* list, const InfoMap& device, QueueProperties* out);

struct SamplerProperties {
  cl_bool normalized = CL_TRUE;
  cl_addressing_mode addressing = CL_ADDRESS_CLAMP;
  cl_filter_mode filter = CL_FILTER_NEAREST;
};
cl_int ParseSamplerProperties(const cl_sampler_properties* list, SamplerProperties* out);

}  // namespace hawser::ocl

#endif  // HAWSER_INTERPOSER_OPENCL_PROPERTIES_H_
