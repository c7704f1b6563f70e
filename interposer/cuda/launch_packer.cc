// SPDX-License-Identifier: Apache-2.0
#include "interposer/cuda/launch_packer.h"

#include <algorithm>
#include <cstring>

namespace hawser::cu {
namespace {

constexpr size_t kMaxParameters = 65536;  ///< As the description has it.

uint32_t Of(const Device& device, CUdevice_attribute attribute) {
  const int value = device.attribute(attribute);
  return value > 0 ? static_cast<uint32_t>(value) : 0;
}

bool Within(const Dim3& sizes, const Dim3& limits) {
  for (size_t i = 0; i < 3; ++i) {
    // A device that says nothing limits nothing.
    if (sizes[i] == 0 || (limits[i] != 0 && sizes[i] > limits[i])) return false;
  }
  return true;
}

uint32_t Of(const FunctionBase& function, CUfunction_attribute attribute) {
  if (static_cast<uint32_t>(attribute) >= function.attribute_count) return UINT32_MAX;
  const int32_t value = function.attributes[static_cast<size_t>(attribute)].load(std::memory_order_relaxed);
  return value < 0 ? UINT32_MAX : static_cast<uint32_t>(value);
}

LaunchLimits LimitsOf(const Device& device, const FunctionBase& function) {
  LaunchLimits limits;
  limits.grid = {Of(device, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X), Of(device, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y),
                 Of(device, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z)};
  limits.block = {Of(device, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X), Of(device, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y),
                  Of(device, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z)};
  limits.threads_of_device = Of(device, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  limits.threads_of_kernel = Of(function, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  limits.dynamic_shared = Of(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
  return limits;
}

uint64_t Product(const Dim3& sizes) { return uint64_t{sizes[0]} * sizes[1] * sizes[2]; }

}  // namespace

CUresult CheckShape(const LaunchLimits& limits, const Dim3& grid, const Dim3& block, uint32_t shared) {
  if (!Within(grid, limits.grid) || !Within(block, limits.block)) return CUDA_ERROR_INVALID_VALUE;
  const uint64_t threads = Product(block);
  if (limits.threads_of_device != 0 && threads > limits.threads_of_device) return CUDA_ERROR_INVALID_VALUE;
  if (threads > limits.threads_of_kernel) return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
  return shared > limits.dynamic_shared ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult WhyTooMany(uint64_t threads, uint32_t registers, uint32_t registers_of_block) {
  // Whole warps get registers, eight for each thread at a time; what fits was excluded by launch bounds.
  const uint64_t of_thread = (uint64_t{registers} + 7) / 8 * 8;
  const uint64_t padded = (threads + 31) / 32 * 32;
  return padded * of_thread > registers_of_block ? CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES : CUDA_ERROR_INVALID_VALUE;
}

CUresult CheckLaunch(const Device& device, const FunctionBase& function, const Dim3& grid, const Dim3& block,
                     uint32_t shared) {
  const CUresult error = CheckShape(LimitsOf(device, function), grid, block, shared);
  if (error != CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES) [[likely]]
    return error;
  return WhyTooMany(Product(block), Of(function, CU_FUNC_ATTRIBUTE_NUM_REGS),
                    Of(device, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK));
}

OccupancyDevice OccupancyOf(const Device& device) {
  OccupancyDevice of;
  of.warp = std::max(Of(device, CU_DEVICE_ATTRIBUTE_WARP_SIZE), 1u);
  of.threads = Of(device, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
  of.blocks = Of(device, CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR);
  of.registers = Of(device, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR);
  of.shared = Of(device, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
  of.shared_reserved = Of(device, CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK);
  of.threads_per_block = Of(device, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  of.shared_per_block = Of(device, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
  of.multiprocessors = Of(device, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  return of;
}

OccupancyKernel OccupancyOf(const FunctionBase& function) {
  const auto get = [&function](CUfunction_attribute attribute) {
    const int32_t value = function.attributes[static_cast<size_t>(attribute)].load(std::memory_order_relaxed);
    return static_cast<uint32_t>(std::max(value, 0));
  };
  OccupancyKernel of;
  of.registers = get(CU_FUNC_ATTRIBUTE_NUM_REGS);
  of.shared_static = get(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
  of.threads = get(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  of.dynamic_most = get(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
  return of;
}

CUresult CheckCooperative(const Device& device, const FunctionBase& function, const Dim3& grid, const Dim3& block,
                          uint32_t shared) {
  const auto threads = static_cast<uint32_t>(Product(block));
  const uint64_t most = BlocksAtOnce(OccupancyOf(device), OccupancyOf(function), threads, shared);
  // Each size is below 2^31 for the first and 2^16 for the others: the product does not overflow.
  return Product(grid) > most ? CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE : CUDA_SUCCESS;
}

std::byte* ParameterBlock::Reserve(size_t size) {
  if (size <= kInline) return small_;
  large_ = std::make_unique<std::byte[]>(size);
  return large_.get();
}

std::span<std::byte> ParameterBlock::Writable() {
  if (bytes_.data() != small_ && bytes_.data() != large_.get()) {
    std::byte* const to = Reserve(bytes_.size());
    std::memcpy(to, bytes_.data(), bytes_.size());
    bytes_ = {to, bytes_.size()};
  }
  return {bytes_.data() == small_ ? small_ : large_.get(), bytes_.size()};
}

CUresult ParameterBlock::Pack(const FunctionBase& function, void* const* parameters, void* const* extra) {
  if (parameters != nullptr) {
    if (extra != nullptr) return CUDA_ERROR_INVALID_VALUE;
    const size_t size = function.parameter_bytes;
    std::byte* const to = Reserve(size);
    // Padding between parameters is never the stack's old contents.
    std::memset(to, 0, size);
    for (size_t i = 0; i < function.offsets.size(); ++i) {
      if (parameters[i] == nullptr) return CUDA_ERROR_INVALID_VALUE;
      std::memcpy(to + function.offsets[i], parameters[i], function.sizes[i]);
    }
    bytes_ = {to, size};
    return CUDA_SUCCESS;
  }
  if (extra == nullptr) {
    bytes_ = {};
    return function.parameter_bytes == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  }
  const std::byte* buffer = nullptr;
  const size_t* size = nullptr;
  for (size_t i = 0; i < 8 && extra[i] != CU_LAUNCH_PARAM_END; i += 2) {
    if (extra[i] == CU_LAUNCH_PARAM_BUFFER_POINTER) {
      buffer = static_cast<const std::byte*>(extra[i + 1]);
    } else if (extra[i] == CU_LAUNCH_PARAM_BUFFER_SIZE) {
      size = static_cast<const size_t*>(extra[i + 1]);
    } else {
      return CUDA_ERROR_INVALID_VALUE;
    }
  }
  if (size == nullptr || *size > kMaxParameters || (buffer == nullptr && *size != 0)) return CUDA_ERROR_INVALID_VALUE;
  if (*size < function.parameter_bytes) return CUDA_ERROR_INVALID_VALUE;
  bytes_ = {buffer, *size};
  return CUDA_SUCCESS;
}

}  // namespace hawser::cu
