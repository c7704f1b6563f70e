// SPDX-License-Identifier: Apache-2.0
// A frame made from a message, for tests of dispatching.
#ifndef HAWSER_TESTS_UNIT_PROTO_FRAME_H_
#define HAWSER_TESTS_UNIT_PROTO_FRAME_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "proto/opencl/opcodes.h"
#include "wire/codec.h"
#include "wire/frame.h"

namespace hawser::opencl {

struct Frame {
  wire::FrameHeader header;
  std::vector<std::byte> payload;
};

template <typename Message>
Frame FrameOf(Opcode opcode, const Message& message) {
  Frame frame;
  frame.payload.resize(message.SizeOf());
  wire::Writer writer(frame.payload.data(), frame.payload.size());
  message.Encode(writer);
  frame.header.size = static_cast<uint32_t>(frame.payload.size());
  frame.header.opcode = static_cast<uint16_t>(opcode);
  frame.header.seq = 7;
  return frame;
}

}  // namespace hawser::opencl

#endif  // HAWSER_TESTS_UNIT_PROTO_FRAME_H_
