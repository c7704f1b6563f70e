// SPDX-License-Identifier: Apache-2.0
// How many blocks of a kernel fit on a multiprocessor at once, from the device's and the kernel's attributes.
// Source: "CUDA C++ Programming Guide", hardware multithreading, and the allocation units of its occupancy tables.
#ifndef HAWSER_INTERPOSER_CUDA_OCCUPANCY_H_
#define HAWSER_INTERPOSER_CUDA_OCCUPANCY_H_

#include <cstdint>
#include <functional>

namespace hawser::cu {

/// Of one multiprocessor, and what one block may take.
struct OccupancyDevice {
  uint32_t warp = 32;
  uint32_t threads = 2048;
  uint32_t blocks = 32;
  uint32_t registers = 65536;
  uint64_t shared = 0;           ///< Bytes.
  uint64_t shared_reserved = 0;  ///< Bytes that each block takes besides its own.
  uint32_t threads_per_block = 1024;
  uint64_t shared_per_block = 0;  ///< Most that a block may have.
  uint32_t multiprocessors = 1;
};

struct OccupancyKernel {
  uint32_t registers = 0;      ///< Of a thread.
  uint64_t shared_static = 0;  ///< Bytes.
  uint32_t threads = 1024;     ///< Most in a block.
  uint64_t dynamic_most = 0;   ///< Most dynamic shared memory.
};

/// 0: such a block does not fit at all.
uint32_t BlocksPerMultiprocessor(const OccupancyDevice& device, const OccupancyKernel& kernel, uint32_t threads,
                                 uint64_t dynamic_shared);

/// Blocks of a launch that the device can run at once, so that they may wait for each other. At least one for each
/// multiprocessor: whether a block fits at all is known elsewhere, and for other reasons.
uint64_t BlocksAtOnce(const OccupancyDevice& device, const OccupancyKernel& kernel, uint32_t threads,
                      uint64_t dynamic_shared);

struct BestBlock {
  uint32_t threads = 0;
  uint32_t grid = 0;  ///< Blocks that fill the device.
};
/// The block size with most threads at work; the largest of several. `dynamic_shared(threads)`: bytes for a block.
/// `limit` 0: none. Threads 0: nothing fits.
BestBlock FindBestBlock(const OccupancyDevice& device, const OccupancyKernel& kernel,
                        const std::function<uint64_t(uint32_t threads)>& dynamic_shared, uint32_t limit);

/// Most dynamic shared memory for each of `blocks` blocks that shall fit at once.
uint64_t SharedForBlocks(const OccupancyDevice& device, const OccupancyKernel& kernel, uint32_t blocks,
                         uint32_t threads);

}  // namespace hawser::cu

#endif  // HAWSER_INTERPOSER_CUDA_OCCUPANCY_H_
