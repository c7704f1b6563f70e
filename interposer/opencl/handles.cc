// SPDX-License-Identifier: Apache-2.0
// What all kinds of objects share: the dispatch table, the release on the server, refusals.
#include <set>
#include <string>

#include "interposer/core/log.h"
#include "interposer/core/receiver.h"
#include "interposer/opencl/delivery.h"
#include "interposer/opencl/entry.h"
#include "interposer/opencl/unsupported_entries.h"
#include "proto/opencl/guest_entries.h"

namespace hawser::ocl {
const cl_icd_dispatch* Dispatch() {
  static const cl_icd_dispatch* table = [] {
    auto* made = new cl_icd_dispatch();
    FillUnsupported(*made);
    FillDispatch(*made);
    return made;
  }();
  return table;
}

void SendRelease(const Object& object) { SendRelease(object.session, object.id, false); }

void SendRelease(guest::Session* session, wire::Id id, bool notify) {
  opencl::Release message;
  message.object = id;
  message.notify = notify ? 1 : 0;
  const int32_t sent = session->Send(opencl::Opcode::kReleaseObject, message);
  // With `notify` the id stays taken until the server says Released, which a lost session never says.
  if (!notify || sent != CL_SUCCESS) session->FreeId(id);
}

void RefuseOnce(const char* call, const char* reason) {
  static auto* mutex = new std::mutex;
  static auto* said = new std::set<std::string>;
  {
    std::lock_guard lock(*mutex);
    if (!said->insert(call).second) return;
  }
  guest::Log(guest::LogLevel::kWarning, "%s cannot work on a remote device: %s", call, reason);
}

void RunDestructors(guest::Session* session, std::vector<DestructorCallback> callbacks) {
  if (callbacks.empty()) return;
  auto run = [callbacks = std::move(callbacks)] {
    for (auto it = callbacks.rbegin(); it != callbacks.rend(); ++it) (*it)();
  };
  if (guest::Receiver::DeliveringHere()) {
    session->PostCallback(std::move(run));
  } else {
    run();
  }
}

}  // namespace hawser::ocl
