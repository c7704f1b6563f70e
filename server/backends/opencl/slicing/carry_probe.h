// SPDX-License-Identifier: Apache-2.0
// Whether the offset carry works on a device: a driver may cut global offsets to 32 bits, or its compiler may know
// better than the specification. So it is tried, once for each device, and not believed.
#ifndef HAWSER_SERVER_BACKENDS_OPENCL_SLICING_CARRY_PROBE_H_
#define HAWSER_SERVER_BACKENDS_OPENCL_SLICING_CARRY_PROBE_H_

#include <cstdint>

#include "server/backends/opencl/cl.h"

namespace hawser::server::slicing {

/// Runs a small kernel whole and in parts, in one and two dimensions, with and without offsets, and compares all that
/// the built-ins say. Compiles and waits for the device: not for the executor. False also when anything fails.
bool CarryWorks(cl_context context, cl_device_id device);

/// Names CarryWorks()'s question: other for another device, driver or prelude.
uint64_t CarryKey(cl_device_id device);

}  // namespace hawser::server::slicing

#endif  // HAWSER_SERVER_BACKENDS_OPENCL_SLICING_CARRY_PROBE_H_
