// SPDX-License-Identifier: Apache-2.0
#include "interposer/cuda/occupancy.h"

#include <algorithm>

namespace hawser::cu {
namespace {

constexpr uint64_t kRegisterUnit = 256;  ///< Registers are given to warps in such pieces.
constexpr uint64_t kWarpUnit = 4;        ///< Warps are spread over four schedulers with a register file each.
constexpr uint64_t kSharedUnit = 128;    ///< Bytes; from compute capability 8.0 on, coarser before.

uint64_t RoundUp(uint64_t value, uint64_t unit) { return (value + unit - 1) / unit * unit; }

}  // namespace

uint32_t BlocksPerMultiprocessor(const OccupancyDevice& device, const OccupancyKernel& kernel, uint32_t threads,
                                 uint64_t dynamic_shared) {
  if (threads == 0 || threads > std::min(device.threads_per_block, kernel.threads)) return 0;
  const uint64_t shared = kernel.shared_static + dynamic_shared;
  if (dynamic_shared > kernel.dynamic_most || (device.shared_per_block != 0 && shared > device.shared_per_block)) {
    return 0;
  }
  const uint64_t warps = RoundUp(threads, device.warp) / device.warp;
  uint64_t blocks = std::min<uint64_t>(device.blocks, device.threads / device.warp / warps);
  if (kernel.registers != 0) {
    const uint64_t per_warp = RoundUp(uint64_t{kernel.registers} * device.warp, kRegisterUnit);
    const uint64_t per_scheduler = device.registers / kWarpUnit / per_warp;
    blocks = std::min(blocks, per_scheduler * kWarpUnit / warps);
  }
  if (device.shared != 0) {
    const uint64_t taken = RoundUp(shared, kSharedUnit) + device.shared_reserved;
    if (taken != 0) blocks = std::min(blocks, device.shared / taken);
  }
  return static_cast<uint32_t>(blocks);
}

uint64_t BlocksAtOnce(const OccupancyDevice& device, const OccupancyKernel& kernel, uint32_t threads,
                      uint64_t dynamic_shared) {
  const uint32_t each = std::max(BlocksPerMultiprocessor(device, kernel, threads, dynamic_shared), 1u);
  return uint64_t{each} * std::max(device.multiprocessors, 1u);
}

BestBlock FindBestBlock(const OccupancyDevice& device, const OccupancyKernel& kernel,
                        const std::function<uint64_t(uint32_t)>& dynamic_shared, uint32_t limit) {
  const uint32_t most = std::min(device.threads_per_block, kernel.threads);
  BestBlock best;
  uint64_t best_threads = 0;
  const uint32_t top = limit == 0 ? most : std::min(most, limit);
  // Down from the largest, in whole warps; the first may be a part of one.
  for (uint32_t threads = top; threads != 0;) {
    const uint32_t blocks = BlocksPerMultiprocessor(device, kernel, threads, dynamic_shared(threads));
    const uint64_t at_work = uint64_t{blocks} * threads;
    if (at_work > best_threads) {
      best_threads = at_work;
      best = {threads, blocks * device.multiprocessors};
    }
    const uint32_t rest = threads % device.warp;
    const uint32_t step = rest != 0 ? rest : device.warp;
    threads = threads > step ? threads - step : 0;
  }
  return best;
}

uint64_t SharedForBlocks(const OccupancyDevice& device, const OccupancyKernel& kernel, uint32_t blocks,
                         uint32_t threads) {
  if (blocks == 0 || BlocksPerMultiprocessor(device, kernel, threads, 0) < blocks) return 0;
  const uint64_t each = device.shared / blocks / kSharedUnit * kSharedUnit;
  const uint64_t taken = kernel.shared_static + device.shared_reserved;
  const uint64_t left = each > taken ? each - taken : 0;
  const uint64_t allowed =
      device.shared_per_block > kernel.shared_static ? device.shared_per_block - kernel.shared_static : 0;
  return std::min(left, allowed);
}

}  // namespace hawser::cu
