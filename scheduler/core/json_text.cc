// SPDX-License-Identifier: Apache-2.0
#include "scheduler/core/json_text.h"

#include <cstddef>
#include <string_view>

namespace hawser::scheduler {
namespace {

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  bool Whole() {
    const bool value = Value(64);
    Space();
    return value && at_ == text_.size();
  }

 private:
  char Look() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool Take(char c) {
    if (Look() != c || at_ == text_.size()) return false;
    ++at_;
    return true;
  }
  bool Take(std::string_view word) {
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }
  void Space() {
    while (at_ < text_.size() && (Look() == ' ' || Look() == '\t' || Look() == '\n' || Look() == '\r')) ++at_;
  }
  static bool IsDigit(char c) { return c >= '0' && c <= '9'; }
  static bool IsHex(char c) { return IsDigit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

  bool Digits() {
    if (!IsDigit(Look())) return false;
    while (IsDigit(Look())) ++at_;
    return true;
  }
  bool Number() {
    (void)Take('-');
    if (!Take('0') && !Digits()) return false;
    if (Take('.') && !Digits()) return false;
    if (Take('e') || Take('E')) {
      if (!Take('+')) (void)Take('-');
      return Digits();
    }
    return true;
  }
  bool String() {
    if (!Take('"')) return false;
    while (at_ < text_.size()) {
      const char c = text_[at_++];
      if (c == '"') return true;
      if (static_cast<unsigned char>(c) < 0x20) return false;
      if (c != '\\') continue;
      if (Take('u')) {
        for (int i = 0; i < 4; ++i, ++at_) {
          if (!IsHex(Look())) return false;
        }
      } else if (at_ == text_.size() || std::string_view("\"\\/bfnrt").find(text_[at_++]) == std::string_view::npos) {
        return false;
      }
    }
    return false;
  }
  /// After the opening bracket: members up to `end`.
  bool Members(char end, bool named, int depth) {
    Space();
    if (Take(end)) return true;
    do {
      Space();
      if (named && !String()) return false;
      Space();
      if (named && !Take(':')) return false;
      if (!Value(depth)) return false;
      Space();
    } while (Take(','));
    return Take(end);
  }
  bool Value(int depth) {
    Space();
    if (depth == 0) return false;
    if (Take('{')) return Members('}', true, depth - 1);
    if (Take('[')) return Members(']', false, depth - 1);
    if (Look() == '"') return String();
    return Take("true") || Take("false") || Take("null") || Number();
  }

  const std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

bool IsJson(std::string_view text) { return Reader(text).Whole(); }

}  // namespace hawser::scheduler
