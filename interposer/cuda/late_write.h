// SPDX-License-Identifier: Apache-2.0
// Writes whose data is not there yet when they are enqueued: natively an asynchronous copy reads pinned memory when its
// stream gets to it, so that it may copy what an earlier copy or host function of the stream has put there. Where the
// server has that memory (the session's heap) it does the same; elsewhere the data is taken when the call returns, as
// early as it can travel, unless something that comes before may still change it. Then a function of this library takes
// the write's place in the stream, as those of programs do (host_functions.h), and writes in a stream of its own.
//
// Pageable memory is copied when the call returns, as the manual says of such copies.
#ifndef HAWSER_INTERPOSER_CUDA_LATE_WRITE_H_
#define HAWSER_INTERPOSER_CUDA_LATE_WRITE_H_

#include <functional>

#include "interposer/cuda/entry.h"
#include "interposer/cuda/host_region.h"

namespace hawser::cu {

/// True for memory that the application pinned or that this library did: an asynchronous read into it does not wait.
bool IsPinned(const void* pointer);

/// True when a copy into the region, or any host function, may be before what is enqueued in the stream now. Cheap
/// where there is nothing of the kind.
bool MayChange(CUstream_st* stream, const HostRegion& region);
/// The same of pinned memory; false for other.
bool IsStillChanged(CUstream_st* stream, const HostRegion& region);

/// Calls write(another command), which writes `region`, when the stream gets here; what comes behind in the stream
/// comes behind that write.
CUresult WriteLate(StreamCommand& command, const HostRegion& region, std::function<CUresult(StreamCommand&)> write);

/// What came last in the stream runs functions of the application that no call told of: for IsStillChanged(), until the
/// stream gets here.
CUresult MarkChanges(StreamCommand& command);
/// What comes behind in the stream finds the data of reads before it in the host's memory, should it look there.
CUresult AwaitInStream(StreamCommand& command);

/// For copies that may wait: until what comes before in the stream has changed the region, pinned or not.
CUresult AwaitChanges(CUstream_st* stream, const HostRegion& region);

}  // namespace hawser::cu

#endif  // HAWSER_INTERPOSER_CUDA_LATE_WRITE_H_
