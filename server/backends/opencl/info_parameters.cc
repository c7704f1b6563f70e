// SPDX-License-Identifier: Apache-2.0
#include "server/backends/opencl/info_parameters.h"

#include <algorithm>
#include <initializer_list>

#include "server/backends/opencl/cl.h"

namespace hawser::server::ocl {
namespace {

struct Range {
  uint32_t first, last;
};

// Numbers instead of names where Debian 12's headers have no name, or another package's headers would.
constexpr Range kPlatformRanges[] = {
    {CL_PLATFORM_PROFILE, CL_PLATFORM_EXTENSIONS_WITH_VERSION},
    {CL_PLATFORM_ICD_SUFFIX_KHR, CL_PLATFORM_ICD_SUFFIX_KHR},
    {0x2036, 0x2038},  // semaphore types
    {0x2044, 0x2044},  // external memory import types
};

constexpr Range kDeviceRanges[] = {
    {CL_DEVICE_TYPE, 0x1076},  // 1.0 to 3.0, uuid, luid, integer dot product
    {0x12A9, 0x12AB},          // command buffers
    {0x12B0, 0x12B0},          // mutable dispatch
    {0x2031, 0x2031},          // terminate capability
    {0x2035, 0x2035},          // named barriers
    {0x204C, 0x204F},          // semaphores, external memory
    {0x4000, 0x400A},          // NV: compute capability, registers, warp size, PCI
    {0x4030, 0x404C},          // AMD: topology, board name, SIMD, wavefront, local memory, GFXIP
    {0x4055, 0x4058},          // EXT device fission
    {0x407E, 0x407F},          // INTEL motion estimation
    {0x4088, 0x4088},          // AMD peer-to-peer count
    {0x40A0, 0x40A1},          // QCOM memory padding, page size
    {0x40B6, 0x40B6},          // ARM SVM capabilities
    {0x40BF, 0x40BF},          // ARM compute units
    {0x40E0, 0x40E0},          // SPIR versions
    {0x4104, 0x4105},          // INTEL interops
    {0x4108, 0x410D},          // INTEL sub-group sizes, AVC motion estimation
    {0x410F, 0x410F},          // PCI bus
    {0x417E, 0x417F},          // INTEL planar YUV
    {0x418B, 0x418B},          // INTEL queue families
    {0x4190, 0x4194},          // INTEL unified shared memory
    {0x41E0, 0x41E4},          // ARM job slots, scheduling controls
    {0x41EA, 0x41EE},          // ARM warps, register allocations
    {0x4230, 0x4231},          // C++ for OpenCL, floating-point atomics
    {0x4250, 0x4256},          // INTEL device attributes
};

// Values that are handles of the server.
constexpr uint32_t kHandles[] = {CL_DEVICE_PLATFORM, CL_DEVICE_PARENT_DEVICE};

template <size_t kCount>
std::vector<uint32_t> Expand(const Range (&ranges)[kCount]) {
  std::vector<uint32_t> all;
  for (const Range& range : ranges) {
    for (uint32_t param = range.first; param <= range.last; ++param) {
      if (std::find(std::begin(kHandles), std::end(kHandles), param) == std::end(kHandles)) all.push_back(param);
    }
  }
  return all;
}

}  // namespace

const std::vector<uint32_t>& PlatformParameters() {
  static const std::vector<uint32_t> all = Expand(kPlatformRanges);
  return all;
}

const std::vector<uint32_t>& DeviceParameters() {
  static const std::vector<uint32_t> all = Expand(kDeviceRanges);
  return all;
}

}  // namespace hawser::server::ocl
