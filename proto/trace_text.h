// SPDX-License-Identifier: Apache-2.0
// How the values of a message look in a trace. The generated trace.cc says which message it is.
#ifndef HAWSER_PROTO_TRACE_TEXT_H_
#define HAWSER_PROTO_TRACE_TEXT_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "wire/codec.h"
#include "wire/id.h"

namespace hawser::proto {

/// Name of an id's type byte.
using HandleNameFunction = const char* (*)(uint8_t);

/// A visitor of generated Visit() functions. Appends "(name=value, ...)" to a text. What it appends is
/// bounded, whatever the message claims.
class TraceText {
 public:
  TraceText(std::string* out, HandleNameFunction handle_name) : out_(*out), handle_name_(handle_name) {}

  template <typename Value>
  void Field(const char* name, const Value& value) {
    if (Full()) return;
    out_ += first_ ? "" : ", ";
    first_ = false;
    out_ += name;
    out_ += '=';
    Show(value);
  }

  /// All fields of `message`, in parentheses.
  template <typename Message>
  void Show(const Message& message) {
    out_ += '(';
    Visit(message, TraceText(&out_, handle_name_));
    out_ += ')';
  }
  void Show(uint8_t value) { Show(uint64_t{value}); }
  void Show(uint32_t value) { Show(uint64_t{value}); }
  void Show(int32_t value) { Show(int64_t{value}); }
  void Show(uint64_t value);
  void Show(int64_t value);
  void Show(wire::Id id);
  void Show(wire::Bytes bytes);
  void Show(std::string_view text);
  template <size_t N>
  void Show(const std::array<std::byte, N>& bytes) {
    Show(wire::Bytes(bytes));
  }
  template <typename T, size_t N>
  void Show(const std::array<T, N>& values) {
    ShowElements(values);
  }
  template <typename T>
  void Show(const wire::ArrayView<T>& values) {
    ShowElements(values);
  }
  template <typename Message>
  void Show(const wire::ListView<Message>& list) {
    out_ += '[';
    size_t shown = 0;
    list.ForEach([&](const Message& message) {
      if (shown == kMaxElements || Full()) return;
      out_ += shown++ == 0 ? "" : ", ";
      Show(message);
    });
    Close(list.size() - shown);
  }

 private:
  static constexpr size_t kMaxElements = 8;
  static constexpr size_t kMaxBytes = 16;
  static constexpr size_t kMaxCharacters = 64;
  static constexpr size_t kMaxLine = 4096;

  template <typename Elements>
  void ShowElements(const Elements& elements) {
    out_ += '[';
    size_t shown = 0;
    for (; shown < elements.size() && shown < kMaxElements; ++shown) {
      out_ += shown == 0 ? "" : ", ";
      Show(elements[shown]);
    }
    Close(elements.size() - shown);
  }
  bool Full() const { return out_.size() > kMaxLine; }
  void Close(size_t more);

  std::string& out_;
  HandleNameFunction handle_name_;
  bool first_ = true;
};

/// `start` and then size and first bytes of what nobody can decode.
std::string TraceBytes(std::string start, wire::Bytes payload);

/// `start` and then the fields of the message in `payload`.
template <typename Message>
std::string TraceMessage(std::string start, wire::Bytes payload, HandleNameFunction handle_name) {
  Message message;
  wire::Reader reader(payload);
  if (!message.Decode(reader) || !reader.Done()) return TraceBytes(std::move(start) + " undecodable", payload);
  TraceText(&start, handle_name).Show(message);
  return start;
}

}  // namespace hawser::proto

#endif  // HAWSER_PROTO_TRACE_TEXT_H_
