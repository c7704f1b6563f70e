// SPDX-License-Identifier: Apache-2.0
// Memory in chunks that several processes have: which part of its chunks it is. Travels in place of a driver's handle,
// beside the chunks' descriptors.
#ifndef HAWSER_SERVER_BACKENDS_CUDA_SHARED_CHUNKS_H_
#define HAWSER_SERVER_BACKENDS_CUDA_SHARED_CHUNKS_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace hawser::server::cuda_backend {

/// In bytes. All chunks are of one size, but the last may be smaller.
struct SharedChunks {
  uint64_t step = 0;    ///< Of a chunk.
  uint64_t total = 0;   ///< Of all of them.
  uint64_t offset = 0;  ///< Where the memory begins.

  bool operator==(const SharedChunks&) const = default;

  size_t count() const { return step == 0 ? 0 : static_cast<size_t>(total / step + (total % step != 0 ? 1 : 0)); }
  uint64_t SizeOf(size_t index) const { return std::min(step, total - index * step); }

  /// Whether `size` bytes of memory can lie so in `files` chunks of whole granules: another process says it.
  bool Sensible(uint64_t size, size_t files, uint64_t granularity) const {
    return step != 0 && step % granularity == 0 && total % granularity == 0 && files != 0 && count() == files &&
           size != 0 && offset < total && size <= total - offset;
  }

  std::array<std::byte, 64> Encode() const {
    std::array<std::byte, 64> handle{};
    std::memcpy(handle.data(), this, sizeof(*this));
    return handle;
  }
  static SharedChunks Decode(const std::array<std::byte, 64>& handle) {
    SharedChunks chunks;
    std::memcpy(&chunks, handle.data(), sizeof(chunks));
    return chunks;
  }
};

}  // namespace hawser::server::cuda_backend

#endif  // HAWSER_SERVER_BACKENDS_CUDA_SHARED_CHUNKS_H_
