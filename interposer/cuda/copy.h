// SPDX-License-Identifier: Apache-2.0
// Copies of linear memory: which way they go and whether the caller waits.
#ifndef HAWSER_INTERPOSER_CUDA_COPY_H_
#define HAWSER_INTERPOSER_CUDA_COPY_H_

#include "interposer/cuda/transfer.h"

namespace hawser::cu {

/// What the calls without a stream do: they work on the legacy default stream (or the thread's own) and return when the
/// application may go on.
enum class CopyMode : uint8_t { kSynchronous, kAsynchronous };

/// The end of a call without a stream, whose copy has become `result`: waits for it in a process that shares memory.
inline CUresult Settle(const StreamCommand& command, CUresult result) {
  return result == CUDA_SUCCESS && Client::Get().sharing() ? SynchronizeStream(command.stream()) : result;
}

CUresult CopyToDevice(StreamCommand& command, CUdeviceptr to, const void* from, size_t size, CopyMode mode);
CUresult CopyFromDevice(StreamCommand& command, void* to, CUdeviceptr from, size_t size, CopyMode mode);
CUresult CopyOnDevice(StreamCommand& command, CUdeviceptr to, CUdeviceptr from, size_t size);
/// By where the addresses point.
CUresult CopyUnified(StreamCommand& command, CUdeviceptr to, CUdeviceptr from, size_t size, CopyMode mode);

/// True for memory that the application pinned or that this library did: an asynchronous read into it does not wait.
bool IsPinned(const void* pointer);

}  // namespace hawser::cu

#endif  // HAWSER_INTERPOSER_CUDA_COPY_H_
