// SPDX-License-Identifier: Apache-2.0
#include "tools/admin/kernel_name.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <utility>

namespace hawser::tools {
namespace {

constexpr std::string_view kUnknown = "…";
constexpr int kMostDepth = 16;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

std::string_view BuiltinType(char c) {
  static constexpr std::array<std::pair<char, std::string_view>, 19> kTypes{{{'v', "void"},
                                                                             {'w', "wchar_t"},
                                                                             {'b', "bool"},
                                                                             {'c', "char"},
                                                                             {'a', "signed char"},
                                                                             {'h', "unsigned char"},
                                                                             {'s', "short"},
                                                                             {'t', "unsigned short"},
                                                                             {'i', "int"},
                                                                             {'j', "unsigned int"},
                                                                             {'l', "long"},
                                                                             {'m', "unsigned long"},
                                                                             {'x', "long long"},
                                                                             {'y', "unsigned long long"},
                                                                             {'n', "__int128"},
                                                                             {'o', "unsigned __int128"},
                                                                             {'f', "float"},
                                                                             {'d', "double"},
                                                                             {'e', "long double"}}};
  const auto* const at = std::find_if(kTypes.begin(), kTypes.end(), [c](const auto& type) { return type.first == c; });
  return at == kTypes.end() ? std::string_view() : at->second;
}

// Reads from the front. After something that is not understood, nothing behind it is read (`lost_`): where it ends is
// not known. The text that was read so far is good.
class Reader {
 public:
  explicit Reader(std::string_view rest) : rest_(rest) {}

  /// Nothing if not even one name was read.
  std::optional<std::string> Name() {
    std::string name = Take('N') ? Nested() : Unscoped();
    if (!named_) return std::nullopt;
    return name;
  }

 private:
  bool Is(char c) const { return !lost_ && !rest_.empty() && rest_.front() == c; }
  bool Take(char c) {
    if (!Is(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }
  std::string Lost() {
    lost_ = true;
    return std::string(kUnknown);
  }

  /// An identifier with its length before it.
  std::string SourceName() {
    Take('L');  // Of one translation unit alone.
    if (lost_ || rest_.empty() || !IsDigit(rest_.front())) return Lost();
    size_t length = 0;
    while (!rest_.empty() && IsDigit(rest_.front())) {
      length = std::min<size_t>(length * 10 + static_cast<size_t>(rest_.front() - '0'), 1 << 20);
      rest_.remove_prefix(1);
    }
    const std::string_view name = rest_.substr(0, length);
    rest_.remove_prefix(name.size());
    if (name.empty()) return Lost();
    named_ = true;
    const bool cut = name.size() < length;
    if (cut) lost_ = true;
    if (name.substr(0, 8) == "_GLOBAL_" || name.substr(0, 10) == "_INTERNAL_") return "(anonymous namespace)";
    return std::string(name) + (cut ? std::string(kUnknown) : std::string());
  }

  std::string Unscoped() {
    std::string name;
    if (rest_.substr(0, 2) == "St") {
      rest_.remove_prefix(2);
      name = "std::";
    }
    name += SourceName();
    if (Is('I')) name += Arguments();
    return name;
  }

  /// Behind the 'N'.
  std::string Nested() {
    while (!lost_ && !rest_.empty() && (Is('r') || Is('V') || Is('K'))) rest_.remove_prefix(1);
    std::string name;
    while (!lost_ && !Take('E')) {
      if (Is('I') && !name.empty()) {
        name += Arguments();
        continue;
      }
      if (!name.empty()) name += "::";
      if (rest_.substr(0, 2) == "St") {
        rest_.remove_prefix(2);
        name += "std";
      } else {
        name += SourceName();
      }
    }
    return name;
  }

  std::string Arguments() {
    Take('I');
    std::string text = "<";
    List(&text);
    return text + ">";
  }

  void List(std::string* text) {
    if (++depth_ > kMostDepth) *text += Lost();
    for (bool first = true; !lost_ && !Take('E'); first = false) {
      if (!first) *text += ", ";
      if (Take('J')) {
        List(text);
      } else {
        *text += Is('L') ? Literal() : Type();
      }
    }
    --depth_;
  }

  /// A number, or a value of a type that is a number inside.
  std::string Literal() {
    Take('L');
    const bool truth = Is('b');
    const bool plain = !rest_.empty() && !BuiltinType(rest_.front()).empty();
    std::string type = Type();
    if (lost_) return type;
    std::string value;
    if (Take('n')) value = "-";
    while (!rest_.empty() && IsDigit(rest_.front())) {
      value += rest_.front();
      rest_.remove_prefix(1);
    }
    if (value.empty() || !Take('E')) return Lost();
    if (truth && (value == "0" || value == "1")) return value == "1" ? "true" : "false";
    return plain ? value : "(" + type + ")" + value;
  }

  std::string Type() {
    if (lost_ || rest_.empty() || ++depth_ > kMostDepth) return Lost();
    std::string type = AnyType();
    --depth_;
    return type;
  }

  std::string AnyType() {
    if (Take('P')) return Type() + "*";
    if (Take('R')) return Type() + "&";
    if (Take('O')) return Type() + "&&";
    if (Take('K')) return "const " + Type();
    if (Take('N')) return Nested();
    if (rest_.substr(0, 2) == "Dh") {
      rest_.remove_prefix(2);
      return "half";
    }
    if (IsDigit(rest_.front()) || rest_.substr(0, 2) == "St") return Unscoped();
    const std::string_view builtin = BuiltinType(rest_.front());
    if (builtin.empty()) return Lost();
    rest_.remove_prefix(1);
    return std::string(builtin);
  }

  std::string_view rest_;
  int depth_ = 0;
  bool lost_ = false;
  bool named_ = false;
};

}  // namespace

std::string KernelName(std::string_view name) {
  if (name.substr(0, 2) != "_Z") return std::string(name);
  return Reader(name.substr(2)).Name().value_or(std::string(name));
}

}  // namespace hawser::tools
