// SPDX-License-Identifier: Apache-2.0
#include "interposer/cuda/late_write.h"

#include "interposer/cuda/host_functions.h"
#include "interposer/cuda/transfer.h"

namespace hawser::cu {
namespace {

/// In any stream: which ones come before which is not known here.
bool HasFunctions() { return HostFunctions::Get().pending(); }

/// A function that does nothing, once these have landed.
CUresult EnqueueNothing(StreamCommand& command, const Landings& before) {
  return HostFunctions::Get().Enqueue(
      command, [](CUresult) {}, before, HostFunctions::Calls::kOurs);
}

}  // namespace

bool IsPinned(const void* pointer) {
  const auto range = Client::Get().pointers().Find(reinterpret_cast<uintptr_t>(pointer));
  return range && range->is_host();
}

bool MayChange(CUstream_st* stream, const HostRegion& region) {
  return HasFunctions() || Overlaps(LandingsBefore(stream), region);
}

bool IsStillChanged(CUstream_st* stream, const HostRegion& region) {
  return MayChange(stream, region) && IsPinned(region.base);
}

CUresult WriteLate(StreamCommand& command, const HostRegion& region, std::function<CUresult(StreamCommand&)> write) {
  guest::Session* const session = command.session();
  CUctx_st* const context = command.context();
  CUstream_st* own = nullptr;
  if (const CUresult error = MakeStream(context, CU_STREAM_NON_BLOCKING, 0, &own, /*ours=*/true);
      error != CUDA_SUCCESS) {
    return error;
  }
  const auto landing = std::make_shared<Landing>(region);
  const auto take = [session, context, own, landing, write = std::move(write)](CUresult status) {
    // Not when the session or the context has ended: the memory may be gone too. Who frees it before has waited for
    // this.
    if (!session->lost() && CheckObject(own, Kind::kStream) == CUDA_SUCCESS) {
      StreamCommand then;
      then.On(own);
      CUresult written = status == CUDA_SUCCESS ? write(then) : CUDA_SUCCESS;  // Nothing is copied behind an error.
      if (written == CUDA_SUCCESS) written = AwaitStream(own);
      int32_t none = 0;
      // The program hears of it from the next call that may tell.
      if (written != CUDA_SUCCESS) context->pending.compare_exchange_strong(none, written);
      DestroyStream(own);
    }
    landing->Land();
    session->Wake();
  };
  Landings before = LandingsBefore(command.stream());
  // From here on whoever waits for the stream waits for this as well.
  command.stream()->Follow(landing);
  const CUresult error = HostFunctions::Get().Enqueue(command, take, std::move(before), HostFunctions::Calls::kOurs);
  if (error != CUDA_SUCCESS) {
    landing->Land();
    DestroyStream(own);
  }
  return error;
}

CUresult MarkChanges(StreamCommand& command) { return EnqueueNothing(command, {}); }

CUresult AwaitInStream(StreamCommand& command) {
  const Landings landings = LandingsBefore(command.stream());
  return landings.empty() ? CUDA_SUCCESS : EnqueueNothing(command, landings);
}

CUresult AwaitChanges(CUstream_st* stream, const HostRegion& region) {
  return MayChange(stream, region) ? AwaitStream(stream, Until::kTurn) : CUDA_SUCCESS;
}

}  // namespace hawser::cu
