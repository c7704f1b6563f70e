// SPDX-License-Identifier: Apache-2.0
// Which interface's calls a session makes. The first frame says it; a session has one for its whole life.
#ifndef HAWSER_WIRE_API_H_
#define HAWSER_WIRE_API_H_

#include <cstdint>
#include <string_view>

namespace hawser::wire {

/// Numbers on the wire (Hello.api).
enum class Api : uint8_t { kOpenCl = 0, kCuda = 1 };
inline constexpr uint32_t kApiCount = 2;

constexpr std::string_view ApiName(Api api) { return api == Api::kCuda ? "CUDA" : "OpenCL"; }

}  // namespace hawser::wire

#endif  // HAWSER_WIRE_API_H_
