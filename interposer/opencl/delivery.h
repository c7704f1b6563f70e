// SPDX-License-Identifier: Apache-2.0
// What happens when something arrives from the server: the notices' handler (notices.cc) and what the files of
// events and memory objects do for it.
//
// Threading: delivery runs on whichever thread receives, under the session's receive role. It must neither wait for
// the server nor call the application: callbacks go through Session::PostCallback.
#ifndef HAWSER_INTERPOSER_OPENCL_DELIVERY_H_
#define HAWSER_INTERPOSER_OPENCL_DELIVERY_H_

#include "interposer/opencl/objects.h"
#include "proto/opencl/messages.h"

namespace hawser::ocl {

/// The sink to set on a new session. One for the process, never destroyed.
guest::NoticeSink* Notices();

/// An event made progress (events.cc).
void OnEventStatus(const opencl::EventStatus& notice);
/// Nothing on the server uses the object any more: its id is free, a buffer's heap room too (mem.cc).
void OnReleased(wire::Id object);
/// The session ended: every event of it that is not final gets an error, so that callbacks run and waits end
/// (events.cc; Registry::LiveEvents() lists them).
void OnEventsLost();

/// The session ended: nobody will say Released any more of what the program let go of before, and nothing uses it.
/// Destructor callbacks run (mem.cc).
void OnMemsLost();

/// Waits until the data of every read that was enqueued to this queue so far has landed in the application's memory
/// (transfers.cc). clFinish calls it after the server's answer, which does not cover bulk data. CL_SUCCESS or
/// Session::lost_code(). Cheap when there is none.
cl_int AwaitData(cl_command_queue queue);

/// Runs destructor callbacks in reverse order of registration: at once, or posted while this thread delivers.
void RunDestructors(guest::Session* session, std::vector<DestructorCallback> callbacks);

}  // namespace hawser::ocl

#endif  // HAWSER_INTERPOSER_OPENCL_DELIVERY_H_
