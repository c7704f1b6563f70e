// SPDX-License-Identifier: Apache-2.0
// Tokens that stand for memory and events which sessions share, each within its tenant.
#ifndef HAWSER_SERVER_EXPORT_TABLE_H_
#define HAWSER_SERVER_EXPORT_TABLE_H_

#include <cstdint>
#include <map>
#include <string>

#include "server/exported.h"
#include "wire/sha256.h"

namespace hawser::server {

/// Threading: none; belongs to hawserd's one thread.
class ExportTable {
 public:
  /// Tokens that a session may have given out at a time.
  static constexpr size_t kMaxTokens = 16384;

  /// Nothing is known of a session before it has begun, or after it has ended.
  void Begin(uint64_t session, const std::string& tenant);
  /// Its tokens end with it.
  void End(uint64_t session);

  ExportReply Answer(uint64_t session, const ExportRequest& request);
  /// Takes the next packet of a session's worker from `fd` and answers it; never waits.
  enum class Served : uint8_t {
    kOne,
    kNone,    ///< There is none.
    kBroken,  ///< The worker has gone, or broken the rules: it is to be answered no more.
  };
  Served Serve(uint64_t session, int fd);

  size_t tokens() const { return entries_.size(); }

 private:
  struct Entry {
    uint64_t session = 0;
    ExportKind kind = ExportKind::kMemory;
    ExportedThing thing;
  };
  struct Session {
    std::string tenant;
    size_t tokens = 0;
  };

  ExportReply Publish(uint64_t session, Session& who, const ExportRequest& request);

  std::map<uint64_t, Session> sessions_;
  /// By digest, so that the time of a search tells nothing of the tokens there are.
  std::map<wire::Sha256Digest, Entry> entries_;
};

}  // namespace hawser::server

#endif  // HAWSER_SERVER_EXPORT_TABLE_H_
