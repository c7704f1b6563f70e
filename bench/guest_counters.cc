// SPDX-License-Identifier: Apache-2.0
#include "bench/guest_counters.h"

namespace hawser::bench {

GuestCounters::GuestCounters(cl_platform_id platform)
    : read_(reinterpret_cast<ReadFunction>(clGetExtensionFunctionAddressForPlatform(platform, "hawserGetStatsHWS"))) {}

GuestCounts GuestCounters::Read() const {
  uint64_t out[6] = {};
  if (read_ != nullptr) read_(out);
  return {out[0], out[1], out[2], out[3], out[4], out[5]};
}

}  // namespace hawser::bench
