// SPDX-License-Identifier: Apache-2.0
// Names and descriptions of the driver API's errors.
#ifndef HAWSER_PROTO_CUDA_API_ERROR_TEXT_H_
#define HAWSER_PROTO_CUDA_API_ERROR_TEXT_H_

#include <cstdint>

namespace hawser::cuda_api {

/// "CUDA_ERROR_INVALID_VALUE" and so on, as cuda.h spells it; null for a number that it does not name. Static storage.
const char* ErrorName(int32_t code);

/// A few words for a person, such as "illegal memory access by a kernel"; null for a number that cuda.h does not name.
/// Static storage.
const char* ErrorText(int32_t code);

}  // namespace hawser::cuda_api

#endif  // HAWSER_PROTO_CUDA_API_ERROR_TEXT_H_
