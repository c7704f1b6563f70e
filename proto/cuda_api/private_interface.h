// SPDX-License-Identifier: Apache-2.0
// What is said when somebody asks for the driver's private interfaces (cuGetExportTable), which are neither implemented
// nor imitated.
#ifndef HAWSER_PROTO_CUDA_API_PRIVATE_INTERFACE_H_
#define HAWSER_PROTO_CUDA_API_PRIVATE_INTERFACE_H_

#include <string>
#include <string_view>

namespace hawser::cuda_api {

/// The library in that file asks for private interfaces and does not need them.
bool WorksWithout(std::string_view path);

/// For people: which file the caller's code is of, why its CUDA calls will fail, and what to do. `caller` is an address
/// in that code. Empty when nothing need be said: NVIDIA's run-time compilers ask too, and go on without. Any thread.
std::string PrivateInterfaceText(const void* caller);

}  // namespace hawser::cuda_api

#endif  // HAWSER_PROTO_CUDA_API_PRIVATE_INTERFACE_H_
