// SPDX-License-Identifier: Apache-2.0
#include "interposer/cuda/stream.h"

#include <algorithm>
#include <vector>

#include "interposer/cuda/capture.h"
#include "interposer/cuda/entry.h"
#include "interposer/cuda/mirror.h"

namespace hawser::cu {
namespace {

/// All that was enqueued in this very stream is known to be done.
bool IsOver(const CUstream_st* stream) {
  return stream->finished.load(std::memory_order_acquire) >= stream->submitted.load(std::memory_order_relaxed);
}

/// Neither waits for the other. The legacy stream and those that block do, all others do not.
bool AreUnordered(const CUstream_st* one, const CUstream_st* other) {
  const CUstream_st* const legacy = one->context->legacy;
  if (one == other || one->own || other->own) return false;
  return (one != legacy && other != legacy) || !one->blocking() || !other->blocking();
}

/// What copies without a stream have written must be there for a new stream too, whose commands nothing else keeps
/// behind them.
CUresult FollowWrites(CUstream_st* made) {
  CUctx_st* const context = made->context;
  std::vector<CUstream_st*> writers;
  const auto look = [&](CUstream_st* stream) {
    const bool writes =
        stream->finished.load(std::memory_order_acquire) < stream->wrote.load(std::memory_order_acquire);
    if (writes && AreUnordered(stream, made)) writers.push_back(stream);
  };
  {
    const std::lock_guard lock(context->mutex);
    look(context->legacy);
    for (CUstream_st* stream : context->streams) look(stream);
  }
  for (CUstream_st* stream : writers) {
    cuda::WaitEvent message;
    {
      const std::lock_guard lock(stream->mutex);
      if (stream->write_mark_context != context->id) continue;
      message.event = stream->write_mark;
    }
    StreamCommand command;
    command.On(made);
    if (const CUresult error = command.Send(message); error != CUDA_SUCCESS) return error;
  }
  return CUDA_SUCCESS;
}

void ReleaseMark(const CUstream_st* stream) {
  if (!stream->write_mark) return;
  guest::Session* const session = Client::Get().session();
  cuda::Release message;
  message.object = stream->write_mark;
  session->Send(message);
  session->FreeId(stream->write_mark);
}

}  // namespace

bool HasUnordered(const CUstream_st* stream) {
  CUctx_st* const context = stream->context;
  const std::lock_guard lock(context->mutex);
  return std::any_of(context->streams.begin(), context->streams.end(),
                     [stream](const CUstream_st* other) { return AreUnordered(stream, other); });
}

CUresult MarkWrite(CUstream_st* stream) {
  CUctx_st* const context = stream->context;
  guest::Session* const session = Client::Get().session();
  cuda::RecordEvent message;
  {
    const std::lock_guard lock(stream->mutex);
    if (stream->write_mark_context != context->id) {
      ReleaseMark(stream);
      stream->write_mark = session->NewId(static_cast<uint8_t>(cuda::Handle::kEvent));
      stream->write_mark_context = context->id;
      cuda::CreateEvent create;
      create.event = stream->write_mark;
      create.context = context->id;
      create.flags = CU_EVENT_DISABLE_TIMING;
      if (const int32_t error = session->Send(create); error != 0) return FromWire(error);
    }
    message.event = stream->write_mark;
  }
  // Not under the lock: it may wait for room.
  StreamCommand command;
  command.On(stream);
  const CUresult error = command.Send(message);
  stream->wrote.store(stream->submitted.load(std::memory_order_relaxed), std::memory_order_release);
  return error;
}

CUresult MakeStream(CUctx_st* context, unsigned flags, int priority, CUstream_st** stream, bool ours) {
  Client& client = Client::Get();
  Device* device = client.device(context->device);
  auto* made = new CUstream_st(Kind::kStream, client.session()->NewId(static_cast<uint8_t>(cuda::Handle::kStream)));
  made->context = context;
  made->own = ours;
  made->flags = flags;
  made->priority = std::clamp(priority, device->greatest_priority, device->least_priority);
  made->number = client.NewNumber();
  Registry::Get().Add(made);
  cuda::CreateStream message;
  message.stream = made->id;
  message.context = context->id;
  message.flags = flags;
  message.priority = made->priority;
  if (const int32_t error = client.session()->Send(message); error != 0) {
    Registry::Get().Bury(made);
    return FromWire(error);
  }
  {
    const std::lock_guard lock(context->mutex);
    if (context->held) {
      made->submitted.store(1, std::memory_order_relaxed);
      made->Follow(context->held_after.Open());
    }
    context->streams.insert(made);
  }
  if (const CUresult error = FollowWrites(made); error != CUDA_SUCCESS) {
    DestroyStream(made);
    return error;
  }
  *stream = made;
  return CUDA_SUCCESS;
}

void DestroyStream(CUstream_st* stream) {
  {
    std::lock_guard lock(stream->context->mutex);
    stream->context->streams.erase(stream);
    // What is on its way still comes before a synchronisation of the context.
    LandingList& left = stream->blocking() ? stream->context->legacy->landings : stream->context->left;
    left.Add(stream->landings.Open());
    // What it leaves behind the legacy stream waits for, and nobody else can be asked about it.
    if (stream->blocking() && !IsOver(stream)) {
      stream->context->legacy->submitted.fetch_add(1, std::memory_order_relaxed);
    }
  }
  ReleaseMark(stream);
  guest::Session* session = Client::Get().session();
  cuda::Release message;
  message.object = stream->id;
  session->Send(message);
  const wire::Id id = stream->id;
  Registry::Get().Bury(stream);
  session->FreeId(id);
}

CUresult FindStream(CUstream handle, CUctx_st* context, CUstream_st** stream) {
  if (reinterpret_cast<uintptr_t>(handle) > 2) [[likely]] {
    *stream = handle;
    return CheckObject(handle, Kind::kStream);
  }
  ThreadState& thread = ThreadState::Get();
  if (handle == CU_STREAM_PER_THREAD || (handle == nullptr && thread.per_thread_calls != 0)) {
    return thread.DefaultStream(context, stream);
  }
  *stream = context->legacy;
  return CUDA_SUCCESS;
}

Landings LandingsOf(CUctx_st* context) {
  Landings landings;
  const auto add = [&landings](LandingList& of) {
    const Landings more = of.Open();
    landings.insert(landings.end(), more.begin(), more.end());
  };
  std::lock_guard lock(context->mutex);
  for (CUstream_st* stream : context->streams) add(stream->landings);
  add(context->legacy->landings);
  add(context->left);
  return landings;
}

Landings LandingsBefore(CUstream_st* stream) {
  CUctx_st* context = stream->context;
  Landings landings = stream->landings.Open();
  if (stream == context->legacy) {
    std::lock_guard lock(context->mutex);
    for (CUstream_st* other : context->streams) {
      if (!other->blocking()) continue;
      const Landings more = other->landings.Open();
      landings.insert(landings.end(), more.begin(), more.end());
    }
  } else if (stream->blocking()) {
    const Landings more = context->legacy->landings.Open();
    landings.insert(landings.end(), more.begin(), more.end());
  }
  return landings;
}

Landings LandingsWithin(CUstream_st* stream) {
  return stream == stream->context->legacy ? LandingsBefore(stream) : stream->landings.Open();
}

void HoldStreams(CUctx_st* context, const Landings& landings) {
  const auto hold = [&landings](CUstream_st* stream) {
    stream->submitted.fetch_add(1, std::memory_order_relaxed);
    stream->Follow(landings);
  };
  std::lock_guard lock(context->mutex);
  context->held = true;
  context->held_after.Add(landings);
  hold(context->legacy);
  for (CUstream_st* stream : context->streams) hold(stream);
}

CUresult AwaitLandings(const Landings& landings) {
  if (landings.empty()) return CUDA_SUCCESS;
  guest::Session* const session = Client::Get().session();
  auto landed = [&landings] { return AllLanded(landings); };
  // Bulk data is received in any case (ReceiveBulkInBackground), and wakes who waits on the command channel; what comes
  // there wakes nobody who waits on the other.
  const bool all_bulk = std::all_of(landings.begin(), landings.end(), [](const auto& each) { return each->bulk; });
  return FromWire(all_bulk ? session->WaitBulkUntil(landed) : session->WaitUntil(landed));
}

bool IsKnownIdle(CUstream_st* stream) {
  if (!IsOver(stream)) return false;
  if (!stream->blocking()) return true;
  CUctx_st* const context = stream->context;
  if (stream != context->legacy) return IsOver(context->legacy);
  std::lock_guard lock(context->mutex);
  // While another one captures, the server says what becomes of work in the legacy stream.
  return std::all_of(context->streams.begin(), context->streams.end(), [](const CUstream_st* other) {
    return !other->blocking() || (IsOver(other) && !other->capturing.load(std::memory_order_relaxed));
  });
}

CUresult AwaitStream(CUstream_st* stream, Until until) {
  const bool turn = until == Until::kTurn && stream->blocking();
  const uint64_t position = stream->submitted.load(std::memory_order_relaxed);
  const Landings landings = turn ? LandingsBefore(stream) : LandingsWithin(stream);
  guest::Session* const session = Client::Get().session();
  CUresult error = CUDA_SUCCESS;
  // The legacy stream also waits for others: what is known of it alone says nothing.
  if (!turn && stream != stream->context->legacy && position != 0 && IsOver(stream)) {
    session->Flush();
    session->Poll();
    error = static_cast<CUresult>(stream->context->fault.load(std::memory_order_relaxed));
  } else {
    cuda::SynchronizeStream message;
    message.context = stream->context->id;
    message.stream = stream->id;
    message.turn = turn ? 1 : 0;
    error = AskStatus(session, message);
  }
  if (error == CUDA_SUCCESS) error = AwaitLandings(landings);
  if (error != CUDA_SUCCESS) return error;
  uint64_t finished = stream->finished.load(std::memory_order_relaxed);
  while (finished < position && !stream->finished.compare_exchange_weak(finished, position)) {
  }
  return TakePending(stream->context);
}

CUresult AfterWork(CUstream_st* stream, uint64_t mark) {
  CUresult error = AwaitLandings(LandingsBefore(stream));
  if (error == CUDA_SUCCESS) error = TakePending(stream->context);
  return error != CUDA_SUCCESS ? error : Mirrors::Get().AfterWait(mark, stream->context, stream);
}

CUresult SynchronizeStream(CUstream_st* stream, Until until) {
  const uint64_t mark = Mirrors::Get().Mark();
  const CUresult error = AwaitStream(stream, until);
  return error != CUDA_SUCCESS ? error : Mirrors::Get().AfterWait(mark, stream->context, stream);
}

}  // namespace hawser::cu
