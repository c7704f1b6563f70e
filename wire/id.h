// SPDX-License-Identifier: Apache-2.0
// Object ids. The guest names every object, so that creating one needs no reply; the server looks
// an id up by type and generation, so that a stale or forged id is an error and never a wild access.
#ifndef HAWSER_WIRE_ID_H_
#define HAWSER_WIRE_ID_H_

#include <cstdint>
#include <functional>

namespace hawser::wire {

/// 64 bits: type (8) | generation (24) | index (32). 0 is "no object".
/// The meaning of `type` belongs to the API description, not to the wire.
class Id {
 public:
  constexpr Id() = default;
  constexpr explicit Id(uint64_t raw) : raw_(raw) {}
  constexpr Id(uint8_t type, uint32_t generation, uint32_t index)
      : raw_(uint64_t{type} << 56 | uint64_t{generation & 0xffffff} << 32 | index) {}

  constexpr uint64_t raw() const { return raw_; }
  constexpr uint8_t type() const { return static_cast<uint8_t>(raw_ >> 56); }
  constexpr uint32_t generation() const { return static_cast<uint32_t>(raw_ >> 32) & 0xffffff; }
  constexpr uint32_t index() const { return static_cast<uint32_t>(raw_); }
  constexpr explicit operator bool() const { return raw_ != 0; }
  friend constexpr bool operator==(Id, Id) = default;

 private:
  uint64_t raw_ = 0;
};
static_assert(sizeof(Id) == 8);

}  // namespace hawser::wire

template <>
struct std::hash<hawser::wire::Id> {
  size_t operator()(hawser::wire::Id id) const noexcept {
    return std::hash<uint64_t>()(id.raw() * 0x9e3779b97f4a7c15u);
  }
};

#endif  // HAWSER_WIRE_ID_H_
