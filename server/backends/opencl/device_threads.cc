// SPDX-License-Identifier: Apache-2.0
#include "server/backends/opencl/device_threads.h"

#include <cstdlib>
#include <string_view>

#include "wire/short_slice.h"

namespace hawser::server::ocl {

DeviceThreads::DeviceThreads() {
  const char* const affinity = std::getenv("POCL_AFFINITY");
  taken_ = affinity != nullptr && std::string_view(affinity) == "1" && wire::TakeBatchClass();
}

DeviceThreads::~DeviceThreads() {
  if (taken_) wire::LeaveBatchClass();
}

}  // namespace hawser::server::ocl
