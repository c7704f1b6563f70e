// SPDX-License-Identifier: Apache-2.0
#include "proto/plugin/text.h"

#include <cctype>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace hawser::plugin {

void Text::Add(std::string_view pattern, Values values) {
  while (true) {
    const size_t begin = pattern.find('$');
    text_ += pattern.substr(0, begin);
    if (begin == std::string_view::npos) return;
    const size_t end = pattern.find('$', begin + 1);
    const std::string_view name = pattern.substr(begin + 1, end - begin - 1);
    bool found = false;
    for (const auto& [key, value] : values) {
      if (key != name) continue;
      text_ += value;
      found = true;
      break;
    }
    if (!found || end == std::string_view::npos) {
      std::fprintf(stderr, "protoc-gen-hawser: a pattern names '%.*s', which has no value\n", int(name.size()),
                   name.data());
      std::abort();
    }
    pattern.remove_prefix(end + 1);
  }
}

std::string Quoted(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + '"';
}

std::string CamelCase(std::string_view name) {
  std::string camel;
  bool upper = true;
  for (const char c : name) {
    if (c == '_') {
      upper = true;
      continue;
    }
    const auto u = static_cast<unsigned char>(c);
    camel += static_cast<char>(upper ? std::toupper(u) : std::tolower(u));
    upper = false;
  }
  return camel;
}

std::string LowerCase(std::string_view name) {
  std::string lower;
  for (const char c : name) lower += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower;
}

std::string Hex(uint64_t value) {
  char text[32];
  std::snprintf(text, sizeof(text), "0x%llx", static_cast<unsigned long long>(value));
  return text;
}

}  // namespace hawser::plugin
