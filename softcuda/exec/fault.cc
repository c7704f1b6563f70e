// SPDX-License-Identifier: Apache-2.0
#include "softcuda/exec/fault.h"

#include <cstdio>

namespace hawser::exec {
namespace {

std::string Hex(uint64_t value) {
  char text[32];
  std::snprintf(text, sizeof(text), "0x%llx", static_cast<unsigned long long>(value));
  return text;
}

std::string Triple(const std::array<uint32_t, 3>& v) {
  return "(" + std::to_string(v[0]) + "," + std::to_string(v[1]) + "," + std::to_string(v[2]) + ")";
}

}  // namespace

const char* Name(Fault::Kind kind) {
  switch (kind) {
    case Fault::Kind::kNone:
      return "no fault";
    case Fault::Kind::kIllegalAddress:
      return "illegal address";
    case Fault::Kind::kMisaligned:
      return "misaligned address";
    case Fault::Kind::kInvalidAddressSpace:
      return "invalid address space";
    case Fault::Kind::kIllegalInstruction:
      return "illegal instruction";
    case Fault::Kind::kInvalidPc:
      return "invalid program counter";
    case Fault::Kind::kTrap:
      return "trap";
    case Fault::Kind::kAssert:
      return "assertion failed";
    case Fault::Kind::kStackOverflow:
      return "stack overflow";
    case Fault::Kind::kDeadlock:
      return "deadlock";
    case Fault::Kind::kOutOfMemory:
      return "out of host memory";
    case Fault::Kind::kCancelled:
      return "cancelled";
    case Fault::Kind::kBadLaunch:
      return "bad launch";
  }
  return "unknown fault";
}

std::string Fault::Text() const {
  std::string text = std::string(Name(kind)) + " in kernel " + kernel;
  if (!function.empty()) text += " (function " + function + ")";
  if (kind == Kind::kBadLaunch || kind == Kind::kCancelled || kind == Kind::kOutOfMemory) {
    return message.empty() ? text : text + ": " + message;
  }
  text += ", block " + Triple(block) + ", thread " + Triple(thread);
  if (size > 0) {
    text +=
        std::string(": ") + (write ? "write" : "read") + " of " + std::to_string(size) + " bytes at " + Hex(address);
  }
  if (!message.empty()) text += ": " + message;
  if (!instruction.empty()) text += "\n  PTX line " + std::to_string(line) + ": " + instruction;
  if (nearest) {
    text += "\n  nearest allocation: " + Hex(nearest->begin) + " to " + Hex(nearest->end);
    if (address >= nearest->end) text += ", " + std::to_string(address - nearest->end) + " bytes before the address";
    if (address < nearest->begin) text += ", " + std::to_string(nearest->begin - address) + " bytes after the address";
  }
  return text;
}

}  // namespace hawser::exec
