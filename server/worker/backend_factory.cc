// SPDX-License-Identifier: Apache-2.0
#include "server/worker/backend_factory.h"

#include <string>
#include <utility>

#ifdef HAWSER_WITH_OPENCL
#include "server/worker/backend.h"
#endif
#ifdef HAWSER_WITH_CUDA
#include "server/backends/cuda/create.h"
#endif

namespace hawser::server {
namespace {

using wire::Code;
using wire::Result;
using wire::Status;

[[maybe_unused]] Status NotBuilt(wire::Api api) {
  return Status(Code::kRefused, "this server was built without " + std::string(wire::ApiName(api)));
}

Result<ChosenBackend> CreateOpenCl() {
#ifdef HAWSER_WITH_OPENCL
  Result<std::unique_ptr<Backend>> backend = CreateOpenClBackend();
  if (!backend.ok()) {
    return Status(backend.status().code(), "the server has no usable OpenCL device: " + backend.status().text());
  }
  return ChosenBackend{std::move(*backend), false};
#else
  return NotBuilt(wire::Api::kOpenCl);
#endif
}

Result<ChosenBackend> CreateCuda([[maybe_unused]] const WorkerSettings& settings, [[maybe_unused]] SessionLog* log) {
#ifdef HAWSER_WITH_CUDA
  return cuda_backend::Create(settings, log);
#else
  return NotBuilt(wire::Api::kCuda);
#endif
}

}  // namespace

Result<ChosenBackend> CreateBackend(const WorkerSettings& settings, SessionLog* log) {
  return settings.api == wire::Api::kCuda ? CreateCuda(settings, log) : CreateOpenCl();
}

}  // namespace hawser::server
