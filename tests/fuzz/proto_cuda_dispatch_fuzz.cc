// SPDX-License-Identifier: Apache-2.0
// What a worker does with a frame: the input is a header and a payload. The handler looks at everything
// that it is given, and what was accepted must encode to the same bytes again.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "proto/cuda/dispatch.h"
#include "proto/cuda/forwarding_handler.h"
#include "tests/fuzz/proto_touch.h"

using hawser::cuda::Call;
using hawser::cuda::DispatchResult;
using hawser::cuda::Outcome;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  hawser::wire::FrameHeader header;
  if (size < sizeof(header)) return 0;
  std::memcpy(&header, data, sizeof(header));
  const hawser::wire::Bytes payload = hawser::wire::AsBytes(data + sizeof(header), size - sizeof(header));
  int calls = 0;
  hawser::cuda::ForwardingHandler handler([&](const Call&, const auto& message) {
    ++calls;
    hawser::fuzz::MustEncodeTo(message, payload);
    hawser::fuzz::TouchAll(message);
    return 7;
  });
  std::string error;
  const Outcome outcome = hawser::cuda::Dispatch(header, payload, handler, &error);
  // Either the handler ran and its status came back, or there is a text that says why it did not.
  if (calls == 1 ? outcome.result != DispatchResult::kDone || outcome.status != 7 : error.empty()) std::abort();
  return 0;
}
