// SPDX-License-Identifier: Apache-2.0
// Memory and events that the tenant's other processes use too. The drivers do the sharing, by their handles for other
// processes or, where memory comes in chunks, by descriptors of these; what goes from guest to guest are tokens of
// hawserd (server/exported.h).
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
    case ExportVerdict::kFull:
      return CUDA_ERROR_MAP_FAILED;
    default:
      return CUDA_ERROR_INVALID_HANDLE;
  }
}

}  // namespace

bool CudaBackend::CanShare() const {
  // Programs take the device's word for both memory and events.
  const bool memory = linear_.chunked()
                          ? linear_.shareable()
                          : driver_.cuIpcGetMemHandle != nullptr && driver_.cuIpcOpenMemHandle != nullptr &&
                                driver_.cuIpcCloseMemHandle != nullptr;
  return services_.exports != nullptr && memory && driver_.cuIpcGetEventHandle != nullptr &&
         driver_.cuIpcOpenEventHandle != nullptr;
}

uint64_t CudaBackend::DriverMark() const {
  uint64_t mark = 0;
  const std::string& path = chosen_.driver.path;
  const wire::Sha256Digest digest = wire::Sha256Of(std::as_bytes(std::span<const char>(path.data(), path.size())));
  std::memcpy(&mark, digest.data(), sizeof(mark));
  return mark;
}

int32_t CudaBackend::FindShared(ExportKind kind, const ExportToken& token, ExportedThing* thing,
                                std::vector<wire::Fd>* files) const {
  if (!CanShare()) return kNotSupported;
  const ExportVerdict verdict = services_.exports->Find(kind, token, thing, files);
  if (verdict == ExportVerdict::kOk && thing->driver != DriverMark()) return CUDA_ERROR_INVALID_HANDLE;
  return StatusOf(verdict);
}

int32_t CudaBackend::ExportChunks(MemoryRange* range, ExportToken* token) {
  if (range->publication == nullptr) {
    SharedChunks chunks;
    std::vector<wire::Fd> files;
    if (const CUresult result = linear_.Share(range->address, range->size, &chunks, &files); result != CUDA_SUCCESS) {
      return result;
    }
    ExportedThing thing;
    thing.handle = chunks.Encode();
    thing.size = range->size;
    thing.driver = DriverMark();
    thing.descriptors = static_cast<uint32_t>(files.size());
    auto publication = std::make_shared<Publication>(services_.exports);
    if (!publication->Publish(ExportKind::kMemory, thing, files)) return CUDA_ERROR_OUT_OF_MEMORY;
    range->publication = std::move(publication);
  }
  *token = *range->publication->token();
  return CUDA_SUCCESS;
}

int32_t CudaBackend::OpenChunks(const Context& context, const ExportToken& token, const ExportedThing& thing,
                                const std::vector<wire::Fd>& files, MemoryRange* range) {
  const SharedChunks chunks = SharedChunks::Decode(thing.handle);
  // All of the chunks lives as long as this, so all of them counts.
  if (chunks.total < thing.size) return CUDA_ERROR_INVALID_HANDLE;
  if (!ledger_->Reserve(chunks.total) && !(AwaitFrees(chunks.total) && ledger_->Reserve(chunks.total))) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  const CUresult result = linear_.Open(context.device, chunks, files, thing.size, &range->address);
  if (result != CUDA_SUCCESS) {
    ledger_->Cancel(chunks.total);
    return result;
  }
  ledger_->Commit(chunks.total);
  range->size = thing.size;
  range->charge = chunks.total;
  range->token = std::make_shared<const ExportToken>(token);
  return CUDA_SUCCESS;
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
  if (linear_.InChunks(range->address)) {
    cuda::Token reply;
    reply.status = ExportChunks(range, &reply.token);
    reason_.clear();
    Reply(call, reply);
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
  std::vector<wire::Fd> files;
  MemoryRange range;
  range.kind = MemoryKind::kImported;
  range.owner = message.context;
  MemoryRange* known = nullptr;
  const Context* const context = Enter(message.context, &reply.status);
  if (context != nullptr) reply.status = FindShared(ExportKind::kMemory, message.token, &thing, &files);
  if (reply.status == 0 && files.empty()) {
    CUipcMemHandle handle{};
    std::memcpy(&handle, thing.handle.data(), sizeof(handle));
    CUdeviceptr address = 0;
    reply.status = driver_.cuIpcOpenMemHandle == nullptr ? kNotSupported
                                                         : driver_.cuIpcOpenMemHandle(&address, handle, message.flags);
    range.address = address;
    known = memory_.Edit(range.address);
    if (known != nullptr && (known->kind != MemoryKind::kImported || known->owner != message.context)) known = nullptr;
    // It counts for whoever has it, because it lives that long.
    if (reply.status == 0 && known == nullptr) {
      range.size = range.charge = thing.size;
      if (ledger_->Reserve(thing.size)) {
        ledger_->Commit(thing.size);
      } else {
        (void)driver_.cuIpcCloseMemHandle(range.address);
        reply.status = CUDA_ERROR_OUT_OF_MEMORY;
      }
    }
  } else if (reply.status == 0) {
    known = memory_.Find([&](const MemoryRange& each) {
      return each.token != nullptr && *each.token == message.token && each.owner == message.context;
    });
    if (known == nullptr) reply.status = OpenChunks(*context, message.token, thing, files, &range);
  }
  if (reply.status == 0 && known != nullptr) {
    ++known->opened;
    range.address = known->address;
  } else if (reply.status == 0 && !memory_.Add(range)) {
    (void)CloseOpened(range.address);
    ledger_->Release(range.charge);
    reply.status = CUDA_ERROR_MAP_FAILED;
  }
  if (reply.status == 0) {
    reply.address = range.address;
    reply.size = thing.size;
  }
  reason_.clear();
  Reply(call, reply);
  return 0;
}

CUresult CudaBackend::CloseOpened(uint64_t address) {
  if (!linear_.InChunks(address)) return driver_.cuIpcCloseMemHandle(address);
  // What the driver does by itself otherwise.
  const CUresult result = driver_.cuCtxSynchronize();
  (void)linear_.Free(address);
  return result;
}

int32_t CudaBackend::CloseMemory(const cuda::Call& call, const cuda::CloseMemory& message) {
  int32_t status = 0;
  if (Enter(message.context, &status) == nullptr) return Fail(call, status);
  MemoryRange* const range = memory_.Edit(message.address);
  if (range == nullptr || range->kind != MemoryKind::kImported) {
    return Fail(call, Explain(CUDA_ERROR_INVALID_VALUE, "nothing was opened there"), {}, message.context);
  }
  const bool last = --range->opened == 0;
  if (!last && range->token != nullptr) return 0;  // Here only this side counts.
  if (FreesWait()) {
    std::function<void()> close = [this, address = message.address] { (void)CloseOpened(address); };
    // It counts until it is closed: its owner may have freed it by then.
    disposals_.Add(current_, last ? ForgetUntil(message.address, std::move(close)) : std::move(close));
    return 0;
  }
  const CUresult result = CloseOpened(message.address);
  if (last) ForgetMemory(message.address);
  return Finish(call, result, message.context);
}

int32_t CudaBackend::ExportEvent(const cuda::Call& call, const cuda::ExportEvent& message) {
  cuda::Token reply;
  Event* const event = Use<Event>(message.event, &reply.status);
  if (event != nullptr) event->fixed = true;
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
  std::vector<wire::Fd> none;
  const Context* const context = Enter(message.context, &status);
  CUevent native = nullptr;
  if (context != nullptr) status = FindShared(ExportKind::kEvent, message.token, &thing, &none);
  if (status == 0) {
    CUipcEventHandle handle{};
    std::memcpy(&handle, thing.handle.data(), sizeof(handle));
    status = driver_.cuIpcOpenEventHandle(&native, handle);
  }
  if (status == 0) {
    Event event = Event::Of(&driver_, message.context, *context, native, 0);
    event.fixed = true;
    status = Keep(message.event, std::move(event));
  }
  // Told at once, so the guest gives the name to something else.
  reason_.clear();
  return ReplyStatus(call, status);
}

}  // namespace hawser::server::cuda_backend
