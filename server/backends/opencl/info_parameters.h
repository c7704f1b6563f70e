// SPDX-License-Identifier: Apache-2.0
// Which CL_PLATFORM_... and CL_DEVICE_... parameters a guest may ask for.
#ifndef HAWSER_SERVER_BACKENDS_OPENCL_INFO_PARAMETERS_H_
#define HAWSER_SERVER_BACKENDS_OPENCL_INFO_PARAMETERS_H_

#include <cstdint>
#include <vector>

namespace hawser::server::ocl {

/// All known parameters of OpenCL 1.0 to 3.0 and of Khronos' and vendors' extensions, in ascending order, except
/// those whose values are handles or pointers of the server.
const std::vector<uint32_t>& PlatformParameters();
const std::vector<uint32_t>& DeviceParameters();

}  // namespace hawser::server::ocl

#endif  // HAWSER_SERVER_BACKENDS_OPENCL_INFO_PARAMETERS_H_
