// SPDX-License-Identifier: Apache-2.0
// Memory of a random CUDA program, and the operations on it that a stream or a graph can be given.
#ifndef HAWSER_TESTS_RANDOM_CUDA_OPERATION_H_
#define HAWSER_TESTS_RANDOM_CUDA_OPERATION_H_

#include <cuda.h>

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "tests/random/order.h"

namespace hawser::random {

enum class MemoryKind { kDevice, kPooled, kMapped, kGlobal, kManaged, kPinned, kRegistered, kPageable, kArray };
inline constexpr int kMemoryKinds = 9;
const char* Name(MemoryKind kind);

/// Host and device may write next to each other in memory that both of them reach, but not the same word: where they
/// have it each on its own, it goes from one to the other by words (docs/differences.md).
constexpr size_t Granule(MemoryKind kind) {
  return kind == MemoryKind::kManaged || kind == MemoryKind::kPinned || kind == MemoryKind::kRegistered ? 4 : 1;
}

/// Bytes somewhere. An array's are its rows, one after the other.
struct Memory {
  Memory(MemoryKind of, size_t bytes, std::mt19937_64& random)
      : kind(of), size(bytes), used(bytes, random, Granule(of)) {}
  const MemoryKind kind;
  const size_t size;
  UsedBytes used;
  int number = 0;
  CUdeviceptr device = 0;     ///< Where kernels reach it; 0 if they do not.
  uint8_t* host = nullptr;    ///< Where the host reaches it; null if it does not.
  CUarray array = nullptr;    ///< kArray.
  size_t width = 0;           ///< kArray: of a row.
  CUmodule module = nullptr;  ///< kGlobal: whose.
  size_t reserved = 0;        ///< kMapped: bytes.
  Agent only = kTheHost;      ///< kManaged: the stream whose it is alone; kTheHost: everybody's.
  int graphs = 0;             ///< That use it.

  bool IsPlainHost() const {
    return kind == MemoryKind::kPinned || kind == MemoryKind::kRegistered || kind == MemoryKind::kPageable;
  }
};

/// Bytes that an operation reads or writes.
struct Use {
  Memory* memory;
  size_t offset, size;
  bool write;
};

struct Side {
  Memory* memory = nullptr;
  size_t offset = 0;
  size_t pitch = 0;  ///< Between rows; an array's is its width.
};

/// What a host function is given.
struct HostMix {
  uint8_t* to;
  const uint8_t* from;
  size_t size;
  uint8_t factor, addend;
};

struct Kernels {
  CUfunction mix = nullptr;
};

/// to = what `from` has, or a value, or to * factor + from + addend, of `height` rows of `width` bytes.
struct Operation {
  enum class What { kCopy, kRectangle, kFill, kMix, kHostMix, kWriteValue };
  What what = What::kCopy;
  Side to, from;
  size_t width = 0, height = 1;
  unsigned element = 1;  ///< kFill: bytes.
  uint32_t value = 0;    ///< kFill, kWriteValue.
  uint8_t factor = 0, addend = 0;
  bool general = false;  ///< kCopy: by the call for whatever memory. kMix: host's address of pinned memory.

  std::vector<Use> Uses() const;
  /// What the bytes must be afterwards.
  void Apply() const;
  /// Source and destination share bytes in a way that makes the result a matter of chance.
  bool Overlaps() const;
  std::string Text() const;

  /// By a call that may come back before it is done. `mixes` keeps what host functions need.
  CUresult Issue(CUstream stream, const Kernels& kernels, std::deque<HostMix>* mixes) const;
  /// kCopy and kRectangle, by a call without a stream.
  CUresult IssueSynchronous() const;
  CUresult AddTo(CUgraph graph, const std::vector<CUgraphNode>& after, CUcontext context, const Kernels& kernels,
                 std::deque<HostMix>* mixes, CUgraphNode* node) const;
  /// A node of an executable graph is to do this from now on; it did the same with other numbers.
  CUresult Update(CUgraphExec executable, CUgraphNode node, CUcontext context, const Kernels& kernels) const;
};

/// Some byte is written by one and used by the other.
bool Conflict(const Operation& a, const Operation& b);

/// PTX of a module with mix(to, from, n, factor, addend) and the variable `bytes` of that size.
std::string ModuleText(size_t bytes, unsigned salt);

}  // namespace hawser::random

#endif  // HAWSER_TESTS_RANDOM_CUDA_OPERATION_H_
