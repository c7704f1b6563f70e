// SPDX-License-Identifier: Apache-2.0
// Where sample messages (tests and fuzz seeds) get their values and keep what their views point to.
#ifndef HAWSER_PROTO_SAMPLE_ARENA_H_
#define HAWSER_PROTO_SAMPLE_ARENA_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

#include "wire/codec.h"
#include "wire/id.h"

namespace hawser::proto {

/// Where an arena's values come from when they shall not count up.
class SampleValues {
 public:
  virtual ~SampleValues() = default;
  /// A number of so many bytes.
  virtual uint64_t Number(size_t bytes) = 0;
  virtual wire::Id Id(uint8_t type) = 0;
  /// How many bytes, characters or elements there are, where a sample has `count`.
  virtual size_t Count(size_t count) = 0;
  /// Empty: letters.
  virtual std::string_view Name() = 0;
};

/// Values count up, so that no two neighbours are equal and every byte of a number matters; or they are drawn from
/// `values`, which outlives the arena. Views live as long as the arena.
class SampleArena {
 public:
  explicit SampleArena(SampleValues* values = nullptr) : values_(values) {}

  template <typename T>
  T Number() {
    if (values_ != nullptr) return static_cast<T>(values_->Number(sizeof(T)));
    const uint64_t bits = ++count_ * 0x0101010101010101u;
    return static_cast<T>(bits);
  }
  wire::Id Id(uint8_t type) {
    if (values_ != nullptr) return values_->Id(type);
    ++count_;
    return wire::Id(type, count_, count_ * 3);
  }
  template <typename T>
  T Element(uint8_t type) {
    if constexpr (std::is_same_v<T, wire::Id>) {
      return Id(type);
    } else {
      return Number<T>();
    }
  }
  wire::Bytes Bytes(size_t size) {
    std::span<std::byte> bytes = Keep<std::byte>(Count(size));
    for (std::byte& each : bytes) each = Number<std::byte>();
    return bytes;
  }
  std::string_view String(size_t size) {
    if (values_ != nullptr) {
      if (const std::string_view name = values_->Name(); !name.empty()) return name;
    }
    std::span<char> text = Keep<char>(size);
    for (char& each : text) each = static_cast<char>('a' + ++count_ % 26);
    return {text.data(), text.size()};
  }
  template <typename T>
  wire::ArrayView<T> Array(size_t count, uint8_t type) {
    std::span<T> values = Keep<T>(Count(count));
    for (T& each : values) each = Element<T>(type);
    return wire::ArrayView<T>(values.data(), values.size());
  }
  template <typename Message, typename Fill>
  wire::ListView<Message> List(size_t count, Fill fill) {
    std::span<Message> messages = Keep<Message>(Count(count));
    for (Message& each : messages) fill(&each);
    return wire::ListView<Message>(std::span<const Message>(messages));
  }

 private:
  size_t Count(size_t count) const { return values_ != nullptr ? values_->Count(count) : count; }
  template <typename T>
  std::span<T> Keep(size_t count) {
    auto values = std::make_shared<std::vector<T>>(count);
    kept_.push_back(values);
    return *values;
  }

  SampleValues* const values_;
  std::vector<std::shared_ptr<void>> kept_;
  uint32_t count_ = 0;
};

}  // namespace hawser::proto

#endif  // HAWSER_PROTO_SAMPLE_ARENA_H_
