// SPDX-License-Identifier: Apache-2.0
#include "interposer/cuda/host_mirror.h"

#include <cstring>
#include <mutex>

#include "interposer/cuda/entry.h"
#include "interposer/cuda/mirror.h"

namespace hawser::cu {
namespace {

std::mutex& Mutex() {
  static auto* const mutex = new std::mutex;
  return *mutex;
}

/// Device memory for the range. It begins as far from a boundary as the host's does.
CUresult Make(CUctx_st* context, const PointerRange& range, uint64_t* alias) {
  constexpr uint64_t kBoundary = 256;
  if (range.size > UINT64_MAX - kBoundary) return CUDA_ERROR_OUT_OF_MEMORY;
  cuda::Allocate message;
  message.context = context->id;
  message.size = range.size + kBoundary;
  Answer<cuda::Address> answer;
  if (const CUresult error = answer.Ask(Client::Get().session(), message); error != CUDA_SUCCESS) return error;
  *alias = answer->address + (range.begin - answer->address) % kBoundary;
  const CUresult error = Mirrors::Get().AddHost({context, range.begin, *alias, range.size, answer->address});
  if (error != CUDA_SUCCESS) return error;
  Client::Get().pointers().SetDeviceAlias(range.begin, *alias);
  PointerRange device = range;
  device.begin = *alias;
  device.kind = PointerKind::kGlobal;  // Cannot be freed.
  device.context = context->id.raw();
  device.mirror = true;
  Client::Get().pointers().Add(device);
  return CUDA_SUCCESS;
}

}  // namespace

CUresult DeviceAddressOfHost(CUctx_st* context, const PointerRange& range, uint64_t address, CUdeviceptr* result) {
  const uint64_t offset = address - range.begin;
  if (range.heap_offset != guest::Session::kNoHeap) {
    *result = range.device_alias + offset;
    return CUDA_SUCCESS;
  }
  const std::lock_guard lock(Mutex());
  // Mirrors end with their context, which need not be the memory's: what the range says may be old.
  uint64_t alias = Mirrors::Get().DeviceAddress(reinterpret_cast<const void*>(range.begin), range.size);
  if (alias == 0) {
    if (const CUresult error = Make(context, range, &alias); error != CUDA_SUCCESS) return error;
  }
  *result = alias + offset;
  return CUDA_SUCCESS;
}

CUresult EndMirror(CUctx_st* context, uint64_t host) {
  if (!Mirrors::Get().any() || Mirrors::Get().DeviceAddress(reinterpret_cast<void*>(host), 1) == 0) return CUDA_SUCCESS;
  const CUresult error = cuCtxSynchronize_v2(context);
  MirrorRange removed;
  if (!Mirrors::Get().Remove(host, &removed)) return error;
  Client::Get().pointers().Remove(removed.device, {PointerKind::kGlobal});
  cuda::Free message;
  message.context = removed.context->id;
  message.address = removed.allocation;
  const CUresult sent = FromWire(Client::Get().session()->Send(message));
  return error != CUDA_SUCCESS ? error : sent;
}

CUresult TranslateHostAddress(CUctx_st* context, CUdeviceptr* address) {
  const PointerMap& pointers = Client::Get().pointers();
  if (!pointers.MayBePinnedElsewhere(*address)) return CUDA_SUCCESS;
  auto range = pointers.Find(*address);
  if (!range) range = pointers.Find(*address - 1);  // Where a loop ends.
  if (!range || range->kind != PointerKind::kHost) return CUDA_SUCCESS;
  CUdeviceptr device = 0;
  const CUresult error = DeviceAddressOfHost(context, *range, *address, &device);
  if (error == CUDA_SUCCESS) *address = device;
  return error;
}

CUresult TranslateHostAddresses(CUctx_st* context, ParameterBlock* parameters) {
  const PointerMap& pointers = Client::Get().pointers();
  for (size_t at = 0; at + sizeof(uint64_t) <= parameters->bytes().size(); at += sizeof(uint64_t)) {
    CUdeviceptr word = 0;
    std::memcpy(&word, parameters->bytes().data() + at, sizeof(word));
    if (!pointers.MayBePinnedElsewhere(word)) continue;
    const CUdeviceptr before = word;
    if (const CUresult error = TranslateHostAddress(context, &word); error != CUDA_SUCCESS) return error;
    if (word != before) std::memcpy(parameters->Writable().data() + at, &word, sizeof(word));
  }
  return CUDA_SUCCESS;
}

}  // namespace hawser::cu
