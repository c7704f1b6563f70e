// SPDX-License-Identifier: Apache-2.0
// Names of OpenCL's error codes, for the log.
#ifndef HAWSER_PROTO_FACTS_ERROR_NAMES_H_
#define HAWSER_PROTO_FACTS_ERROR_NAMES_H_

#include <cstdint>

namespace hawser::opencl {

/// "CL_INVALID_VALUE" and so on; "an unknown OpenCL error" for codes that the headers do not name. Static storage.
const char* ErrorName(int32_t code);

}  // namespace hawser::opencl

#endif  // HAWSER_PROTO_FACTS_ERROR_NAMES_H_
