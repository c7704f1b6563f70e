// SPDX-License-Identifier: Apache-2.0
// The data plane's packed, little-endian encoding: a bounded writer, a bounded reader with a sticky
// error, and unaligned views into received bytes. Nothing here allocates.
//
// Layout rules (also what protoc-gen-hawser emits):
//   * scalars: 1, 2, 4 or 8 bytes, no padding;
//   * bytes, string, repeated: a u32 count (bytes or elements), then the elements, no padding;
//   * a nested message: its fields in order; repeated messages: a u32 count, then each in turn.
//
// Threading: none; a Reader or Writer belongs to one thread.
#ifndef HAWSER_WIRE_CODEC_H_
#define HAWSER_WIRE_CODEC_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>

namespace hawser::wire {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
              "the packed codec copies scalars as they are; add byte swaps for this machine");

/// Bytes that somebody else owns. A decoded view lives as long as the frame it was decoded from.
using Bytes = std::span<const std::byte>;

inline Bytes AsBytes(const void* data, size_t size) { return {static_cast<const std::byte*>(data), size}; }
inline Bytes AsBytes(std::string_view text) { return AsBytes(text.data(), text.size()); }

/// Unaligned view of `count` scalars in received bytes, or over a caller's own array when encoding.
template <typename T>
class ArrayView {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  ArrayView() = default;
  ArrayView(const T* data, size_t count)
      : data_(reinterpret_cast<const std::byte*>(data)), count_(static_cast<uint32_t>(count)) {}
  explicit ArrayView(std::span<const T> values) : ArrayView(values.data(), values.size()) {}
  static ArrayView FromRaw(const std::byte* data, uint32_t count) {
    ArrayView view;
    view.data_ = data;
    view.count_ = count;
    return view;
  }

  uint32_t size() const { return count_; }
  bool empty() const { return count_ == 0; }
  T operator[](size_t i) const {
    T value;
    std::memcpy(&value, data_ + i * sizeof(T), sizeof(T));
    return value;
  }
  const std::byte* raw() const { return data_; }
  size_t byte_size() const { return size_t{count_} * sizeof(T); }

 private:
  const std::byte* data_ = nullptr;
  uint32_t count_ = 0;
};

/// Writes into memory of known size. The caller reserves SizeOf() bytes first, so overflow is a
/// programming error: the writer then sets failed() and writes nothing more.
class Writer {
 public:
  Writer(std::byte* data, size_t size) : begin_(data), at_(data), end_(data + size) {}

  template <typename T>
  void Put(T value) {
    static_assert(std::is_trivially_copyable_v<T>);
    if (size_t(end_ - at_) < sizeof(T)) [[unlikely]] {
      failed_ = true;
      return;
    }
    std::memcpy(at_, &value, sizeof(T));
    at_ += sizeof(T);
  }
  void PutRaw(const void* data, size_t size) {
    if (size_t(end_ - at_) < size) [[unlikely]] {
      failed_ = true;
      return;
    }
    if (size != 0) std::memcpy(at_, data, size);
    at_ += size;
  }
  void PutBytes(Bytes bytes) {
    Put(static_cast<uint32_t>(bytes.size()));
    PutRaw(bytes.data(), bytes.size());
  }
  void PutString(std::string_view text) { PutBytes(AsBytes(text)); }
  template <typename T>
  void PutArray(const ArrayView<T>& values) {
    Put(values.size());
    PutRaw(values.raw(), values.byte_size());
  }

  bool failed() const { return failed_; }
  size_t written() const { return size_t(at_ - begin_); }

 private:
  std::byte* begin_;
  std::byte* at_;
  std::byte* end_;
  bool failed_ = false;
};

/// Reads untrusted bytes. After the first read that does not fit, failed() stays true and every
/// read yields zeros or empty views; check once, at the end.
class Reader {
 public:
  explicit Reader(Bytes bytes) : at_(bytes.data()), end_(bytes.data() + bytes.size()) {}

  template <typename T>
  T Get() {
    static_assert(std::is_trivially_copyable_v<T>);
    T value{};
    if (size_t(end_ - at_) < sizeof(T)) [[unlikely]] {
      Fail();
      return value;
    }
    std::memcpy(&value, at_, sizeof(T));
    at_ += sizeof(T);
    return value;
  }
  /// A view of `size` bytes of the underlying frame.
  Bytes GetRaw(size_t size) {
    if (size_t(end_ - at_) < size) [[unlikely]] {
      Fail();
      return {};
    }
    Bytes view(at_, size);
    at_ += size;
    return view;
  }
  /// u32 count, then bytes. A count above `max` is an error.
  Bytes GetBytes(uint32_t max = UINT32_MAX) {
    const uint32_t size = Get<uint32_t>();
    if (size > max) [[unlikely]] {
      Fail();
      return {};
    }
    return GetRaw(size);
  }
  std::string_view GetString(uint32_t max = UINT32_MAX) {
    const Bytes bytes = GetBytes(max);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  template <typename T>
  ArrayView<T> GetArray(uint32_t max = UINT32_MAX) {
    const uint32_t count = Get<uint32_t>();
    if (count > max || count > remaining() / sizeof(T)) [[unlikely]] {
      Fail();
      return {};
    }
    const Bytes raw = GetRaw(size_t{count} * sizeof(T));
    return ArrayView<T>::FromRaw(raw.data(), count);
  }

  void Fail() {
    failed_ = true;
    at_ = end_;
  }
  bool failed() const { return failed_; }
  size_t remaining() const { return size_t(end_ - at_); }
  /// True when nothing failed and every byte was consumed: the only acceptable end of a decode.
  bool Done() const { return !failed_ && at_ == end_; }
  const std::byte* position() const { return at_; }

 private:
  const std::byte* at_;
  const std::byte* end_;
  bool failed_ = false;
};

/// A list of nested messages. Encoding: over the caller's array. Decoding: a view of the received
/// bytes, each element decoded when visited; Decode() of the enclosing message has already walked
/// the list once, so visiting cannot fail.
template <typename Message>
class ListView {
 public:
  ListView() = default;
  explicit ListView(std::span<const Message> messages)
      : messages_(messages.data()), count_(static_cast<uint32_t>(messages.size())) {}

  uint32_t size() const { return count_; }
  bool empty() const { return count_ == 0; }

  /// Calls visit(const Message&) for each element in order.
  template <typename Visitor>
  void ForEach(Visitor&& visit) const {
    if (messages_ != nullptr) {
      for (uint32_t i = 0; i < count_; ++i) visit(messages_[i]);
      return;
    }
    Reader reader(raw_);
    for (uint32_t i = 0; i < count_; ++i) {
      Message message;
      message.Decode(reader);
      visit(static_cast<const Message&>(message));
    }
  }

  size_t SizeOf() const {
    size_t size = sizeof(uint32_t);
    ForEach([&](const Message& message) { size += message.SizeOf(); });
    return size;
  }
  void Encode(Writer& writer) const {
    writer.Put(count_);
    ForEach([&](const Message& message) { message.Encode(writer); });
  }
  void Decode(Reader& reader, uint32_t max = UINT32_MAX) {
    messages_ = nullptr;
    count_ = reader.Get<uint32_t>();
    // Each element takes at least one byte, so a count above the remaining bytes is a lie.
    if (count_ > max || count_ > reader.remaining()) reader.Fail();
    const std::byte* begin = reader.position();
    for (uint32_t i = 0; i < count_ && !reader.failed(); ++i) {
      Message message;
      message.Decode(reader);
    }
    if (reader.failed()) {
      count_ = 0;
      raw_ = {};
      return;
    }
    raw_ = Bytes(begin, reader.position());
  }

 private:
  const Message* messages_ = nullptr;
  uint32_t count_ = 0;
  Bytes raw_;
};

}  // namespace hawser::wire

#endif  // HAWSER_WIRE_CODEC_H_
