// SPDX-License-Identifier: Apache-2.0
#include "proto/trace_text.h"

#include <cinttypes>
#include <cstdio>

namespace hawser::proto {
namespace {

std::string Hex(uint64_t value) {
  char text[24];
  std::snprintf(text, sizeof(text), "0x%" PRIx64, value);
  return text;
}

}  // namespace

void TraceText::Show(uint64_t value) {
  // Large numbers are addresses, masks and "all ones".
  out_ += value > UINT32_MAX ? Hex(value) : std::to_string(value);
}

void TraceText::Show(int64_t value) { out_ += std::to_string(value); }

void TraceText::Show(wire::Id id) {
  if (!id) {
    out_ += "null";
    return;
  }
  out_ += handle_name_(id.type());
  out_ += '#' + std::to_string(id.index()) + '.' + std::to_string(id.generation());
}

void TraceText::Show(wire::Bytes bytes) {
  out_ += std::to_string(bytes.size()) + " bytes";
  const size_t shown = bytes.size() < kMaxBytes ? bytes.size() : kMaxBytes;
  for (size_t i = 0; i < shown; ++i) {
    char text[8];
    std::snprintf(text, sizeof(text), "%s%02x", i == 0 ? ": " : " ", std::to_integer<unsigned>(bytes[i]));
    out_ += text;
  }
  if (shown < bytes.size()) out_ += " ...";
}

void TraceText::Show(std::string_view text) {
  out_ += '"';
  for (const char c : text.substr(0, kMaxCharacters)) {
    // Printable ASCII only: a trace must not be able to drive a terminal.
    if (c == '\n') {
      out_ += "\\n";
    } else if (c < ' ' || c > '~') {
      out_ += '?';
    } else {
      out_ += c;
    }
  }
  out_ += '"';
  if (text.size() > kMaxCharacters) out_ += "... (" + std::to_string(text.size()) + " characters)";
}

void TraceText::Close(size_t more) {
  if (more != 0) out_ += ", ... " + std::to_string(more) + " more";
  out_ += ']';
}

std::string TraceBytes(std::string start, wire::Bytes payload) {
  start += ", ";
  TraceText(&start, nullptr).Show(payload);
  return start;
}

}  // namespace hawser::proto
