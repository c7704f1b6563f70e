// SPDX-License-Identifier: Apache-2.0
#include "softcuda/driver/inflate.h"

#if !defined(HAWSER_WITHOUT_COMPRESSION)
#include <lz4.h>
#include <zstd.h>
#endif

namespace hawser::soft {

wire::Result<std::string> Unpack(const fatbin::Entry& entry) {
  using wire::Code;
  using wire::Status;
  const auto* const from = reinterpret_cast<const char*>(entry.payload.data());
  if (entry.compression == fatbin::Compression::kNone) return std::string(from, entry.payload.size());
#if defined(HAWSER_WITHOUT_COMPRESSION)
  return Status(Code::kInvalid, "a fatbin's " + entry.Describe() +
                                    " is compressed, and this build has no LZ4 and zstd; build it with -Xfatbin "
                                    "-compress=false");
#else
  // Both formats can make far more of a few bytes than any image needs; a real one does not shrink that much.
  constexpr uint64_t kMostRatio = 1024;
  if (entry.unpacked_bytes == 0 || entry.unpacked_bytes > kMaxUnpackedBytes ||
      entry.unpacked_bytes / kMostRatio > entry.payload.size()) {
    return Status(Code::kInvalid, "a fatbin's " + entry.Describe() + " claims " + std::to_string(entry.unpacked_bytes) +
                                      " bytes unpacked; it is damaged");
  }
  std::string unpacked(entry.unpacked_bytes, '\0');
  size_t got = 0;
  if (entry.compression == fatbin::Compression::kLz4) {
    const int result = ::LZ4_decompress_safe(from, unpacked.data(), static_cast<int>(entry.payload.size()),
                                             static_cast<int>(unpacked.size()));
    if (result >= 0) got = static_cast<size_t>(result);
  } else {
    const size_t result = ::ZSTD_decompress(unpacked.data(), unpacked.size(), from, entry.payload.size());
    if (::ZSTD_isError(result) == 0) got = result;
  }
  if (got == 0) return Status(Code::kInvalid, "a fatbin's " + entry.Describe() + " cannot be unpacked; it is damaged");
  unpacked.resize(got);
  return unpacked;
#endif
}

}  // namespace hawser::soft
