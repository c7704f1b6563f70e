// SPDX-License-Identifier: Apache-2.0
// Text that grows by filling in patterns: what the emitters write their files with.
#ifndef HAWSER_PROTO_PLUGIN_TEXT_H_
#define HAWSER_PROTO_PLUGIN_TEXT_H_

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

namespace hawser::plugin {

class Text {
 public:
  using Values = std::initializer_list<std::pair<std::string_view, std::string>>;

  /// Appends `pattern`, with each $name$ replaced. A name without a value is a mistake in the
  /// emitter and ends the program.
  void Add(std::string_view pattern, Values values = {});

  const std::string& str() const { return text_; }

 private:
  std::string text_;
};

/// `text` as a C++ string literal, quotes included.
std::string Quoted(std::string_view text);

/// "mem_flags" -> "MemFlags"; "CONTEXT" -> "Context".
std::string CamelCase(std::string_view name);

std::string LowerCase(std::string_view name);

/// Value in hexadecimal, "0x1f".
std::string Hex(uint64_t value);

}  // namespace hawser::plugin

#endif  // HAWSER_PROTO_PLUGIN_TEXT_H_
