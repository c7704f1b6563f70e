// SPDX-License-Identifier: Apache-2.0
// Memory and events that the tenant's other processes use too. The drivers do the sharing; what goes from guest to
// guest are tokens of hawserd (server/exported.h).
#include <cstring>
#include <functional>
#include <utility>

#include "server/backends/cuda/backend.h"
#include "server/backends/cuda/publication.h"

namespace hawser::server::cuda_backend {
namespace {

static_assert(sizeof(CUipcMemHandle) == sizeof(ExportedThing::handle) &&
              sizeof(CUipcEventHandle) == sizeof(ExportedThing::handle));

template <typename Handle>
ExportedThing ThingOf(const Handle& handle, uint64_t size, uint64_t driver) {
  ExportedThing thing;
  std::memcpy(thing.handle.data(), &handle, sizeof(handle));
  thing.size = size;
  thing.driver = driver;
  return thing;
}

int32_t StatusOf(ExportVerdict verdict) {
  switch (verdict) {
    case ExportVerdict::kOk:
      return CUDA_SUCCESS;
    case ExportVerdict::kOwn:
      return CUDA_ERROR_INVALID_CONTEXT;  // As drivers answer to who opens what is its own.
    default:
      return CUDA_ERROR_INVALID_HANDLE;
  }
}

}  // namespace

bool CudaBackend::CanShare() const {
  // Chunks have no handles for other processes; programs take the device's word for both memory and events.
  return services_.exports != nullptr && !linear_.chunked() && driver_.cuIpcGetMemHandle != nullptr &&
         driver_.cuIpcOpenMemHandle != nullptr && driver_.cuIpcCloseMemHandle != nullptr &&
         driver_.cuIpcGetEventHandle != nullptr && driver_.cuIpcOpenEventHandle != nullptr;
}

uint64_t CudaBackend::DriverMark() const {
  uint64_t mark = 0;
  const std::string& path = chosen_.driver.path;
  const wire::Sha256Digest digest = wire::Sha256Of(std::as_bytes(std::span<const char>(path.data(), path.size())));
  std::memcpy(&mark, digest.data(), sizeof(mark));
  return mark;
}

int32_t CudaBackend::FindShared(ExportKind kind, const ExportToken& token, ExportedThing* thing) const {
  if (!CanShare()) return kNotSupported;
  const ExportVerdict verdict = services_.exports->Find(kind, token, thing);
  if (verdict == ExportVerdict::kOk && thing->driver != DriverMark()) return CUDA_ERROR_INVALID_HANDLE;
  return StatusOf(verdict);
}

int32_t CudaBackend::ExportMemory(const cuda::Call& call, const cuda::ExportMemory& message) {
  int32_t status = 0;
  MemoryRange* range = nullptr;
  if (Enter(message.context, &status) != nullptr) {
    range = memory_.Edit(message.address);
    if (!CanShare()) {
      status = kNotSupported;
    } else if (range == nullptr || range->kind != MemoryKind::kLinear) {
      status = CUDA_ERROR_INVALID_VALUE;
    }
  }
  if (status != 0) {
    reason_.clear();
    ReplyWith(call, cuda::Token(), status);
    return 0;
  }
  if (range->publication == nullptr) range->publication = std::make_shared<Publication>(services_.exports);
  // A driver may wait for the device first, and the device for a function of the guest. In order, by one thread.
  disposals_.Add(
      current_, [this, call, address = range->address, size = range->size, publication = range->publication] {
        cuda::Token reply;
        if (!publication->token()) {
          CUipcMemHandle handle{};
          reply.status = driver_.cuIpcGetMemHandle(&handle, address);
          if (reply.status == 0 && !publication->Publish(ExportKind::kMemory, ThingOf(handle, size, DriverMark()))) {
            reply.status = CUDA_ERROR_OUT_OF_MEMORY;
          }
        }
        if (publication->token()) reply.token = *publication->token();
        Reply(call, reply);
      });
  return 0;
}

int32_t CudaBackend::ImportMemory(const cuda::Call& call, const cuda::ImportMemory& message) {
  cuda::ImportedMemory reply;
  ExportedThing thing;
  CUdeviceptr address = 0;
  if (Enter(message.context, &reply.status) != nullptr) {
    reply.status = FindShared(ExportKind::kMemory, message.token, &thing);
  }
  if (reply.status == 0) {
    CUipcMemHandle handle{};
    std::memcpy(&handle, thing.handle.data(), sizeof(handle));
    reply.status = driver_.cuIpcOpenMemHandle(&address, handle, message.flags);
  }
  if (reply.status == 0) {
    MemoryRange* const known = memory_.Edit(address);
    if (known != nullptr && known->kind == MemoryKind::kImported && known->owner == message.context) {
      ++known->opened;
    } else {
      // It counts for whoever has it, because it lives that long.
      MemoryRange range;
      range.address = address;
      range.size = range.charge = thing.size;
      range.kind = MemoryKind::kImported;
      range.owner = message.context;
      const bool fits = ledger_->Reserve(thing.size);
      if (fits) ledger_->Commit(thing.size);
      if (!fits || !memory_.Add(range)) {
        if (fits) ledger_->Release(thing.size);
        (void)driver_.cuIpcCloseMemHandle(address);
        reply.status = fits ? CUDA_ERROR_MAP_FAILED : CUDA_ERROR_OUT_OF_MEMORY;
      }
    }
  }
  if (reply.status == 0) {
    reply.address = address;
    reply.size = thing.size;
  }
  reason_.clear();
  Reply(call, reply);
  return 0;
}

int32_t CudaBackend::CloseMemory(const cuda::Call& call, const cuda::CloseMemory& message) {
  int32_t status = 0;
  if (Enter(message.context, &status) == nullptr) return Fail(call, status);
  MemoryRange* const range = memory_.Edit(message.address);
  if (range == nullptr || range->kind != MemoryKind::kImported) {
    return Fail(call, Explain(CUDA_ERROR_INVALID_VALUE, "nothing was opened there"), {}, message.context);
  }
  const bool last = --range->opened == 0;
  if (HostCallsDue()) {
    std::function<void()> close = [this, address = message.address] { (void)driver_.cuIpcCloseMemHandle(address); };
    // It counts until it is closed: its owner may have freed it by then.
    disposals_.Add(current_, last ? ForgetUntil(message.address, std::move(close)) : std::move(close));
    return 0;
  }
  if (last) ForgetMemory(message.address);
  return Finish(call, driver_.cuIpcCloseMemHandle(message.address), message.context);
}

int32_t CudaBackend::ExportEvent(const cuda::Call& call, const cuda::ExportEvent& message) {
  cuda::Token reply;
  Event* const event = Use<Event>(message.event, &reply.status);
  if (event != nullptr && Enter(event->context, &reply.status) != nullptr) {
    if (!CanShare()) {
      reply.status = kNotSupported;
    } else if (event->publication == nullptr) {
      CUipcEventHandle handle{};
      reply.status = driver_.cuIpcGetEventHandle(&handle, event->native());
      if (reply.status == 0) {
        auto publication = std::make_shared<Publication>(services_.exports);
        if (publication->Publish(ExportKind::kEvent, ThingOf(handle, 0, DriverMark()))) {
          event->publication = std::move(publication);
        } else {
          reply.status = CUDA_ERROR_OUT_OF_MEMORY;
        }
      }
    }
    if (reply.status == 0) reply.token = *event->publication->token();
  }
  reason_.clear();
  Reply(call, reply);
  return 0;
}

int32_t CudaBackend::ImportEvent(const cuda::Call& call, const cuda::ImportEvent& message) {
  int32_t status = 0;
  ExportedThing thing;
  const Context* const context = Enter(message.context, &status);
  CUevent native = nullptr;
  if (context != nullptr) status = FindShared(ExportKind::kEvent, message.token, &thing);
  if (status == 0) {
    CUipcEventHandle handle{};
    std::memcpy(&handle, thing.handle.data(), sizeof(handle));
    status = driver_.cuIpcOpenEventHandle(&native, handle);
  }
  if (status == 0) status = Keep(message.event, Event::Of(&driver_, message.context, *context, native));
  // Told at once, so the guest gives the name to something else.
  reason_.clear();
  return ReplyStatus(call, status);
}

}  // namespace hawser::server::cuda_backend
