// SPDX-License-Identifier: Apache-2.0
// The interface between the worker's executor and a backend.
#ifndef HAWSER_SERVER_WORKER_BACKEND_H_
#define HAWSER_SERVER_WORKER_BACKEND_H_

#include <memory>

#include "proto/opencl/dispatch.h"
#include "server/worker/services.h"
#include "wire/status.h"

namespace hawser::server {

/// Executes commands (opencl::Handler's functions, on the executor thread, in the guest's order).
/// No function may wait for the device, for the compiler or for the guest (except BulkReceiver::Receive):
/// results that come later are sent through Replies when they come.
///
/// The int32 that a Handler function returns is the call's CL status. When it is an error, the executor
/// tells the guest: with a Status reply if the frame wants one (strict mode), and otherwise, if the call has
/// no reply of its own, with CommandFailed. A call with a reply of its own sends it in every case and
/// returns 0.
class Backend : public opencl::Handler {
 public:
  /// Which object a failed call should have created and which queue it was for: for CommandFailed.
  /// Valid right after a Handler function returned an error.
  struct Failure {
    wire::Id object;
    wire::Id queue;
    std::string text;
  };
  virtual Failure TakeFailure() = 0;

  /// True when some device reads and writes host memory in place, so that a shared heap is worth having.
  /// Called once, before the welcome; the heap is handed over afterwards.
  virtual bool WantsHeap() = 0;
  /// Upper bound for the heap: the largest global memory among devices that share memory.
  virtual uint64_t HeapSizeHint() = 0;
  virtual void SetServices(const Services& services) = 0;
};

/// Loads the ICD loader's platforms (never Hawser's own) and probes the devices.
wire::Result<std::unique_ptr<Backend>> CreateOpenClBackend();

}  // namespace hawser::server

#endif  // HAWSER_SERVER_WORKER_BACKEND_H_
