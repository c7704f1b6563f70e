// SPDX-License-Identifier: Apache-2.0
// Unpacking of a fatbin's payloads.
#ifndef HAWSER_SOFTCUDA_DRIVER_INFLATE_H_
#define HAWSER_SOFTCUDA_DRIVER_INFLATE_H_

#include <string>

#include "proto/facts/fatbin.h"
#include "wire/status.h"

namespace hawser::soft {

/// Longest unpacked image, in bytes. What a file claims beyond is refused before anything is allocated.
inline constexpr uint64_t kMaxUnpackedBytes = uint64_t{1} << 30;

/// The bytes of an entry, LZ4 block or zstd frame undone. kInvalid: damaged, or longer than it says.
wire::Result<std::string> Unpack(const fatbin::Entry& entry);

}  // namespace hawser::soft

#endif  // HAWSER_SOFTCUDA_DRIVER_INFLATE_H_
