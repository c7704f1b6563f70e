// SPDX-License-Identifier: Apache-2.0
// The containers in which CUDA module images arrive: which kind a pointer points to, how many bytes it has, and what a
// fatbin holds. The payloads are not decompressed here: guests carry no LZ4 or zstd.
//
// Layout: what nvcc 13 was seen to write (all little-endian; byte offsets in hexadecimal).
//   wrapper 24 bytes  +0 u32 magic 466243b1  +4 u32 version  +8 pointer to a fatbin
//                     +10 pointer: version 2: array of pointers to the fatbins of the translation units, ends with null
//   fatbin  16 bytes  +0 u32 magic ba55ed50  +4 u16 version 1  +6 u16 header size  +8 u64 size of what follows
//   entry   64+       +0 u16 kind  +4 u32 header size  +8 u64 stored size  +10 u32 compressed size  +14 u32 offset of
//                     options  +18 u16 minor, u16 major  +1c u32 SM  +20 u32 offset, u32 length of name  +28 u64 flags
//                     +38 u64 uncompressed size; the next entry begins after header and payload
//
// Threads: nothing here keeps state.
#ifndef HAWSER_PROTO_FACTS_FATBIN_H_
#define HAWSER_PROTO_FACTS_FATBIN_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "wire/status.h"

namespace hawser::fatbin {

enum class ImageKind : uint8_t {
  kUnknown,
  kWrapper,  ///< What nvcc registers: pointers to fatbins, only meaningful in the process that has them.
  kFatbin,
  kElf,  ///< A cubin (or another ELF file; the device decides).
  kPtx,  ///< Text that ends with a zero byte.
};

/// Longest image that is believed, in bytes.
inline constexpr size_t kMaxImageBytes = size_t{1} << 31;
/// Most translation units that a wrapper may list.
inline constexpr size_t kMaxParts = 65536;

/// What `image` points to. Reads no further than the bytes that tell the kinds apart, and stops at a zero byte.
ImageKind Identify(const void* image);
/// The same within bounds.
ImageKind Identify(std::span<const std::byte> image);

/// Bytes of the image at `image`, which is not a wrapper; text counts its zero byte. At most `limit` bytes are looked
/// at, and an image that claims to be longer is kInvalid. Without a limit only what the format itself states is read.
wire::Result<size_t> ImageBytes(const void* image, size_t limit = kMaxImageBytes);

/// A wrapper in this process's memory.
struct Wrapper {
  uint32_t version = 0;
  const void* fatbin = nullptr;        ///< Version 1: the image. Version 2: the device-linked image, cubins only.
  const void* const* parts = nullptr;  ///< Version 2: the images of the translation units; else null.
  size_t part_count = 0;
};

/// kInvalid: no wrapper, or a version that is not known.
wire::Result<Wrapper> ReadWrapper(const void* image);

enum class EntryKind : uint16_t { kPtx = 1, kElf = 2, kLtoIr = 8 };  ///< Other values occur and can be skipped.
enum class Compression : uint8_t { kNone, kLz4, kZstd };
/// Which devices code is for: one of `sm` and later (kPlain, PTX), its family (kFamily, 'f'), or exactly it (kExact,
/// 'a').
enum class Target : uint8_t { kPlain, kFamily, kExact };

/// A flag of entries that no tool sets: those that have it are parts of one program, which the software device's linker
/// keeps as text. Whoever chooses among a fatbin's entries takes all of them, to be linked when they are loaded.
inline constexpr uint64_t kFlagLinkedParts = uint64_t{1} << 60;

/// One image of a fatbin. Spans and texts point into the fatbin's bytes.
struct Entry {
  EntryKind kind = EntryKind::kPtx;
  uint16_t major = 0;  ///< Version of PTX, or of the cubin format.
  uint16_t minor = 0;
  uint32_t sm = 0;  ///< 90 for sm_90; 0: not known.
  Target target = Target::kPlain;
  uint64_t flags = 0;
  bool debug = false;
  Compression compression = Compression::kNone;
  std::span<const std::byte> payload;  ///< Without the padding where the compressed size is known.
  uint64_t unpacked_bytes = 0;         ///< payload.size() when not compressed. Claimed by the file: bound it.
  std::string_view name;               ///< Source file, or empty.
  std::string_view options;            ///< Options for the device's compiler, or empty.

  /// "PTX 9.0 for sm_75", "cubin for sm_90a", for messages.
  std::string Describe() const;
};

/// What the head of a cubin says that it is for: an entry of which only kind and sm are set. sm 0: the file does not
/// say, or is no cubin. The head of code for sm_90a is that of code for sm_90.
Entry CubinFacts(std::span<const std::byte> elf);

/// Walks over a fatbin's entries.
class Reader {
 public:
  /// `bytes`: from the header on; may be longer than the fatbin. Borrowed.
  explicit Reader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  /// Checks the header. Before Next().
  wire::Status Start();
  /// False after the last entry. kInvalid: an entry does not fit into the fatbin; the ones before stay valid.
  wire::Result<bool> Next(Entry* entry);

 private:
  std::span<const std::byte> bytes_;
  size_t at_ = 0;
  size_t end_ = 0;
};

}  // namespace hawser::fatbin

#endif  // HAWSER_PROTO_FACTS_FATBIN_H_
