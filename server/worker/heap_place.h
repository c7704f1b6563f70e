// SPDX-License-Identifier: Apache-2.0
// Where a worker maps the heap that it shares with its guest.
//
// The guest maps the same pages at the same addresses, so that a kernel takes the host's own address of pinned memory
// (unified addressing, CUDA C++ Programming Guide). Where the kernel places a mapping by itself, each process finds
// something of its own there once in some hundred runs: both fill the same part of the address space from the top. So
// heaps lie at a random place in a part that systems leave alone.
#ifndef HAWSER_SERVER_WORKER_HEAP_PLACE_H_
#define HAWSER_SERVER_WORKER_HEAP_PLACE_H_

#include <cstddef>
#include <cstdint>

#include "wire/status.h"

namespace hawser::server {

/// The part in which heaps lie: above the software device's addresses, below what Linux gives out (programs, libraries,
/// stacks).
inline constexpr uint64_t kHeapsBegin = 0x3000'0000'0000;
inline constexpr uint64_t kHeapsEnd = 0x5000'0000'0000;

/// Maps `size` bytes of `file` for reading and writing, shared, at a random place of that part; where the system has no
/// such addresses (limited or smaller address spaces, sanitizers), where it likes. The caller unmaps. Any thread.
wire::Result<std::byte*> MapHeap(uint64_t size, int file);

}  // namespace hawser::server

#endif  // HAWSER_SERVER_WORKER_HEAP_PLACE_H_
