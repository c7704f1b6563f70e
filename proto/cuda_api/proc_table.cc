// SPDX-License-Identifier: Apache-2.0
#include "proto/cuda_api/proc_table.h"

#include <cuda.h>

#include <cstring>

namespace hawser::cuda_api {
namespace {

static_assert(static_cast<int>(ProcStatus::kFound) == CU_GET_PROC_ADDRESS_SUCCESS);
static_assert(static_cast<int>(ProcStatus::kNotFound) == CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
static_assert(static_cast<int>(ProcStatus::kVersionNotSufficient) == CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);

constexpr ProcEntry kEntries[] = {
#define HAWSER_CUDA_PROC(name, version, per_thread, symbol) {#name, version, (per_thread) != 0, #symbol},
#include "cuda_api/proc_address.inc"
#undef HAWSER_CUDA_PROC
};
constexpr size_t kCount = sizeof(kEntries) / sizeof(kEntries[0]);

/// First entry whose name is not less than `name`.
size_t LowerBound(const char* name) {
  size_t low = 0;
  size_t high = kCount;
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    if (std::strcmp(kEntries[middle].name, name) < 0) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

}  // namespace

std::span<const ProcEntry> ProcEntries() { return kEntries; }

ProcResult FindProc(const char* name, uint32_t version, bool per_thread) {
  ProcResult legacy;
  ProcResult threaded;
  for (size_t i = LowerBound(name); i < kCount && std::strcmp(kEntries[i].name, name) == 0; ++i) {
    ProcResult* const found = kEntries[i].per_thread ? &threaded : &legacy;
    if (kEntries[i].version <= version) {
      *found = {ProcStatus::kFound, i};  // Ascending versions: the last one that fits is the newest.
    } else if (found->status == ProcStatus::kNotFound) {
      found->status = ProcStatus::kVersionNotSufficient;
    }
  }
  return per_thread && threaded.status == ProcStatus::kFound ? threaded : legacy;
}

int ProcTable::Get(const char* symbol, void** address, int version, uint64_t flags, int* status) const {
  constexpr uint64_t kLegacy = CU_GET_PROC_ADDRESS_LEGACY_STREAM;
  constexpr uint64_t kPerThread = CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
  if (symbol == nullptr || address == nullptr || version < 0 || (flags & ~(kLegacy | kPerThread)) != 0 ||
      flags == (kLegacy | kPerThread) || static_cast<uint32_t>(version) > driver_version_) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  ProcResult found = FindProc(symbol, static_cast<uint32_t>(version), flags == kPerThread);
  *address = found.status == ProcStatus::kFound ? addresses_[found.index] : nullptr;
  if (found.status == ProcStatus::kFound && *address == nullptr) found.status = ProcStatus::kNotFound;
  if (status != nullptr) *status = static_cast<int>(found.status);
  return CUDA_SUCCESS;
}

int ProcTable::GetV1(const char* symbol, void** address, int version, uint64_t flags) const {
  const int result = Get(symbol, address, version, flags, nullptr);
  return result == CUDA_SUCCESS && *address == nullptr ? CUDA_ERROR_NOT_FOUND : result;
}

}  // namespace hawser::cuda_api
