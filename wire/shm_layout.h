// SPDX-License-Identifier: Apache-2.0
// What lies where in the memory of a session. Internal to wire/.
#ifndef HAWSER_WIRE_SHM_LAYOUT_H_
#define HAWSER_WIRE_SHM_LAYOUT_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "wire/ring.h"
#include "wire/shm.h"
#include "wire/socket.h"
#include "wire/status.h"

namespace hawser::wire {

inline constexpr uint64_t kShmMagic = 0x316d687372777368;  // "hswrshm1"
inline constexpr uint32_t kMinRing = 4096;
inline constexpr uint32_t kMaxRing = 1u << 30;

/// One channel: two rings and the word that says the channel has ended.
struct ChannelControl {
  alignas(64) std::atomic<uint32_t> ended{0};
  RingControl up;    ///< guest to server
  RingControl down;  ///< server to guest
};

/// The first page of the memfd. The rings' bytes follow from kShmDataOffset in the order of
/// ShmLayout's fields.
struct ShmHeader {
  uint64_t magic;
  ShmLayout layout;
  ChannelControl command;
  ChannelControl bulk;
};
inline constexpr size_t kShmDataOffset = 4096;
static_assert(sizeof(ShmHeader) <= kShmDataOffset);

/// Bytes of a session with this layout, header included.
inline size_t ShmSize(const ShmLayout& layout) {
  return kShmDataOffset + size_t{layout.command_up} + layout.command_down + layout.bulk_up + layout.bulk_down;
}

/// Each ring is a power of two between kMinRing and kMaxRing.
Status CheckLayout(const ShmLayout& layout);

/// The mapping, shared by the channels made from it.
class ShmMapping {
 public:
  enum class Fork : uint8_t { kInherit, kDoNotInherit };

  /// `layout` is this side's private copy; what the header says later does not matter.
  static Result<std::shared_ptr<ShmMapping>> Map(Fd memfd, const ShmLayout& layout, Fork fork);
  ~ShmMapping();
  ShmMapping(const ShmMapping&) = delete;
  ShmMapping& operator=(const ShmMapping&) = delete;

  int memfd() const { return memfd_.get(); }
  const ShmLayout& layout() const { return layout_; }
  ShmHeader* header() const { return reinterpret_cast<ShmHeader*>(base_); }
  std::byte* data() const { return base_ + kShmDataOffset; }
  /// False in a child of fork() that did not inherit the memory: touching it would be a crash.
  bool MappedHere() const;

 private:
  ShmMapping(Fd memfd, const ShmLayout& layout, std::byte* base);

  Fd memfd_;
  const ShmLayout layout_;
  std::byte* const base_;
  int owner_ = 0;  ///< The process that has the mapping, when fork() does not hand it on; else 0.
};

}  // namespace hawser::wire

#endif  // HAWSER_WIRE_SHM_LAYOUT_H_
