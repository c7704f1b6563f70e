// SPDX-License-Identifier: Apache-2.0
// Memory of a random OpenCL program, and the commands on it.
#ifndef HAWSER_TESTS_RANDOM_OPENCL_OPERATION_H_
#define HAWSER_TESTS_RANDOM_OPENCL_OPERATION_H_

#include <CL/cl.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tests/random/order.h"

namespace hawser::random {

enum class MemoryKind { kBuffer, kSvm, kImage, kHost };
inline constexpr int kMemoryKinds = 4;
inline constexpr size_t kPixel = 4;  ///< Bytes of an image's.

/// Bytes somewhere. An image's are its rows, one after the other.
struct Memory {
  Memory(MemoryKind of, size_t bytes, std::mt19937_64& random) : kind(of), size(bytes), used(bytes, random) {}
  struct Part {
    cl_mem object;
    size_t offset, size;
  };
  const MemoryKind kind;
  const size_t size;
  UsedBytes used;
  int number = 0;
  cl_mem object = nullptr;     ///< Buffers and images.
  std::vector<Part> parts;     ///< Sub-buffers.
  uint8_t* pointer = nullptr;  ///< kSvm; kHost; buffers with CL_MEM_USE_HOST_PTR, which belongs to the buffer.
  size_t width = 0;            ///< kImage: bytes of a row.

  std::string Text() const;
};

/// Bytes that a command reads or writes.
struct Use {
  Memory* memory;
  size_t offset, size;
  bool write;
};

struct Side {
  Memory* memory = nullptr;
  size_t offset = 0;
  size_t pitch = 0;  ///< Between rows; an image's is its width.
};

/// to = what `from` has, or a value, or to * factor + from + addend, of `height` rows of `width` bytes.
struct Operation {
  enum class What { kCopy, kFill, kMix };
  What what = What::kCopy;
  Side to, from;
  size_t width = 0, height = 1;
  size_t element = 1;  ///< kFill: bytes.
  uint8_t value[16] = {};
  uint8_t factor = 0, addend = 0;
  bool parts = false;  ///< By sub-buffers, where there is one with these bytes.

  std::vector<Use> Uses() const;
  void Apply() const;
  /// One command does this.
  bool IsPossible() const;
  /// A command that can be made to wait.
  bool MayBlock() const;
  std::string Text() const;
  cl_int Enqueue(cl_command_queue queue, cl_kernel mix, bool blocking, const std::vector<cl_event>& after,
                 cl_event* event) const;
};

/// Kernel mix(to, to_offset, from, from_offset, n, factor, addend).
const char* Source();

}  // namespace hawser::random

#endif  // HAWSER_TESTS_RANDOM_OPENCL_OPERATION_H_
