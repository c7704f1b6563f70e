// SPDX-License-Identifier: Apache-2.0
// What cuGetProcAddress answers: which exported symbol a public name, a CUDA version and flags stand for.
//
// The table is generated from the toolkit's headers (generate.py). Nothing here allocates, locks or keeps state, so it
// may be called at any time from any thread, also while a process ends. Types of cuda.h are not used: the numbers of
// CUresult, CUdriverProcAddress_flags and CUdriverProcAddressQueryResult are checked against it in proc_table.cc.
#ifndef HAWSER_PROTO_CUDA_API_PROC_TABLE_H_
#define HAWSER_PROTO_CUDA_API_PROC_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <span>

namespace hawser::cuda_api {

/// One exported symbol of the driver. Static storage.
struct ProcEntry {
  const char* name;    ///< Public name: "cuMemAlloc".
  uint32_t version;    ///< CUDA version this variant came with, 1000 * major + 10 * minor: 3020.
  bool per_thread;     ///< Works on the per-thread default stream ("..._ptsz", "..._ptds").
  const char* symbol;  ///< Exported symbol: "cuMemAlloc_v2".
};

/// All of them, sorted by name, then legacy before per-thread, then version.
std::span<const ProcEntry> ProcEntries();

/// What a look-up found. The values are those of CUdriverProcAddressQueryResult.
enum class ProcStatus : uint8_t { kFound = 0, kNotFound = 1, kVersionNotSufficient = 2 };

struct ProcResult {
  ProcStatus status = ProcStatus::kNotFound;
  size_t index = 0;  ///< Into ProcEntries(), when found.
};

/// The newest variant of `name` that is not newer than `version`. `per_thread`: prefers the variant for the per-thread
/// default stream, and takes the other one where there is none. `name` is not null; it may be empty (not found).
ProcResult FindProc(const char* name, uint32_t version, bool per_thread);

/// cuGetProcAddress over the addresses of a library.
class ProcTable {
 public:
  /// `addresses`: one per entry of ProcEntries() and in that order (proc_address.inc); borrowed, static. Null: this
  /// library has no such symbol, which is answered as not found.
  constexpr ProcTable(std::span<void* const> addresses, uint32_t driver_version)
      : addresses_(addresses), driver_version_(driver_version) {}

  /// cuGetProcAddress_v2: returns a CUresult. A symbol that is not there, or not in that version, is no error:
  /// `*address` is then null and `*status` (may be null) says why. CUDA_ERROR_INVALID_VALUE: `symbol` or `address` is
  /// null, `flags` are unknown or contradict each other, or `version` is newer than the driver's.
  int Get(const char* symbol, void** address, int version, uint64_t flags, int* status) const;

  /// cuGetProcAddress of CUDA 11.3, which had no status: CUDA_ERROR_NOT_FOUND where Get() gives a null address.
  int GetV1(const char* symbol, void** address, int version, uint64_t flags) const;

 private:
  std::span<void* const> addresses_;
  uint32_t driver_version_;
};

}  // namespace hawser::cuda_api

#endif  // HAWSER_PROTO_CUDA_API_PROC_TABLE_H_
