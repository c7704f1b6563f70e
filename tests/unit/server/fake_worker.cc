// SPDX-License-Identifier: Apache-2.0
// With server/worker/main.cc: a worker that needs no OpenCL platform.
#include <cstdlib>

#include "server/worker/backend_factory.h"
#include "tests/unit/server/fake_backend.h"

namespace hawser::server {

wire::Result<ChosenBackend> CreateBackend(const WorkerSettings&, SessionLog*) {
  if (std::getenv("FAKE_BACKEND_FAILS") != nullptr) {
    return wire::Status(wire::Code::kSystem, "the server has no usable device: the fake backend was told to fail");
  }
  auto state = std::make_shared<FakeState>();
  state->wants_heap = true;
  state->heap_size = 1u << 20;
  state->lets_go_of_gate = true;
  return ChosenBackend{std::make_unique<FakeBackend>(std::move(state)), false};
}

}  // namespace hawser::server
