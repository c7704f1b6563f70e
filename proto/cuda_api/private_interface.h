// SPDX-License-Identifier: Apache-2.0
// What is said when somebody asks for the driver's private interfaces (cuGetExportTable), which are neither implemented
// nor imitated.
#ifndef HAWSER_PROTO_CUDA_API_PRIVATE_INTERFACE_H_
#define HAWSER_PROTO_CUDA_API_PRIVATE_INTERFACE_H_

#include <string>

namespace hawser::cuda_api {

/// For people: which file the caller's code is of, why its CUDA calls will fail, and what to do. `caller` is an address
/// in that code. Any thread.
std::string PrivateInterfaceText(const void* caller);

}  // namespace hawser::cuda_api

#endif  // HAWSER_PROTO_CUDA_API_PRIVATE_INTERFACE_H_
