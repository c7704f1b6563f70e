// SPDX-License-Identifier: Apache-2.0
// A worker's end of what sessions share: asks hawserd.
#ifndef HAWSER_SERVER_WORKER_EXPORT_CLIENT_H_
#define HAWSER_SERVER_WORKER_EXPORT_CLIENT_H_

#include <mutex>
#include <optional>
#include <utility>

#include "server/exported.h"
#include "wire/socket.h"

namespace hawser::server {

/// Threading: thread-safe; one question at a time. hawserd answers in microseconds; one that does not answer within
/// some seconds is asked no more.
class ExportClient {
 public:
  explicit ExportClient(wire::Fd fd);

  /// Gives `thing` a token. Nothing: the session has too many, or hawserd does not answer.
  std::optional<ExportToken> Publish(ExportKind kind, const ExportedThing& thing);
  /// What a token of this tenant stands for; *thing is set with kOk only.
  ExportVerdict Find(ExportKind kind, const ExportToken& token, ExportedThing* thing);
  void Withdraw(const ExportToken& token);

 private:
  std::optional<ExportReply> Ask(const ExportRequest& request);

  std::mutex mutex_;
  wire::Fd fd_;  ///< Not valid: hawserd is asked no more.
};

}  // namespace hawser::server

#endif  // HAWSER_SERVER_WORKER_EXPORT_CLIENT_H_
