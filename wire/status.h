// SPDX-License-Identifier: Apache-2.0
// Errors are values with context: what happened, to whom, what to do.
#ifndef HAWSER_WIRE_STATUS_H_
#define HAWSER_WIRE_STATUS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace hawser::wire {

/// Kind of failure. The text of a Status says the rest.
enum class Code : uint8_t {
  kOk = 0,
  kInvalid,    ///< The caller's input is wrong (URI, argument, configuration).
  kProtocol,   ///< The peer sent bytes that break the protocol.
  kRefused,    ///< The peer answered and refused (version, authentication, limit).
  kClosed,     ///< The peer is gone; an orderly or sudden end of the stream.
  kExhausted,  ///< A quota, limit or resource of this side ran out.
  kTimeout,    ///< A deadline passed.
  kSystem,     ///< A system call failed; the text has errno's words.
};

/// Outcome of an operation without a value. Cheap when ok: no allocation.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Code code, std::string text) : code_(code), text_(std::move(text)) {}

  static Status Ok() { return {}; }
  /// A kSystem status reading "<what>: <strerror(error)>". `error` defaults to errno.
  static Status FromErrno(const std::string& what);
  static Status FromErrno(const std::string& what, int error);

  bool ok() const { return code_ == Code::kOk; }
  Code code() const { return code_; }
  const std::string& text() const { return text_; }

 private:
  Code code_ = Code::kOk;
  std::string text_;
};

/// A value or the Status that says why there is none.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}          // NOLINT(google-explicit-constructor)
  Result(Status status) : status_(std::move(status)) {}  // NOLINT(google-explicit-constructor)

  bool ok() const { return value_.has_value(); }
  const Status& status() const { return status_; }
  T& value() { return *value_; }
  const T& value() const { return *value_; }
  T& operator*() { return *value_; }
  T* operator->() { return &*value_; }

 private:
  std::optional<T> value_;
  Status status_;
};

}  // namespace hawser::wire

#endif  // HAWSER_WIRE_STATUS_H_
