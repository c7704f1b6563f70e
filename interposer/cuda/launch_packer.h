// SPDX-License-Identifier: Apache-2.0
// What a launch checks and packs before it is sent.
#ifndef HAWSER_INTERPOSER_CUDA_LAUNCH_PACKER_H_
#define HAWSER_INTERPOSER_CUDA_LAUNCH_PACKER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "interposer/cuda/client.h"
#include "interposer/cuda/occupancy.h"

namespace hawser::cu {

using Dim3 = std::array<uint32_t, 3>;

/// What a device and a kernel allow.
struct LaunchLimits {
  Dim3 grid{};
  Dim3 block{};
  uint32_t threads_of_device = 0;
  uint32_t threads_of_kernel = 0;
  uint32_t dynamic_shared = 0;  ///< Bytes, as the kernel's attribute says.
};

/// CUDA_ERROR_INVALID_VALUE: a size is zero, or beyond what the device and the kernel allow;
/// CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES: more threads than the kernel allows (see WhyTooMany()).
CUresult CheckShape(const LaunchLimits& limits, const Dim3& grid, const Dim3& block, uint32_t shared);

/// Why a kernel does not allow so many threads in a block: CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES where its registers are
/// the reason, CUDA_ERROR_INVALID_VALUE where its launch bounds are. `registers`: of a thread; UINT32_MAX: not known.
CUresult WhyTooMany(uint64_t threads, uint32_t registers, uint32_t registers_of_block);

/// All of a launch's sizes. What is needed to explain a refusal is looked at only then.
CUresult CheckLaunch(const Device& device, const FunctionBase& function, const Dim3& grid, const Dim3& block,
                     uint32_t shared);

/// What the device and the kernel say of themselves.
OccupancyDevice OccupancyOf(const Device& device);
OccupancyKernel OccupancyOf(const FunctionBase& function);

/// CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE: blocks that may wait for each other do not all fit on the device. For
/// launches that CheckLaunch() has found right.
CUresult CheckCooperative(const Device& device, const FunctionBase& function, const Dim3& grid, const Dim3& block,
                          uint32_t shared);

/// The parameters of one launch as one block of bytes. Up to kInline bytes nothing is allocated.
class ParameterBlock {
 public:
  /// Either `parameters` (an address for each parameter) or `extra` (CU_LAUNCH_PARAM_BUFFER_...). The bytes may be the
  /// application's own: they are used before the launch returns.
  CUresult Pack(const FunctionBase& function, void* const* parameters, void* const* extra);
  std::span<const std::byte> bytes() const { return bytes_; }
  /// The same, to be changed: a copy, if they were the application's own.
  std::span<std::byte> Writable();

 private:
  static constexpr size_t kInline = 512;

  /// A place for so many bytes.
  std::byte* Reserve(size_t size);

  std::span<const std::byte> bytes_;
  std::unique_ptr<std::byte[]> large_;
  alignas(16) std::byte small_[kInline];
};

}  // namespace hawser::cu

#endif  // HAWSER_INTERPOSER_CUDA_LAUNCH_PACKER_H_
