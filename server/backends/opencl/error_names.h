// SPDX-License-Identifier: Apache-2.0
// Names of OpenCL error codes, for messages to people.
#ifndef HAWSER_SERVER_BACKENDS_OPENCL_ERROR_NAMES_H_
#define HAWSER_SERVER_BACKENDS_OPENCL_ERROR_NAMES_H_

#include <cstdint>
#include <string_view>

namespace hawser::server::ocl {

/// "CL_INVALID_VALUE" and the like; "an unknown error" for codes that the specification does not have.
std::string_view ErrorName(int32_t status);

}  // namespace hawser::server::ocl

#endif  // HAWSER_SERVER_BACKENDS_OPENCL_ERROR_NAMES_H_
