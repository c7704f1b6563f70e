// SPDX-License-Identifier: Apache-2.0
// A worker's end of what sessions share: asks hawserd.
#ifndef HAWSER_SERVER_WORKER_EXPORT_CLIENT_H_
#define HAWSER_SERVER_WORKER_EXPORT_CLIENT_H_

#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "server/exported.h"
#include "wire/socket.h"

namespace hawser::server {

/// Threading: thread-safe; one question at a time. hawserd answers in microseconds; one that does not answer within
/// some seconds is asked no more.
class ExportClient {
 public:
  explicit ExportClient(wire::Fd fd);

  /// Gives `thing` a token; `files` are its descriptors, which hawserd keeps too. Nothing: the session has too many,
  /// one is nothing that may be a chunk's, or hawserd does not answer.
  std::optional<ExportToken> Publish(ExportKind kind, const ExportedThing& thing, std::span<const wire::Fd> files = {});
  /// What a token of this tenant stands for; *thing and *files are set with kOk only, and have as many descriptors as
  /// the thing says.
  ExportVerdict Find(ExportKind kind, const ExportToken& token, ExportedThing* thing, std::vector<wire::Fd>* files);
  void Withdraw(const ExportToken& token);

 private:
  std::optional<ExportReply> Ask(const ExportRequest& request, std::span<const wire::Fd> files,
                                 std::vector<wire::Fd>* found);

  std::mutex mutex_;
  wire::Fd fd_;  ///< Not valid: hawserd is asked no more.
};

}  // namespace hawser::server

#endif  // HAWSER_SERVER_WORKER_EXPORT_CLIENT_H_
