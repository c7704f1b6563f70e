// SPDX-License-Identifier: Apache-2.0
// cuIpc*: memory and events of one tenant's processes on one server, by tokens that cannot be guessed.
#include <cstring>

#include "interposer/cuda/entry.h"
#include "interposer/cuda/heap_memory.h"

using namespace hawser;      // NOLINT(google-build-using-namespace): entry points live outside of namespaces.
using namespace hawser::cu;  // NOLINT(google-build-using-namespace)

static_assert(sizeof(CUipcMemHandle) == 64 && sizeof(CUipcEventHandle) == 64);

CUresult CUDAAPI cuIpcGetMemHandle(CUipcMemHandle* handle, CUdeviceptr address) {
  CUctx_st* context = nullptr;
  if (const CUresult error = CurrentContext(&context); error != CUDA_SUCCESS) return error;
  const auto range = Client::Get().pointers().Find(address);
  if (handle == nullptr || !range || range->kind != PointerKind::kDevice || range->begin != address) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  // The driver moves what it exports to where other processes reach it.
  if (range->in_heap) HeapMemory::Get().Leave(address);
  cuda::ExportMemory message;
  message.context = context->id;
  message.address = address;
  Answer<cuda::Token> answer;
  const CUresult error = answer.Ask(Client::Get().session(), message);
  if (error != CUDA_SUCCESS) return error;
  std::memcpy(handle, answer->token.data(), sizeof(*handle));
  Client::Get().NoteSharing();
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuIpcOpenMemHandle_v2(CUdeviceptr* address, CUipcMemHandle handle, unsigned int flags) {
  CUctx_st* context = nullptr;
  if (const CUresult error = CurrentContext(&context); error != CUDA_SUCCESS) return error;
  if (address == nullptr || flags > CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS) return CUDA_ERROR_INVALID_VALUE;
  cuda::ImportMemory message;
  message.context = context->id;
  std::memcpy(message.token.data(), &handle, sizeof(handle));
  message.flags = flags;
  Answer<cuda::ImportedMemory> answer;
  if (const CUresult error = answer.Ask(Client::Get().session(), message); error != CUDA_SUCCESS) return error;
  PointerRange range;
  range.begin = answer->address;
  range.size = answer->size;
  range.device = context->device;
  range.context = context->id.raw();
  Client::Get().pointers().Open(range);
  Client::Get().NoteSharing();
  *address = answer->address;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuIpcOpenMemHandle(CUdeviceptr* address, CUipcMemHandle handle, unsigned int flags) {
  return cuIpcOpenMemHandle_v2(address, handle, flags);
}

CUresult CUDAAPI cuIpcCloseMemHandle(CUdeviceptr address) {
  CUctx_st* context = nullptr;
  if (const CUresult error = CurrentContext(&context, /*earlier=*/false); error != CUDA_SUCCESS) return error;
  if (!Client::Get().pointers().Close(address)) return CUDA_ERROR_INVALID_VALUE;
  cuda::CloseMemory message;
  message.context = context->id;
  message.address = address;
  // Whoever owns it may free it as soon as it hears of this.
  return FromWire(Client::Get().session()->SendAndWait(message));
}

CUresult CUDAAPI cuIpcGetEventHandle(CUipcEventHandle* handle, CUevent event) {
  if (const CUresult error = Client::Get().Check(); error != CUDA_SUCCESS) return error;
  if (const CUresult error = CheckObject(event, Kind::kEvent); error != CUDA_SUCCESS) return error;
  if (handle == nullptr || (event->flags & CU_EVENT_INTERPROCESS) == 0) return CUDA_ERROR_INVALID_VALUE;
  cuda::ExportEvent message;
  message.event = event->id;
  Answer<cuda::Token> answer;
  const CUresult error = answer.Ask(Client::Get().session(), message);
  if (error == CUDA_SUCCESS) std::memcpy(handle, answer->token.data(), sizeof(*handle));
  return error;
}

CUresult CUDAAPI cuIpcOpenEventHandle(CUevent* result, CUipcEventHandle handle) {
  CUctx_st* context = nullptr;
  if (const CUresult error = CurrentContext(&context); error != CUDA_SUCCESS) return error;
  if (result == nullptr) return CUDA_ERROR_INVALID_VALUE;
  guest::Session* session = Client::Get().session();
  auto* event = new CUevent_st(Kind::kEvent, session->NewId(static_cast<uint8_t>(cuda::Handle::kEvent)));
  event->context = context;
  event->flags = CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING;
  Registry::Get().Add(event);
  cuda::ImportEvent message;
  message.event = event->id;
  message.context = context->id;
  std::memcpy(message.token.data(), &handle, sizeof(handle));
  if (const CUresult error = AskStatus(session, message); error != CUDA_SUCCESS) {
    const wire::Id id = event->id;
    Registry::Get().Bury(event);
    session->FreeId(id);
    return error;
  }
  *result = event;
  return CUDA_SUCCESS;
}
