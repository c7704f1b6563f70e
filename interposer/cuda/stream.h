// SPDX-License-Identifier: Apache-2.0
// Streams: their making and end, which one a handle means, and what is known of their progress.
#ifndef HAWSER_INTERPOSER_CUDA_STREAM_H_
#define HAWSER_INTERPOSER_CUDA_STREAM_H_

#include "interposer/cuda/client.h"

namespace hawser::cu {

/// `ours`: for this library's own commands.
CUresult MakeStream(CUctx_st* context, unsigned flags, int priority, CUstream_st** stream, bool ours = false);
void DestroyStream(CUstream_st* stream);

/// Which stream a handle means: a pointer, 0 (the legacy default stream, or the thread's own within a _ptsz variant),
/// CU_STREAM_LEGACY or CU_STREAM_PER_THREAD.
CUresult FindStream(CUstream handle, CUctx_st* context, CUstream_st** stream);

/// Whether something of the application's could be enqueued in the context that nothing keeps behind the stream's
/// commands: another of its streams, of those that do not synchronise with this one.
bool HasUnordered(const CUstream_st* stream);

/// A stream that is made from now on waits for what is in this one so far, if nothing else keeps it behind that.
CUresult MarkWrite(CUstream_st* stream);

/// Data on its way that comes before what the stream is given next.
Landings LandingsBefore(CUstream_st* stream);
/// Data on its way that a completion of the stream's commands so far implies.
Landings LandingsWithin(CUstream_st* stream);
/// The same for all streams of a context.
Landings LandingsOf(CUctx_st* context);
/// What is enqueued in any stream of the context, of later ones too, has to wait from now on for what `landings` come
/// before: no stream is known to be idle.
void HoldStreams(CUctx_st* context, const Landings& landings);
/// Waits until they have landed.
CUresult AwaitLandings(const Landings& landings);

/// True when it is known, without asking, that what is enqueued in the stream now has nothing to wait for: on the
/// server nothing is under way in it, and in no stream that it waits for.
bool IsKnownIdle(CUstream_st* stream);
/// What is waited for: the end of what the stream was given, or that a command that it is given now would be carried
/// out. They are not the same in a stream that waits for the legacy one.
enum class Until : uint8_t { kEnd, kTurn };
/// Waits, and until the data that comes before is here.
CUresult AwaitStream(CUstream_st* stream, Until until = Until::kEnd);
/// What else the end of the stream's work implies, where something that waits has told of it: what comes to the host by
/// then is there. `mark`: the mirrors', from before.
CUresult AfterWork(CUstream_st* stream, uint64_t mark);
/// The same for the application, which then finds in managed memory what the stream has left there.
CUresult SynchronizeStream(CUstream_st* stream, Until until = Until::kEnd);

}  // namespace hawser::cu

#endif  // HAWSER_INTERPOSER_CUDA_STREAM_H_
