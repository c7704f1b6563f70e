// SPDX-License-Identifier: Apache-2.0
#include "server/export_table.h"

#include <sys/random.h>
#include <sys/socket.h>

#include <cerrno>

namespace hawser::server {

void ExportTable::Begin(uint64_t session, const std::string& tenant) { sessions_[session].tenant = tenant; }

void ExportTable::End(uint64_t session) {
  std::erase_if(entries_, [session](const auto& entry) { return entry.second.session == session; });
  sessions_.erase(session);
}

ExportReply ExportTable::Publish(uint64_t session, Session& who, const ExportRequest& request) {
  ExportReply reply;
  reply.verdict = ExportVerdict::kFull;
  if (who.tokens >= kMaxTokens) return reply;
  if (::getrandom(reply.token.data(), reply.token.size(), 0) != static_cast<ssize_t>(reply.token.size())) return reply;
  entries_[wire::Sha256Of(reply.token)] = {session, request.kind, request.thing};
  ++who.tokens;
  reply.verdict = ExportVerdict::kOk;
  return reply;
}

ExportReply ExportTable::Answer(uint64_t session, const ExportRequest& request) {
  ExportReply reply;
  const auto who = sessions_.find(session);
  if (who == sessions_.end()) return reply;
  if (request.action == ExportAction::kPublish) return Publish(session, who->second, request);
  const auto at = entries_.find(wire::Sha256Of(request.token));
  if (at == entries_.end()) return reply;
  const Entry& entry = at->second;
  const auto owner = sessions_.find(entry.session);
  if (owner == sessions_.end() || owner->second.tenant != who->second.tenant) return reply;
  if (request.action == ExportAction::kWithdraw) {
    if (entry.session != session) return reply;
    entries_.erase(at);
    --who->second.tokens;
    reply.verdict = ExportVerdict::kOk;
    return reply;
  }
  if (request.action != ExportAction::kFind || entry.kind != request.kind) return reply;
  reply.verdict = entry.session == session ? ExportVerdict::kOwn : ExportVerdict::kOk;
  if (reply.verdict == ExportVerdict::kOk) reply.thing = entry.thing;
  return reply;
}

ExportTable::Served ExportTable::Serve(uint64_t session, int fd) {
  ExportRequest request;
  const ssize_t got = ::recv(fd, &request, sizeof(request), MSG_DONTWAIT | MSG_TRUNC);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return Served::kNone;
  if (got != static_cast<ssize_t>(sizeof(request))) return Served::kBroken;
  const ExportReply reply = Answer(session, request);
  // A worker waits for each answer: there is room.
  const ssize_t sent = ::send(fd, &reply, sizeof(reply), MSG_DONTWAIT | MSG_NOSIGNAL);
  return sent == static_cast<ssize_t>(sizeof(reply)) ? Served::kOne : Served::kBroken;
}

}  // namespace hawser::server
