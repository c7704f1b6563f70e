// SPDX-License-Identifier: Apache-2.0
#include "interposer/cuda/graph_memory.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "interposer/cuda/capture.h"
#include "interposer/cuda/graph.h"
#include "interposer/cuda/host_functions.h"

namespace hawser::cu {
namespace {

constexpr uint32_t kStaging = 3;

cuda::CopySide AddressSide(CUdeviceptr address, uint64_t size) {
  cuda::CopySide side;
  side.address = address;
  side.pitch = size;
  side.height = 1;
  return side;
}

/// send(command, copy) for each of them, in a stream of their own, until all of it is done.
template <typename Send>
CUresult InOwnStream(const HostCopies& copies, const Send& send) {
  if (copies.empty()) return CUDA_SUCCESS;
  CUstream_st* own = nullptr;
  CUresult error = MakeStream(copies.front()->context, CU_STREAM_NON_BLOCKING, 0, &own, /*ours=*/true);
  if (error != CUDA_SUCCESS) return error;
  StreamCommand command;
  command.On(own);
  for (const auto& copy : copies) {
    if (error == CUDA_SUCCESS) error = send(command, *copy);
  }
  if (error == CUDA_SUCCESS) error = AwaitStream(own);
  DestroyStream(own);
  return error;
}

CUresult Fetch(StreamCommand& command, const HostCopy& copy) {
  cuda::ReadStaging message;
  message.staging = copy.staging;
  message.size = copy.memory.bytes();
  return SendRead(command, message, copy.memory, /*wait=*/false);
}

/// The copy becomes a node of the capture's graph.
CUresult AddCopy(StreamCommand& command, const cuda::CopySide& device, const HostRegion& memory, bool to_host) {
  const std::shared_ptr<Capture> capture = Captures::Of(command.stream());
  if (capture == nullptr) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (!to_host) {
    if (const CUresult error = CaptureHandOver(command, memory); error != CUDA_SUCCESS) return error;
  }
  std::shared_ptr<HostCopy> copy;
  if (const CUresult error = MakeHostCopy(command.context(), memory, to_host, &copy); error != CUDA_SUCCESS) {
    return error;
  }
  {
    std::lock_guard lock(capture->graph->mutex);
    capture->graph->host_copies.push_back(copy);
  }
  cuda::CopyRegion message;
  message.destination = to_host ? SideOf(*copy) : device;
  message.source = to_host ? device : SideOf(*copy);
  message.width_bytes = memory.width;
  message.height = memory.height;
  message.depth = memory.depth;
  return command.Send(message);
}

}  // namespace

HostCopy::~HostCopy() {
  if (!staging || Client::Get().Check() != CUDA_SUCCESS) return;
  guest::Session* session = Client::Get().session();
  cuda::Release message;
  message.object = staging;
  session->Send(message);
  session->FreeId(staging);
}

GraphFunction::~GraphFunction() { HostFunctions::Get().Forget(callback); }

std::shared_ptr<const GraphFunction> TakeOut(GraphFunctions* functions, uint64_t callback) {
  const auto at = std::find_if(functions->begin(), functions->end(),
                               [callback](const auto& each) { return each->callback == callback; });
  if (at == functions->end()) return nullptr;
  std::shared_ptr<const GraphFunction> taken = *at;
  functions->erase(at);
  return taken;
}

CUresult MakeHostCopy(CUctx_st* context, const HostRegion& memory, bool to_host, std::shared_ptr<HostCopy>* copy) {
  guest::Session* session = Client::Get().session();
  auto made = std::make_shared<HostCopy>();
  made->context = context;
  made->memory = memory;
  made->to_host = to_host;
  made->staging = session->NewId(static_cast<uint8_t>(cuda::Handle::kStaging));
  cuda::CreateStaging message;
  message.staging = made->staging;
  message.context = context->id;
  message.size = memory.bytes();
  const CUresult error = FromWire(session->Send(message));
  if (error == CUDA_SUCCESS) *copy = std::move(made);
  return error;
}

bool IsBroughtTo(const HostRegion& memory, const HostCopies& copies) {
  const auto brings = [&memory](const auto& copy) {
    const HostRegion& to = copy->memory;
    return copy->to_host && to.base < memory.base + memory.extent() && memory.base < to.base + to.extent();
  };
  return std::any_of(copies.begin(), copies.end(), brings);
}

CUresult CaptureHandOver(StreamCommand& command, const HostRegion& memory) {
  const std::shared_ptr<Capture> capture = Captures::Of(command.stream());
  if (capture == nullptr) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  {
    std::lock_guard lock(capture->graph->mutex);
    if (!IsBroughtTo(memory, capture->graph->host_copies)) return CUDA_SUCCESS;
  }
  return HostFunctions::Get().Enqueue(
      command, [](CUresult) {}, {}, HostFunctions::Calls::kOursOften);
}

cuda::CopySide SideOf(const HostCopy& copy) {
  cuda::CopySide side;
  side.kind = kStaging;
  side.object = copy.staging;
  side.pitch = copy.memory.width;
  side.height = copy.memory.height;
  return side;
}

CUresult CaptureWrite(StreamCommand& command, CUdeviceptr to, const HostRegion& from) {
  return AddCopy(command, AddressSide(to, from.width), from, /*to_host=*/false);
}

CUresult CaptureRead(StreamCommand& command, CUdeviceptr from, const HostRegion& to) {
  return AddCopy(command, AddressSide(from, to.width), to, /*to_host=*/true);
}

CUresult CaptureWrite(StreamCommand& command, const cuda::CopySide& to, const HostRegion& from) {
  return AddCopy(command, to, from, /*to_host=*/false);
}

CUresult CaptureRead(StreamCommand& command, const cuda::CopySide& from, const HostRegion& to) {
  return AddCopy(command, from, to, /*to_host=*/true);
}

CUresult LaunchOrder::Before(StreamCommand& command) {
  CUstream_st* const stream = command.stream();
  if (!event_ || (stream->id == stream_ && stream->context->id == context_)) return CUDA_SUCCESS;
  stream->Follow(landings_.Open());
  cuda::WaitEvent message;
  message.event = event_;
  const CUresult error = command.Send(message);
  // The next launch has another one: to record this one again would have to wait until the wait is under way.
  Drop();
  return error;
}

CUresult LaunchOrder::After(StreamCommand& command) {
  CUstream_st* const stream = command.stream();
  if (event_ && stream->context->id != context_) Drop();
  if (!event_) {
    event_ = command.session()->NewId(static_cast<uint8_t>(cuda::Handle::kEvent));
    context_ = stream->context->id;
    cuda::CreateEvent message;
    message.event = event_;
    message.context = context_;
    message.flags = CU_EVENT_DISABLE_TIMING;
    if (const CUresult error = FromWire(command.session()->Send(message)); error != CUDA_SUCCESS) return error;
  }
  stream_ = stream->id;
  landings_.Assign(LandingsBefore(stream));
  cuda::RecordEvent message;
  message.event = event_;
  const CUresult error = command.Send(message);
  position_ = stream->submitted.load(std::memory_order_relaxed);
  return error;
}

CUresult LaunchOrder::Await() {
  if (!event_) return CUDA_SUCCESS;
  cuda::SynchronizeEvent message;
  message.event = event_;
  return AskStatus(Client::Get().session(), message);
}

bool LaunchOrder::IsKnownOver() const {
  if (!event_) return true;
  uint64_t finished = 0;
  Registry::Get().With(stream_ ? stream_ : context_, [&](const Object& object) {
    const CUstream_st& stream =
        stream_ ? static_cast<const CUstream_st&>(object) : *static_cast<const CUctx_st&>(object).legacy;
    finished = stream.finished.load(std::memory_order_acquire);
  });
  return finished >= position_;
}

void LaunchOrder::Keep(GraphFunctions functions) {
  if (functions.empty() || IsKnownOver()) return;
  CUctx_st* context = nullptr;  // Null: with it its launches have ended.
  CUstream_st* own = nullptr;
  Registry::Get().With(context_, [&](Object& object) { context = static_cast<CUctx_st*>(&object); });
  if (context == nullptr || MakeStream(context, CU_STREAM_NON_BLOCKING, 0, &own, /*ours=*/true) != CUDA_SUCCESS) return;
  StreamCommand command;
  command.On(own);
  cuda::WaitEvent message;
  message.event = event_;
  if (command.Send(message) == CUDA_SUCCESS) {
    (void)HostFunctions::Get().Enqueue(
        command, [kept = std::move(functions)](CUresult) {}, {}, HostFunctions::Calls::kOurs);
  }
  DestroyStream(own);
  command.session()->Flush();
}

void LaunchOrder::Drop() {
  const wire::Id event = std::exchange(event_, {});
  if (!event || Client::Get().Check() != CUDA_SUCCESS) return;
  guest::Session* const session = Client::Get().session();
  cuda::Release message;
  message.object = event;
  session->Send(message);
  session->FreeId(event);
}

CUresult FillBefore(StreamCommand& command, const HostCopies& copies) {
  for (const auto& copy : copies) {
    cuda::WriteStaging message;
    message.staging = copy->staging;
    message.size = copy->memory.bytes();
    // A graph's copies read the memory when it is their turn, pinned or not.
    const CUresult error = MayChange(command.stream(), copy->memory) ? SendWriteLate(command, message, copy->memory)
                                                                     : SendWriteNow(command, message, copy->memory);
    if (error != CUDA_SUCCESS) return error;
  }
  return CUDA_SUCCESS;
}

CUresult FetchAfter(StreamCommand& command, const HostCopies& copies) {
  for (const auto& copy : copies) {
    if (!copy->to_host) continue;
    if (const CUresult error = Fetch(command, *copy); error != CUDA_SUCCESS) return error;
  }
  return CUDA_SUCCESS;
}

CUresult FetchFor(const FunctionMemory& memory) {
  // Guards all copies' run_since, and is held until what one function fetches is there for the others too.
  static std::mutex mutex;
  std::lock_guard lock(mutex);
  HostCopies missing;
  for (const auto& copy : memory.fetch) {
    const bool again = copy->run_in != memory.graph || copy->run_since.contains(memory.function);
    copy->run_in = memory.graph;
    if (again) copy->run_since.clear();
    if (copy->run_since.empty()) missing.push_back(copy);
    copy->run_since.insert(memory.function);
  }
  return InOwnStream(missing, Fetch);
}

CUresult FillFor(const FunctionMemory& memory) {
  return InOwnStream(memory.fill, [](StreamCommand& command, const HostCopy& copy) {
    cuda::WriteStaging message;
    message.staging = copy.staging;
    message.size = copy.memory.bytes();
    return SendWriteNow(command, message, copy.memory);
  });
}

}  // namespace hawser::cu
