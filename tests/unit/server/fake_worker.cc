// SPDX-License-Identifier: Apache-2.0
// With server/worker/main.cc: a worker that needs no OpenCL platform.
#include <cstdlib>

#include "tests/unit/server/fake_backend.h"

namespace hawser::server {

wire::Result<std::unique_ptr<Backend>> CreateOpenClBackend() {
  if (std::getenv("FAKE_BACKEND_FAILS") != nullptr) {
    return wire::Status(wire::Code::kSystem, "the fake backend was told to fail");
  }
  auto state = std::make_shared<FakeState>();
  state->wants_heap = true;
  state->heap_size = 1u << 20;
  return std::unique_ptr<Backend>(std::make_unique<FakeBackend>(std::move(state)));
}

}  // namespace hawser::server
