// SPDX-License-Identifier: Apache-2.0
#include "server/worker/export_client.h"

#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>

#include "server/export_packet.h"

namespace hawser::server {

ExportClient::ExportClient(wire::Fd fd) : fd_(std::move(fd)) {
  constexpr timeval kPatience{5, 0};
  (void)::setsockopt(fd_.get(), SOL_SOCKET, SO_RCVTIMEO, &kPatience, sizeof(kPatience));
  (void)::setsockopt(fd_.get(), SOL_SOCKET, SO_SNDTIMEO, &kPatience, sizeof(kPatience));
}

std::optional<ExportReply> ExportClient::Ask(const ExportRequest& request, std::span<const wire::Fd> files,
                                             std::vector<wire::Fd>* found) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!fd_.valid()) return std::nullopt;
  ExportReply reply;
  // Not sent: no answer will come.
  if (!SendExportPacket(fd_.get(), std::as_bytes(std::span(&request, 1)), files, 0)) return std::nullopt;
  if (ReceiveExportPacket(fd_.get(), std::as_writable_bytes(std::span(&reply, 1)), found, 0) == PacketGot::kPacket) {
    return reply;
  }
  // What comes now would be taken for the answer to the next question.
  fd_.Reset();
  return std::nullopt;
}

std::optional<ExportToken> ExportClient::Publish(ExportKind kind, const ExportedThing& thing,
                                                 std::span<const wire::Fd> files) {
  // hawserd would hear no more from whoever sends something else.
  if (!std::all_of(files.begin(), files.end(), [](const wire::Fd& file) { return MayBeChunk(file.get()); })) {
    return std::nullopt;
  }
  ExportRequest request;
  request.action = ExportAction::kPublish;
  request.kind = kind;
  request.thing = thing;
  std::vector<wire::Fd> none;
  const std::optional<ExportReply> reply = Ask(request, files, &none);
  if (!reply || reply->verdict != ExportVerdict::kOk) return std::nullopt;
  return reply->token;
}

ExportVerdict ExportClient::Find(ExportKind kind, const ExportToken& token, ExportedThing* thing,
                                 std::vector<wire::Fd>* files) {
  ExportRequest request;
  request.action = ExportAction::kFind;
  request.kind = kind;
  request.token = token;
  std::vector<wire::Fd> found;
  const std::optional<ExportReply> reply = Ask(request, {}, &found);
  if (!reply) return ExportVerdict::kUnknown;
  if (reply->verdict != ExportVerdict::kOk) return reply->verdict;
  // This worker may have as many open as it may.
  if (found.size() != reply->thing.descriptors) return ExportVerdict::kFull;
  *thing = reply->thing;
  *files = std::move(found);
  return ExportVerdict::kOk;
}

void ExportClient::Withdraw(const ExportToken& token) {
  ExportRequest request;
  request.action = ExportAction::kWithdraw;
  request.token = token;
  std::vector<wire::Fd> none;
  (void)Ask(request, {}, &none);
}

}  // namespace hawser::server
