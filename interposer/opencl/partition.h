// SPDX-License-Identifier: Apache-2.0
// Reads the property list of clCreateSubDevices.
#ifndef HAWSER_INTERPOSER_OPENCL_PARTITION_H_
#define HAWSER_INTERPOSER_OPENCL_PARTITION_H_

#include "interposer/opencl/objects.h"

namespace hawser::ocl {

struct Partition {
  std::vector<int64_t> properties;  ///< As in the call, with the final 0.
  uint32_t max_devices = 0;         ///< So many at most can come of it.
};

/// `info`: the device's. CL_INVALID_VALUE for a list that says nothing the device can do; whether it can be done is
/// the server's to say.
cl_int ParsePartition(const InfoMap& info, const cl_device_partition_property* list, Partition* out);

}  // namespace hawser::ocl

#endif  // HAWSER_INTERPOSER_OPENCL_PARTITION_H_
