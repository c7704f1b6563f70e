// SPDX-License-Identifier: Apache-2.0
// Writes whose data is not there yet when they are enqueued: natively an asynchronous copy reads pinned memory when its
// stream gets to it, so that it may copy what an earlier copy or host function of the stream has put there. Where the
// server has that memory (the session's heap) it does the same; elsewhere the data is taken when the call returns, as
// early as it can travel, unless something that comes before may still change it. Then the stream calls a function of
// this library before the write, as it calls those of programs (host_functions.h), and that sends the data.
//
// Pageable memory is copied when the call returns, as the manual says of such copies.
#ifndef HAWSER_INTERPOSER_CUDA_LATE_WRITE_H_
#define HAWSER_INTERPOSER_CUDA_LATE_WRITE_H_

#include "interposer/cuda/entry.h"
#include "interposer/cuda/host_region.h"

namespace hawser::cu {

/// True for memory that the application pinned or that this library did: an asynchronous read into it does not wait.
bool IsPinned(const void* pointer);

/// True when `region` is pinned and a copy into it, or any host function, may be before what is enqueued in the stream
/// now. Cheap where there is nothing of the kind.
bool IsStillChanged(CUstream_st* stream, const HostRegion& region);

/// The transfer's data is taken and sent when the stream gets here.
CUresult TakeLater(StreamCommand& command, uint64_t transfer, const HostRegion& region);

/// For copies that may wait: until what comes before in the stream has changed the region, pinned or not.
CUresult AwaitChanges(CUstream_st* stream, const HostRegion& region);

}  // namespace hawser::cu

#endif  // HAWSER_INTERPOSER_CUDA_LATE_WRITE_H_
