// SPDX-License-Identifier: Apache-2.0
#include "proto/checks.h"

#include <cinttypes>
#include <cstdio>

namespace hawser::proto {
namespace {

/// "clCreateBuffer (command 7): "
std::string Start(const char* call, const wire::FrameHeader& header) {
  return std::string(call) + " (command " + std::to_string(header.seq) + "): ";
}

std::string Hex(uint64_t value) {
  char text[24];
  std::snprintf(text, sizeof(text), "0x%" PRIx64, value);
  return text;
}

}  // namespace

std::string UnknownOpcodeText(const wire::FrameHeader& header) {
  return "opcode " + std::to_string(header.opcode) + " (command " + std::to_string(header.seq) + ") is no call";
}

std::string UndecodableText(const char* call, const wire::FrameHeader& header, size_t payload, const char* field,
                            size_t left_over) {
  if (field == nullptr) {
    return Start(call, header) + std::to_string(left_over) + " bytes follow the last field in a payload of " +
           std::to_string(payload);
  }
  return Start(call, header) + "field '" + field + "' exceeds its limit or the payload of " + std::to_string(payload) +
         " bytes";
}

std::string WrongIdText(const char* call, const wire::FrameHeader& header, const Problem& problem) {
  return Start(call, header) + "field '" + problem.field + "' is " + Hex(problem.value) + ", which is no id of a " +
         problem.expected;
}

std::string IllegalValueText(const char* call, const wire::FrameHeader& header, const Problem& problem) {
  return Start(call, header) + "field '" + problem.field + "' is " + Hex(problem.value) +
         ", which is not among the legal values '" + problem.expected + "'";
}

}  // namespace hawser::proto
