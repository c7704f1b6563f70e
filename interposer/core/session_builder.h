// SPDX-License-Identifier: Apache-2.0
// Makes sessions. Session::Current() keeps one per process; tests make as many as they like.
#ifndef HAWSER_INTERPOSER_CORE_SESSION_BUILDER_H_
#define HAWSER_INTERPOSER_CORE_SESSION_BUILDER_H_

#include "interposer/core/connector.h"
#include "interposer/core/environment.h"
#include "interposer/core/session.h"
#include "wire/status.h"

namespace hawser::guest {

class SessionBuilder {
 public:
  /// Connects and builds a session, which lives for ever.
  static wire::Result<Session*> Connect(const Environment& environment, const ConnectTimeouts& timeouts = {});
  /// In a child of fork(), for a session of the parent.
  static void AbandonAfterFork(Session* session);
};

}  // namespace hawser::guest

#endif  // HAWSER_INTERPOSER_CORE_SESSION_BUILDER_H_
