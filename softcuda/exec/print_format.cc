// SPDX-License-Identifier: Apache-2.0
#include "softcuda/exec/print_format.h"

#include <algorithm>
#include <bit>
#include <cstdio>

namespace hawser::exec {
namespace {

constexpr size_t kMaxText = 64 * 1024;
constexpr int kMaxWidth = 1024;

/// One conversion, rebuilt from known parts only.
struct Spec {
  std::string flags;
  int width = -1;
  int precision = -1;
  int longs = 0;  ///< 0: int, 1: long or long long (both 64 bits)
  int shorts = 0;
  char conversion = 0;

  std::string Text(const char* length) const {
    std::string text = "%" + flags;
    if (width >= 0) text += std::to_string(width);
    if (precision >= 0) text += "." + std::to_string(precision);
    text += length;
    text += conversion;
    return text;
  }
};

template <typename T>
std::string Render(const std::string& format, T value) {
  char buffer[2 * kMaxWidth + 512];
  // The format was rebuilt from checked parts. NOLINTNEXTLINE(clang-diagnostic-format-nonliteral)
  const int length = std::snprintf(buffer, sizeof(buffer), format.c_str(), value);
  return {buffer, static_cast<size_t>(std::clamp(length, 0, static_cast<int>(sizeof(buffer)) - 1))};
}

class Formatter {
 public:
  Formatter(std::string_view format, const ArgumentReader& argument, const StringReader& string)
      : format_(format), argument_(argument), string_(string) {}

  Printed Run() {
    while (at_ < format_.size() && result_.text.size() < kMaxText && !failed_) {
      const char c = format_[at_++];
      if (c != '%') {
        result_.text += c;
      } else if (at_ < format_.size() && format_[at_] == '%') {
        result_.text += '%';
        ++at_;
      } else {
        Conversion();
      }
    }
    if (result_.text.size() > kMaxText) result_.text.resize(kMaxText);
    return result_;
  }

 private:
  uint64_t Next(uint32_t size) {
    offset_ = (offset_ + size - 1) & ~(size - 1);
    const auto value = argument_(offset_, size);
    offset_ += size;
    ++result_.arguments;
    failed_ = failed_ || !value;
    return value.value_or(0);
  }

  int Number() {
    if (at_ < format_.size() && format_[at_] == '*') {
      ++at_;
      const auto value = static_cast<int32_t>(static_cast<uint32_t>(Next(4)));
      return std::clamp(value, -kMaxWidth, kMaxWidth);
    }
    int value = 0;
    while (at_ < format_.size() && format_[at_] >= '0' && format_[at_] <= '9') {
      value = std::min(kMaxWidth, value * 10 + (format_[at_++] - '0'));
    }
    return value;
  }

  void Conversion() {
    const size_t begin = at_;
    Spec spec;
    while (at_ < format_.size() && std::string_view("-+ #0").find(format_[at_]) != std::string_view::npos) {
      if (spec.flags.size() < 5) spec.flags += format_[at_];
      ++at_;
    }
    if (at_ < format_.size() && (format_[at_] == '*' || (format_[at_] >= '1' && format_[at_] <= '9'))) {
      spec.width = Number();
      if (spec.width < 0) {
        spec.flags += '-';
        spec.width = -spec.width;
      }
    }
    if (at_ < format_.size() && format_[at_] == '.') {
      ++at_;
      spec.precision = std::max(Number(), -1);
    }
    while (at_ < format_.size() && std::string_view("hlLzjtq").find(format_[at_]) != std::string_view::npos) {
      (format_[at_] == 'h' ? spec.shorts : spec.longs)++;
      ++at_;
    }
    if (at_ >= format_.size()) {
      result_.text += '%';
      result_.text += format_.substr(begin);
      return;
    }
    spec.conversion = format_[at_++];
    Convert(spec, begin);
  }

  void Convert(const Spec& spec, size_t begin) {
    switch (spec.conversion) {
      case 'd':
      case 'i': {
        auto value = static_cast<int64_t>(Next(spec.longs > 0 ? 8 : 4));
        if (spec.longs == 0) value = static_cast<int32_t>(value);
        if (spec.shorts == 1) value = static_cast<int16_t>(value);
        if (spec.shorts > 1) value = ((value & 0xff) ^ 0x80) - 0x80;
        result_.text += Render(spec.Text("ll"), static_cast<long long>(value));
        return;
      }
      case 'u':
      case 'o':
      case 'x':
      case 'X': {
        uint64_t value = Next(spec.longs > 0 ? 8 : 4);
        if (spec.shorts == 1) value &= 0xffff;
        if (spec.shorts > 1) value &= 0xff;
        result_.text += Render(spec.Text("ll"), static_cast<unsigned long long>(value));
        return;
      }
      case 'c':
        result_.text += Render(spec.Text(""), static_cast<int>(Next(4) & 0xff));
        return;
      case 'f':
      case 'F':
      case 'e':
      case 'E':
      case 'g':
      case 'G':
      case 'a':
      case 'A':
        result_.text += Render(spec.Text(""), std::bit_cast<double>(Next(8)));
        return;
      case 's': {
        const uint64_t address = Next(8);
        const auto value = address == 0 ? std::optional<std::string>("(null)") : string_(address);
        failed_ = failed_ || !value;
        if (value) result_.text += Render(spec.Text(""), value->substr(0, kMaxWidth).c_str());
        return;
      }
      case 'p': {
        const std::string number = Render("0x%llx", static_cast<unsigned long long>(Next(8)));
        Spec as_string = spec;
        as_string.conversion = 's';
        as_string.precision = -1;
        result_.text += Render(as_string.Text(""), number.c_str());
        return;
      }
      case 'n':
        Next(8);
        return;
      default:
        result_.text += '%';
        result_.text += format_.substr(begin, at_ - begin);
    }
  }

  std::string_view format_;
  const ArgumentReader& argument_;
  const StringReader& string_;
  size_t at_ = 0;
  uint32_t offset_ = 0;
  bool failed_ = false;
  Printed result_;
};

}  // namespace

Printed FormatPrint(std::string_view format, const ArgumentReader& argument, const StringReader& string) {
  return Formatter(format, argument, string).Run();
}

}  // namespace hawser::exec
