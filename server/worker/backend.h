// SPDX-License-Identifier: Apache-2.0
// The interface between the worker and a backend for OpenCL.
#ifndef HAWSER_SERVER_WORKER_BACKEND_H_
#define HAWSER_SERVER_WORKER_BACKEND_H_

#include <memory>
#include <string>

#include "proto/opencl/dispatch.h"
#include "server/worker/session_backend.h"
#include "wire/status.h"

namespace hawser::server {

/// Executes OpenCL commands as opencl::Handler's functions; what they return is SessionBackend::Outcome::status.
class Backend : public opencl::Handler, public SessionBackend {
 public:
  const Dialect& dialect() const final { return OpenClDialect(); }
  Outcome Execute(const wire::FrameHeader& header, wire::Bytes payload, std::string* error) final {
    const opencl::Outcome outcome = opencl::Dispatch(header, payload, *this, error);
    return {outcome.result != opencl::DispatchResult::kDone, outcome.status};
  }
};

/// Loads the ICD loader's platforms (never Hawser's own) and probes the devices.
wire::Result<std::unique_ptr<Backend>> CreateOpenClBackend();

}  // namespace hawser::server

#endif  // HAWSER_SERVER_WORKER_BACKEND_H_
