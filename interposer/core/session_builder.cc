// SPDX-License-Identifier: Apache-2.0
#include "interposer/core/session_builder.h"

#include <utility>

#include "interposer/core/log.h"
#include "interposer/core/session_impl.h"

namespace hawser::guest {

wire::Result<Session*> SessionBuilder::Connect(const Environment& environment, const ConnectTimeouts& timeouts) {
  wire::Result<Connection> connection = guest::Connect(environment, timeouts);
  if (!connection.ok()) return connection.status();
  Log(LogLevel::kInfo, "session %llu with %s", static_cast<unsigned long long>(connection->session),
      connection->endpoint.ToString().c_str());
  auto* session = new Session();
  session->heap_base_ = connection->heap;
  session->heap_size_ = connection->heap_size;
  session->inline_limit_ = connection->inline_limit;
  session->strict_ = environment.strict;
  session->impl_ = new Session::Impl(session, *environment.api, std::move(*connection),
                                     CommandTrace::Open(environment.trace_file, *environment.api));
  return session;
}

void SessionBuilder::AbandonAfterFork(Session* session) { session->impl_->AbandonAfterFork(); }

}  // namespace hawser::guest
