// SPDX-License-Identifier: Apache-2.0
#include "server/worker/export_client.h"

#include <sys/socket.h>
#include <sys/time.h>

#include <cerrno>

namespace hawser::server {

ExportClient::ExportClient(wire::Fd fd) : fd_(std::move(fd)) {
  constexpr timeval kPatience{5, 0};
  (void)::setsockopt(fd_.get(), SOL_SOCKET, SO_RCVTIMEO, &kPatience, sizeof(kPatience));
  (void)::setsockopt(fd_.get(), SOL_SOCKET, SO_SNDTIMEO, &kPatience, sizeof(kPatience));
}

std::optional<ExportReply> ExportClient::Ask(const ExportRequest& request) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!fd_.valid()) return std::nullopt;
  ExportReply reply;
  ssize_t done = 0;
  do {
    done = ::send(fd_.get(), &request, sizeof(request), MSG_NOSIGNAL);
  } while (done < 0 && errno == EINTR);
  if (done == static_cast<ssize_t>(sizeof(request))) {
    do {
      done = ::recv(fd_.get(), &reply, sizeof(reply), MSG_TRUNC);
    } while (done < 0 && errno == EINTR);
    if (done == static_cast<ssize_t>(sizeof(reply))) return reply;
  }
  // What comes now would be taken for the answer to the next question.
  fd_.Reset();
  return std::nullopt;
}

std::optional<ExportToken> ExportClient::Publish(ExportKind kind, const ExportedThing& thing) {
  ExportRequest request;
  request.action = ExportAction::kPublish;
  request.kind = kind;
  request.thing = thing;
  const std::optional<ExportReply> reply = Ask(request);
  if (!reply || reply->verdict != ExportVerdict::kOk) return std::nullopt;
  return reply->token;
}

ExportVerdict ExportClient::Find(ExportKind kind, const ExportToken& token, ExportedThing* thing) {
  ExportRequest request;
  request.action = ExportAction::kFind;
  request.kind = kind;
  request.token = token;
  const std::optional<ExportReply> reply = Ask(request);
  if (!reply) return ExportVerdict::kUnknown;
  if (reply->verdict == ExportVerdict::kOk) *thing = reply->thing;
  return reply->verdict;
}

void ExportClient::Withdraw(const ExportToken& token) {
  ExportRequest request;
  request.action = ExportAction::kWithdraw;
  request.token = token;
  (void)Ask(request);
}

}  // namespace hawser::server
