// SPDX-License-Identifier: Apache-2.0
// The file of a chunk that other processes may have (CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR): the chunk's bytes, and
// behind them a page that says what it is, out of every mapping's reach. Its size is sealed, so whoever maps it never
// faults. Who has a descriptor has the memory: it lives as long as a descriptor or a mapping, whoever made it.
//
// What the page says is not trusted: a program can write into it.
#ifndef HAWSER_SOFTCUDA_DRIVER_CHUNK_FILE_H_
#define HAWSER_SOFTCUDA_DRIVER_CHUNK_FILE_H_

#include <cuda.h>

#include <cstdint>

#include "softcuda/driver/shared_file.h"

namespace hawser::soft {

struct ChunkFacts {
  uint64_t size = 0;  ///< Bytes of the chunk; a multiple of the page size.
  int device = 0;     ///< Ordinal, as its maker counts.

  bool operator==(const ChunkFacts&) const = default;
};

/// A file of zeros. False when the system gives none.
bool CreateChunkFile(const ChunkFacts& facts, SharedFile* file);
/// What a descriptor that a program got from somewhere is. *file: a descriptor of its own; the program's stays the
/// program's. CUDA_ERROR_INVALID_VALUE: it is no chunk's. Never waits, whatever it is.
CUresult OpenChunkFile(int descriptor, SharedFile* file, ChunkFacts* facts);

}  // namespace hawser::soft

#endif  // HAWSER_SOFTCUDA_DRIVER_CHUNK_FILE_H_
