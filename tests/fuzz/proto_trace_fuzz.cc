// SPDX-License-Identifier: Apache-2.0
// A trace takes any bytes and makes a line of bounded length and printable characters of them.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

#include "proto/opencl/trace.h"
#include "wire/frame.h"

namespace {

void MustBeALine(const std::string& line) {
  if (line.empty() || line.size() > 16384) std::abort();
  for (const char c : line) {
    if (c < ' ' || c > '~') std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  hawser::wire::FrameHeader header;
  if (size < sizeof(header)) return 0;
  std::memcpy(&header, data, sizeof(header));
  const hawser::wire::Bytes payload = hawser::wire::AsBytes(data + sizeof(header), size - sizeof(header));
  MustBeALine(hawser::opencl::Trace(header.opcode, payload));
  MustBeALine(hawser::opencl::TraceReply(header.opcode, payload));
  return 0;
}
