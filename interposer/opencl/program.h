// SPDX-License-Identifier: Apache-2.0
// What the files about programs share.
#ifndef HAWSER_INTERPOSER_OPENCL_PROGRAM_H_
#define HAWSER_INTERPOSER_OPENCL_PROGRAM_H_

#include "interposer/opencl/objects.h"
#include "proto/opencl/messages.h"

namespace hawser::ocl {

/// A new program of the context with its devices (null: all of the context's). Registered; the caller sends.
cl_program NewProgram(cl_context context, _cl_program::Origin origin, cl_uint num_devices, const cl_device_id* devices);

/// Checks a pair of number and list: CL_INVALID_VALUE if only one of them is there, CL_INVALID_DEVICE for devices that
/// are not among `known`. Gives the ids that go into a message.
cl_int CheckDevices(cl_uint num_devices, const cl_device_id* devices, const std::vector<cl_device_id>& known,
                    std::vector<wire::Id>* ids);

/// Takes over what a build told. `text` of kernels and logs is copied.
void ApplyBuild(cl_program program, const opencl::BuildResult& result);

}  // namespace hawser::ocl

#endif  // HAWSER_INTERPOSER_OPENCL_PROGRAM_H_
