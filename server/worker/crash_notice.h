// SPDX-License-Identifier: Apache-2.0
// A last word to the guest when the worker crashes.
//
// Best effort from a signal handler: only if the command channel is neither locked nor full. Then
// the signal takes its default course, so that hawserd sees and logs it.
#ifndef HAWSER_SERVER_WORKER_CRASH_NOTICE_H_
#define HAWSER_SERVER_WORKER_CRASH_NOTICE_H_

#include "server/worker/channel_replies.h"
#include "server/worker/dialect.h"

namespace hawser::server {

/// Handles SIGSEGV, SIGBUS, SIGILL, SIGFPE and SIGABRT, on an alternate stack of the calling thread.
/// Call before the drivers are loaded: those that handle faults of their own threads then
/// come first and hand the rest over.
void InstallCrashHandlers();

/// Where the last word goes from now on, and in whose words. Not while another thread may crash.
void SetCrashReplies(ChannelReplies* replies, const Dialect& dialect);
/// Nowhere any more.
void ForgetCrashReplies();

}  // namespace hawser::server

#endif  // HAWSER_SERVER_WORKER_CRASH_NOTICE_H_
