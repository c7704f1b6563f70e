// SPDX-License-Identifier: Apache-2.0
// Looks at every byte of a decoded message, so that a view that leaves its frame is noticed.
#ifndef HAWSER_TESTS_FUZZ_PROTO_TOUCH_H_
#define HAWSER_TESTS_FUZZ_PROTO_TOUCH_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <type_traits>
#include <vector>

#include "proto/cuda/visit.h"
#include "proto/opencl/visit.h"
#include "proto/session/visit.h"
#include "wire/codec.h"
#include "wire/id.h"

namespace hawser::fuzz {

/// A visitor that adds everything up.
class Toucher {
 public:
  template <typename Value>
  void Field(const char*, const Value& value) {
    Touch(value);
  }
  uint64_t sum() const { return sum_; }

 private:
  template <typename Value>
  void Touch(const Value& value) {
    if constexpr (std::is_integral_v<Value>) {
      sum_ += static_cast<uint64_t>(value);
    } else {
      Visit(value, *this);
    }
  }
  void Touch(wire::Id id) { sum_ += id.raw(); }
  void Touch(std::byte value) { sum_ += std::to_integer<uint64_t>(value); }
  void Touch(wire::Bytes bytes) {
    for (const std::byte each : bytes) Touch(each);
  }
  void Touch(std::string_view text) { Touch(wire::AsBytes(text)); }
  template <typename T, size_t N>
  void Touch(const std::array<T, N>& values) {
    for (const T& each : values) Touch(each);
  }
  template <typename T>
  void Touch(const wire::ArrayView<T>& values) {
    for (size_t i = 0; i < values.size(); ++i) Touch(values[i]);
  }
  template <typename Message>
  void Touch(const wire::ListView<Message>& list) {
    uint32_t visited = 0;
    list.ForEach([&](const Message& message) {
      ++visited;
      Touch(message);
    });
    if (visited != list.size()) std::abort();
  }

  uint64_t sum_ = 0;
};

template <typename Message>
void TouchAll(const Message& message) {
  Toucher toucher;
  Visit(message, toucher);
  [[maybe_unused]] volatile uint64_t keep = toucher.sum();  // The reads must happen.
}

/// What was decoded from `payload` encodes to `payload`.
template <typename Message>
void MustEncodeTo(const Message& message, wire::Bytes payload) {
  std::vector<std::byte> again(message.SizeOf());
  wire::Writer writer(again.data(), again.size());
  message.Encode(writer);
  if (writer.failed() || again.size() != payload.size()) std::abort();
  if (!again.empty() && std::memcmp(again.data(), payload.data(), again.size()) != 0) std::abort();
}

/// Decodes, and when that succeeds does both of the above.
template <typename Message>
void TryDecode(wire::Bytes payload) {
  Message message;
  wire::Reader reader(payload);
  if (!message.Decode(reader) || !reader.Done()) return;
  MustEncodeTo(message, payload);
  TouchAll(message);
}

}  // namespace hawser::fuzz

#endif  // HAWSER_TESTS_FUZZ_PROTO_TOUCH_H_
