// SPDX-License-Identifier: Apache-2.0
#include "interposer/opencl/partition.h"

#include <algorithm>
#include <cstring>

#include "interposer/opencl/info_filter.h"

namespace hawser::ocl {
namespace {

constexpr uint32_t kMostDevices = 256;
constexpr size_t kMostProperties = 512;

bool Supports(const InfoMap& info, cl_device_partition_property kind) {
  const auto it = info.find(CL_DEVICE_PARTITION_PROPERTIES);
  if (it == info.end() || it->second.first != CL_SUCCESS) return false;
  const std::vector<std::byte>& value = it->second.second;
  for (size_t at = 0; at + sizeof(kind) <= value.size(); at += sizeof(kind)) {
    cl_device_partition_property each;
    std::memcpy(&each, value.data() + at, sizeof(each));
    if (each == kind && each != 0) return true;
  }
  return false;
}

}  // namespace

cl_int ParsePartition(const InfoMap& info, const cl_device_partition_property* list, Partition* out) {
  if (list == nullptr || list[0] == 0 || !Supports(info, list[0])) return CL_INVALID_VALUE;
  out->properties = {list[0]};
  switch (list[0]) {
    case CL_DEVICE_PARTITION_EQUALLY: {
      const cl_uint units = ValueOr<cl_uint>(info, CL_DEVICE_MAX_COMPUTE_UNITS, 1);
      if (list[1] <= 0 || list[1] > units || list[2] != 0) return CL_INVALID_VALUE;
      out->properties.insert(out->properties.end(), {list[1], 0});
      out->max_devices = std::min(static_cast<uint32_t>(units / list[1]), kMostDevices);
      return CL_SUCCESS;
    }
    case CL_DEVICE_PARTITION_BY_COUNTS:
      for (const cl_device_partition_property* count = list + 1; *count != CL_DEVICE_PARTITION_BY_COUNTS_LIST_END;
           ++count) {
        if (out->properties.size() == kMostProperties - 2 || out->max_devices == kMostDevices) {
          return CL_INVALID_DEVICE_PARTITION_COUNT;
        }
        out->properties.push_back(*count);
        ++out->max_devices;
      }
      out->properties.insert(out->properties.end(), {CL_DEVICE_PARTITION_BY_COUNTS_LIST_END, 0});
      return out->max_devices == 0 ? CL_INVALID_VALUE : CL_SUCCESS;
    case CL_DEVICE_PARTITION_BY_AFFINITY_DOMAIN:
      if (list[2] != 0) return CL_INVALID_VALUE;
      out->properties.insert(out->properties.end(), {list[1], 0});
      out->max_devices =
          std::clamp<uint32_t>(ValueOr<cl_uint>(info, CL_DEVICE_PARTITION_MAX_SUB_DEVICES, 1), 1, kMostDevices);
      return CL_SUCCESS;
    default:
      return CL_INVALID_VALUE;
  }
}

}  // namespace hawser::ocl
