// SPDX-License-Identifier: Apache-2.0
// What the environment says about the software device. Read once, at the first call; a value that makes no sense is
// reported on stderr and replaced by the default.
#ifndef HAWSER_SOFTCUDA_DRIVER_SETTINGS_H_
#define HAWSER_SOFTCUDA_DRIVER_SETTINGS_H_

#include <cstddef>
#include <cstdint>

#include "softcuda/driver/processor_set.h"

namespace hawser::soft {

struct Settings {
  int devices = 1;           ///< HAWSER_SOFT_DEVICES, 0 to 16
  int capability_major = 9;  ///< HAWSER_SOFT_CC, "9.0"
  int capability_minor = 0;
  uint64_t memory =
      0;  ///< HAWSER_SOFT_MEMORY, bytes of each device; "512M", "4G". Default: half of RAM, at most 8 GiB.
  ProcessorSet processors;  ///< HAWSER_SOFT_PROCESSORS, "2-5,8": where its threads run. Default: as the process may.
  unsigned threads = 0;     ///< HAWSER_SOFT_THREADS: processors that a kernel uses, at least 1. Default: all of those.
  uint64_t base = 0;        ///< HAWSER_SOFT_BASE: where device addresses begin, hexadecimal. See address_range.h.
  uint64_t range = 0;       ///< HAWSER_SOFT_RANGE: bytes of addresses that are reserved.

  uint32_t capability() const { return static_cast<uint32_t>(10 * capability_major + capability_minor); }
};

const Settings& GetSettings();

}  // namespace hawser::soft

#endif  // HAWSER_SOFTCUDA_DRIVER_SETTINGS_H_
