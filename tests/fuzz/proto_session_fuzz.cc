// SPDX-License-Identifier: Apache-2.0
// The first frame in each direction: the input is a header, which is not looked at, and a payload.
#include <cstdint>

#include "proto/session/messages.h"
#include "tests/fuzz/proto_touch.h"
#include "wire/frame.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr size_t kHeader = sizeof(hawser::wire::FrameHeader);
  if (size < kHeader) return 0;
  const hawser::wire::Bytes payload = hawser::wire::AsBytes(data + kHeader, size - kHeader);
  hawser::fuzz::TryDecode<hawser::session::Hello>(payload);
  hawser::fuzz::TryDecode<hawser::session::Welcome>(payload);
  return 0;
}
