// SPDX-License-Identifier: Apache-2.0
#include "server/export_table.h"

#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/socket.h>

#include <algorithm>
#include <utility>

#include "server/export_packet.h"

namespace hawser::server {

void ExportTable::Begin(uint64_t session, const std::string& tenant) { sessions_[session].tenant = tenant; }

void ExportTable::End(uint64_t session) {
  std::erase_if(entries_, [this, session](const auto& entry) {
    if (entry.second.session != session) return false;
    files_ -= entry.second.files.size();
    return true;
  });
  sessions_.erase(session);
}

bool ExportTable::CanKeep(const Session& who, const ExportRequest& request, const std::vector<wire::Fd>& files) const {
  if (who.tokens >= kMaxTokens || files.size() != request.thing.descriptors) return false;
  if (files.empty()) return true;
  return request.kind == ExportKind::kMemory && files.size() <= kMaxExportedDescriptors &&
         files.size() <= kMaxFiles - who.files && files.size() <= max_files_ - files_;
}

ExportReply ExportTable::Publish(uint64_t session, Session& who, const ExportRequest& request,
                                 std::vector<wire::Fd>* files) {
  ExportReply reply;
  reply.verdict = ExportVerdict::kFull;
  if (!CanKeep(who, request, *files)) return reply;
  if (::getrandom(reply.token.data(), reply.token.size(), 0) != static_cast<ssize_t>(reply.token.size())) return reply;
  who.files += files->size();
  files_ += files->size();
  entries_[wire::Sha256Of(reply.token)] = {session, request.kind, request.thing, std::exchange(*files, {})};
  ++who.tokens;
  reply.verdict = ExportVerdict::kOk;
  return reply;
}

ExportReply ExportTable::Answer(uint64_t session, const ExportRequest& request, std::vector<wire::Fd> files,
                                std::span<const wire::Fd>* found) {
  ExportReply reply;
  const auto who = sessions_.find(session);
  if (who != sessions_.end() && request.action == ExportAction::kPublish) {
    reply = Publish(session, who->second, request, &files);
  }
  if (who == sessions_.end() || request.action == ExportAction::kPublish) return reply;
  const auto at = entries_.find(wire::Sha256Of(request.token));
  if (at == entries_.end()) return reply;
  const Entry& entry = at->second;
  const auto owner = sessions_.find(entry.session);
  if (owner == sessions_.end() || owner->second.tenant != who->second.tenant) return reply;
  if (request.action == ExportAction::kWithdraw) {
    if (entry.session != session) return reply;
    who->second.files -= entry.files.size();
    files_ -= entry.files.size();
    entries_.erase(at);
    --who->second.tokens;
    reply.verdict = ExportVerdict::kOk;
    return reply;
  }
  if (request.action != ExportAction::kFind || entry.kind != request.kind) return reply;
  reply.verdict = entry.session == session ? ExportVerdict::kOwn : ExportVerdict::kOk;
  if (reply.verdict == ExportVerdict::kOk) {
    reply.thing = entry.thing;
    *found = entry.files;
  }
  return reply;
}

ExportTable::Served ExportTable::Serve(uint64_t session, int fd) {
  ExportRequest request;
  std::vector<wire::Fd> files;
  const PacketGot got = ReceiveExportPacket(fd, std::as_writable_bytes(std::span(&request, 1)), &files, MSG_DONTWAIT);
  const bool good =
      std::all_of(files.begin(), files.end(), [](const wire::Fd& file) { return MayBeChunk(file.get()); });
  if (got != PacketGot::kPacket || !good) {
    CloseStrange(std::move(files));
    return got == PacketGot::kNone ? Served::kNone : Served::kBroken;
  }
  std::span<const wire::Fd> found;
  ExportReply reply = Answer(session, request, std::move(files), &found);
  // Descriptors under way count for all of hawserd: a worker that takes no answers gets no more of them.
  int untaken = 0;
  if (!found.empty() && (::ioctl(fd, SIOCOUTQ, &untaken) != 0 || untaken != 0)) return Served::kBroken;
  // A worker waits for each answer: there is room.
  const auto packet = std::as_bytes(std::span(&reply, 1));
  if (SendExportPacket(fd, packet, found, MSG_DONTWAIT)) return Served::kOne;
  if (found.empty()) return Served::kBroken;
  // The system lets nobody send so many just now.
  reply = ExportReply();
  reply.verdict = ExportVerdict::kFull;
  return SendExportPacket(fd, packet, {}, MSG_DONTWAIT) ? Served::kOne : Served::kBroken;
}

}  // namespace hawser::server
