// SPDX-License-Identifier: Apache-2.0
#include "interposer/cuda/late_write.h"

#include "interposer/cuda/host_functions.h"
#include "interposer/cuda/transfer.h"

namespace hawser::cu {
namespace {

/// In any stream: which ones come before which is not known here.
bool HasFunctions() { return HostFunctions::Get().pending(); }

}  // namespace

bool IsPinned(const void* pointer) {
  const auto range = Client::Get().pointers().Find(reinterpret_cast<uintptr_t>(pointer));
  return range && range->is_host();
}

bool IsStillChanged(CUstream_st* stream, const HostRegion& region) {
  return (HasFunctions() || Overlaps(LandingsBefore(stream), region)) && IsPinned(region.base);
}

CUresult TakeLater(StreamCommand& command, uint64_t transfer, const HostRegion& region) {
  guest::Session* const session = command.session();
  const auto landing = std::make_shared<Landing>(region);
  const auto take = [session, transfer, region, landing](CUresult) {
    // Also behind an error: the server expects the data. Who frees the memory has waited for this.
    if (!session->lost()) (void)SendBulk(session, transfer, region);
    landing->landed.store(true, std::memory_order_release);
    session->Wake();
  };
  cuda::EnqueueHostFunction message;
  message.callback = HostFunctions::Get().Add(take, LandingsBefore(command.stream()), HostFunctions::Calls::kAlways);
  message.always = 1;
  // From here on whoever waits for the stream waits for this as well.
  command.stream()->landings.Add(landing);
  const CUresult error = command.Send(message);
  if (error == CUDA_SUCCESS) {
    HostFunctions::Get().Sent(message.callback);
  } else {
    HostFunctions::Get().Forget(message.callback);
    landing->landed.store(true, std::memory_order_release);
  }
  return error;
}

CUresult AwaitChanges(CUstream_st* stream, const HostRegion& region) {
  return HasFunctions() || Overlaps(LandingsBefore(stream), region) ? AwaitStream(stream) : CUDA_SUCCESS;
}

}  // namespace hawser::cu
