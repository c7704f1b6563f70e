// SPDX-License-Identifier: Apache-2.0
// A CUDA driver as a table of functions: NVIDIA's libcuda.so.1, the software device's, or a test's own.
//
// Why exact names: an old name may have another ABI than the one that cuda.h declares (cuCtxCreate and
// cuCtxCreate_v4), and cuGetProcAddress of an older driver answers with the newest variant that it has. So the
// exported symbol of exactly the declared variant is looked up, and cuGetProcAddress only asked where the driver knows
// at least the version of our header.
#ifndef HAWSER_SERVER_BACKENDS_CUDA_DRIVER_TABLE_H_
#define HAWSER_SERVER_BACKENDS_CUDA_DRIVER_TABLE_H_

#include <string>
#include <vector>

#include "server/backends/cuda/driver_entries.h"
#include "wire/status.h"

namespace hawser::server::cuda_backend {

/// Plain data; functions that the driver lacks are null. Not changed after loading, so any thread may call through it.
struct DriverTable {
#define HAWSER_MEMBER(name) decltype(&::name) name = nullptr;
  HAWSER_CUDA_REQUIRED(HAWSER_MEMBER)
  HAWSER_CUDA_OPTIONAL(HAWSER_MEMBER)
#undef HAWSER_MEMBER
  /// The variant of all drivers; cuEventElapsedTime is of 12.8 and later.
  PFN_cuEventElapsedTime_v2000 ElapsedTimeV1 = nullptr;
};

/// A loaded driver library. It is never closed: drivers do not survive that.
struct LoadedDriver {
  DriverTable table;
  std::string path;                  ///< The file that the loader chose.
  int version = 0;                   ///< cuDriverGetVersion: 13000 is 13.0.
  std::vector<std::string> missing;  ///< Optional entry points that it lacks, by symbol.
};

/// Opens `library` (a path, or a name for the loader's search) and fills the table. Does not call cuInit. kInvalid when
/// it cannot be opened or lacks an entry point that is required; the text names what is missing.
wire::Result<LoadedDriver> LoadDriver(const std::string& library);

/// "CUDA_ERROR_INVALID_VALUE (1)".
std::string ErrorText(const DriverTable& driver, CUresult result);

/// Between two events that are complete; 0 when the driver does not tell.
uint64_t ElapsedNs(const DriverTable& driver, CUevent begin, CUevent end);

}  // namespace hawser::server::cuda_backend

#endif  // HAWSER_SERVER_BACKENDS_CUDA_DRIVER_TABLE_H_
