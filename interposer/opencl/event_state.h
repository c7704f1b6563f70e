// SPDX-License-Identifier: Apache-2.0
// How events come to be and become final.
#ifndef HAWSER_INTERPOSER_OPENCL_EVENT_STATE_H_
#define HAWSER_INTERPOSER_OPENCL_EVENT_STATE_H_

#include "interposer/opencl/objects.h"

namespace hawser::ocl {

/// The event of a command on its way; the server will know it by its id. To be registered before it is sent.
cl_event NewEvent(cl_command_queue queue, cl_command_type type);
/// The event of a command that was done in the guest: complete from birth, unknown to the server.
cl_event NewLocalEvent(cl_command_queue queue, cl_command_type type);
/// The server was never told of this event: forgets it there.
void Discard(cl_event event);

/// What the application may see now. Never waits.
cl_int StatusOf(cl_event event);
inline bool IsFinal(cl_event event) { return StatusOf(event) <= CL_COMPLETE; }

/// Whether the command is final on the server for sure although it has not said so here yet: a later one of its
/// in-order queue, a finish, or one that waited for it was complete. The server tells of events in the order in which
/// its driver happens to; what it has to say of this one is on its way.
bool IsDue(cl_event event);

/// Shows that the event is final: runs what was left for it, moves the queue's progress, posts callbacks.
/// The first call counts. Never waits and never calls the application.
void ShowFinal(cl_event event, cl_int status);
/// Shows completions that landings held back and drops the uses they had.
void ShowLanded(const std::vector<cl_event>& events);

/// Has the callback run on the callback thread once the event is at its status, perhaps at once.
void AddCallback(cl_event event, const _cl_event::Callback& callback);

/// Commands up to `position` are complete.
void AdvanceFinished(cl_command_queue queue, uint64_t position);

/// Flushes the queues of the events that are not final and waits until all are. CL_SUCCESS,
/// CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST if one failed, or Session::lost_code().
cl_int WaitForAll(cl_uint count, const cl_event* events);

}  // namespace hawser::ocl

#endif  // HAWSER_INTERPOSER_OPENCL_EVENT_STATE_H_
