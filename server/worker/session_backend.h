// SPDX-License-Identifier: Apache-2.0
// What the worker knows of a backend, whichever interface's commands it executes.
#ifndef HAWSER_SERVER_WORKER_SESSION_BACKEND_H_
#define HAWSER_SERVER_WORKER_SESSION_BACKEND_H_

#include <cstdint>
#include <functional>
#include <string>

#include "server/worker/dialect.h"
#include "server/worker/services.h"
#include "wire/frame.h"
#include "wire/id.h"

namespace hawser::server {

/// Executes commands, on the executor thread, in the guest's order.
/// No command may wait for the device, for the compiler or for the guest (except BulkReceiver::Receive):
/// results that come later are sent through Replies when they come.
class SessionBackend {
 public:
  /// Which object a failed call should have created and which queue or stream it was for.
  /// Valid right after Execute() gave a status that is not 0.
  struct Failure {
    wire::Id object;
    wire::Id queue;
    std::string text;
  };
  struct Outcome {
    bool malformed = false;  ///< No guest of ours sends this: the session ends.
    /// The call's own status, 0 for success. When it is an error, the executor tells the guest: with a status reply
    /// if the frame wants one (strict mode), and otherwise, if the call has no reply of its own, with a notice. A
    /// call with a reply of its own sends it in every case and gives 0.
    int32_t status = 0;
    /// The backend keeps the command and reports its outcome later (Later::report).
    bool deferred = false;
  };
  /// What a backend that keeps commands needs of the executor.
  struct Later {
    /// Any thread: makes the executor call Resume() soon.
    std::function<void()> wake;
    /// The executor's thread: the outcome of a command that was deferred.
    std::function<void(const wire::FrameHeader& header, const Outcome& outcome, const std::string& refusal)> report;
  };
  virtual ~SessionBackend() = default;

  virtual const Dialect& dialect() const = 0;
  /// Decodes, validates and executes one command. *error says which field is wrong when one is.
  virtual Outcome Execute(const wire::FrameHeader& header, wire::Bytes payload, std::string* error) = 0;
  virtual Failure TakeFailure() = 0;

  /// A backend that never defers does nothing here. Called before the first command.
  virtual void SetLater(Later later) { (void)later; }
  /// The executor's thread, whenever it has no command at hand, and after a wake().
  virtual void Resume() {}

  /// True when some device reads and writes host memory in place, so that a shared heap is worth having.
  /// Called once, before the welcome; the heap is handed over afterwards.
  virtual bool WantsHeap() = 0;
  /// Upper bound for the heap in bytes.
  virtual uint64_t HeapSizeHint() = 0;
  virtual void SetServices(const Services& services) = 0;
};

}  // namespace hawser::server

#endif  // HAWSER_SERVER_WORKER_SESSION_BACKEND_H_
