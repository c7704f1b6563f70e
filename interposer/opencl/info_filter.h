// SPDX-License-Identifier: Apache-2.0
// Makes the server's answers about platforms and devices true for a remote program: what cannot work is taken out.
// docs/differences.md lists everything that this changes. Also reads single values out of such answers.
#ifndef HAWSER_INTERPOSER_OPENCL_INFO_FILTER_H_
#define HAWSER_INTERPOSER_OPENCL_INFO_FILTER_H_

#include <optional>

#include "interposer/opencl/objects.h"

namespace hawser::ocl {

void FilterPlatformInfo(InfoMap& info);
void FilterDeviceInfo(InfoMap& info);

/// The value of a parameter, if the server answered it with exactly this size.
template <typename T>
std::optional<T> ValueOf(const InfoMap& info, cl_uint param) {
  const auto it = info.find(param);
  if (it == info.end() || it->second.first != CL_SUCCESS || it->second.second.size() != sizeof(T)) return std::nullopt;
  T value;
  __builtin_memcpy(&value, it->second.second.data(), sizeof(T));
  return value;
}
template <typename T>
T ValueOr(const InfoMap& info, cl_uint param, T otherwise) {
  return ValueOf<T>(info, param).value_or(otherwise);
}
/// A string without its final 0; empty if there is none.
std::string TextOf(const InfoMap& info, cl_uint param);

/// Answers a query from the map: CL_INVALID_VALUE for a parameter that is not there.
cl_int ReturnFrom(const InfoMap& info, cl_uint param, size_t size, void* out, size_t* size_ret);

/// "OpenCL 3.0 ..." gives 300, "OpenCL 1.2" 120; 0 if it is no such string.
cl_uint ParseVersion(std::string_view version);

}  // namespace hawser::ocl

#endif  // HAWSER_INTERPOSER_OPENCL_INFO_FILTER_H_
