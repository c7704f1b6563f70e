// SPDX-License-Identifier: Apache-2.0
// Does a device work in place on memory of the host?
#ifndef HAWSER_SERVER_BACKENDS_OPENCL_MEMORY_PROBE_H_
#define HAWSER_SERVER_BACKENDS_OPENCL_MEMORY_PROBE_H_

#include "server/backends/opencl/cl.h"

namespace hawser::server::ocl {

/// True for a CPU device that, with CL_MEM_USE_HOST_PTR, shows its writes in host memory without a map and sees
/// stores of the host without an unmap. Found out with small commands on a context and a queue of its own, which are
/// gone afterwards. Waits for the device; for start-up only.
bool WorksInPlace(cl_platform_id platform, cl_device_id device);

}  // namespace hawser::server::ocl

#endif  // HAWSER_SERVER_BACKENDS_OPENCL_MEMORY_PROBE_H_
