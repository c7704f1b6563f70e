// SPDX-License-Identifier: Apache-2.0
// Copies of linear memory: which way they go and whether the caller waits.
#ifndef HAWSER_INTERPOSER_CUDA_COPY_H_
#define HAWSER_INTERPOSER_CUDA_COPY_H_

#include <functional>

#include "interposer/cuda/transfer.h"

namespace hawser::cu {

/// What the calls without a stream do: they work on the legacy default stream (or the thread's own) and return when the
/// application may go on.
enum class CopyMode : uint8_t { kSynchronous, kAsynchronous };

/// The end of a call without a stream, whose copy has become `result`: waits for it in a process that shares memory.
inline CUresult Settle(const StreamCommand& command, CUresult result) {
  return result == CUDA_SUCCESS && Client::Get().sharing() ? SynchronizeStream(command.stream()) : result;
}

/// A call without a stream that copies from host memory. Natively it returns when the copy is complete or, from
/// pageable memory, all but: programs go on in a stream that nothing orders behind this one. So it waits where there is
/// one (HasUnordered); for streams that are made later a mark is left, for which those wait on the device.
class SynchronousWrite {
 public:
  /// Before the copy.
  explicit SynchronousWrite(const StreamCommand& command)
      : command_(command), before_(command.stream()->submitted.load(std::memory_order_relaxed)) {}
  CUresult End(CUresult result) {
    CUstream_st* const stream = command_.stream();
    if (result != CUDA_SUCCESS || Client::Get().sharing()) return Settle(command_, result);
    const bool by_caller = stream->submitted.load(std::memory_order_relaxed) == before_;
    if (by_caller || command_.capturing()) return CUDA_SUCCESS;
    if (HasUnordered(stream)) return SynchronizeStream(stream);
    result = MarkWrite(stream);
    // One that is made meanwhile may not have seen the mark.
    return result == CUDA_SUCCESS && HasUnordered(stream) ? SynchronizeStream(stream) : result;
  }

 private:
  const StreamCommand& command_;
  const uint64_t before_;
};

CUresult CopyToDevice(StreamCommand& command, CUdeviceptr to, const void* from, size_t size, CopyMode mode);
CUresult CopyFromDevice(StreamCommand& command, void* to, CUdeviceptr from, size_t size, CopyMode mode);
CUresult CopyOnDevice(StreamCommand& command, CUdeviceptr to, CUdeviceptr from, size_t size);
/// By where the addresses point.
CUresult CopyUnified(StreamCommand& command, CUdeviceptr to, CUdeviceptr from, size_t size, CopyMode mode);

/// A copy between host memories, in stream order: waits for its turn, or becomes a function of what is captured.
CUresult OnHost(StreamCommand& command, std::function<void()> copy);

/// Not the device's, nor managed.
bool IsHostMemory(CUdeviceptr address);

}  // namespace hawser::cu

#endif  // HAWSER_INTERPOSER_CUDA_COPY_H_
