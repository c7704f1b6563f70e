// SPDX-License-Identifier: Apache-2.0
// Where sample messages (tests and fuzz seeds) get their values and keep what their views point to.
#ifndef HAWSER_PROTO_SAMPLE_ARENA_H_
#define HAWSER_PROTO_SAMPLE_ARENA_H_

#include <cstddef>
#include <cstdint>
#include <initializer_list>
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
  /// A number of so many bytes for a field of this name.
  virtual uint64_t Number(size_t bytes, std::string_view field) = 0;
  /// One of these, which are all that is legal.
  virtual uint64_t OneOf(std::span<const uint64_t> legal) = 0;
  /// Any of these bits.
  virtual uint64_t Bits(uint64_t legal) = 0;
  /// `creates`: of an object that is to come into being.
  virtual wire::Id Id(uint8_t type, bool creates) = 0;
  /// How many bytes, characters or elements there are in a field of this name, where a sample has `count`.
  virtual size_t Count(size_t count, std::string_view field) = 0;
  /// The content of a field of this name.
  virtual void Fill(std::span<std::byte> bytes, std::string_view field) = 0;
  /// Empty: letters.
  virtual std::string_view Name() = 0;
};

/// Values count up, so that no two neighbours are equal and every byte of a number matters; or they are drawn from
/// `values`, which outlives the arena. Views live as long as the arena.
class SampleArena {
 public:
  explicit SampleArena(SampleValues* values = nullptr) : values_(values) {}

  template <typename T>
  T Number(std::string_view field) {
    if (values_ != nullptr) return static_cast<T>(values_->Number(sizeof(T), field));
    const uint64_t bits = ++count_ * 0x0101010101010101u;
    return static_cast<T>(bits);
  }
  /// The last of these, as it has most to it.
  template <typename T>
  T OneOf(std::initializer_list<uint64_t> legal) {
    const std::span<const uint64_t> values(legal.begin(), legal.size());
    return static_cast<T>(values_ != nullptr ? values_->OneOf(values) : values.back());
  }
  /// All of these.
  template <typename T>
  T Bits(uint64_t legal) {
    return static_cast<T>(values_ != nullptr ? values_->Bits(legal) : legal);
  }
  wire::Id Id(uint8_t type, bool creates = false) {
    if (values_ != nullptr) return values_->Id(type, creates);
    ++count_;
    return wire::Id(type, count_, count_ * 3);
  }
  template <typename T>
  T Element(uint8_t type, std::string_view field, bool creates = false) {
    if constexpr (std::is_same_v<T, wire::Id>) {
      return Id(type, creates);
    } else {
      return Number<T>(field);
    }
  }
  wire::Bytes Bytes(size_t size, std::string_view field) {
    std::span<std::byte> bytes = Keep<std::byte>(Count(size, field));
    Fill(bytes, field);
    return bytes;
  }
  void Fill(std::span<std::byte> bytes, std::string_view field) {
    if (values_ != nullptr) return values_->Fill(bytes, field);
    for (std::byte& each : bytes) each = Number<std::byte>(field);
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
  wire::ArrayView<T> Array(size_t count, uint8_t type, std::string_view field, bool creates = false) {
    std::span<T> values = Keep<T>(Count(count, field));
    for (T& each : values) each = Element<T>(type, field, creates);
    return wire::ArrayView<T>(values.data(), values.size());
  }
  template <typename Message, typename FillEach>
  wire::ListView<Message> List(size_t count, std::string_view field, FillEach fill) {
    std::span<Message> messages = Keep<Message>(Count(count, field));
    for (Message& each : messages) fill(&each);
    return wire::ListView<Message>(std::span<const Message>(messages));
  }

 private:
  size_t Count(size_t count, std::string_view field) const {
    return values_ != nullptr ? values_->Count(count, field) : count;
  }
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
