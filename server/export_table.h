// SPDX-License-Identifier: Apache-2.0
// Tokens that stand for memory and events which sessions share, each within its tenant.
#ifndef HAWSER_SERVER_EXPORT_TABLE_H_
#define HAWSER_SERVER_EXPORT_TABLE_H_

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "server/exported.h"
#include "wire/sha256.h"
#include "wire/socket.h"

namespace hawser::server {

/// Threading: none; belongs to hawserd's one thread.
class ExportTable {
 public:
  /// Tokens that a session may have given out at a time.
  static constexpr size_t kMaxTokens = 16384;
  /// Descriptors that are kept for a session at most.
  static constexpr size_t kMaxFiles = 2048;

  /// `max_files`: descriptors that are kept for all sessions together, at most.
  explicit ExportTable(size_t max_files) : max_files_(max_files) {}

  /// Nothing is known of a session before it has begun, or after it has ended.
  void Begin(uint64_t session, const std::string& tenant);
  /// Its tokens end with it.
  void End(uint64_t session);

  /// `files` came with the question, and closing one waits for nobody (MayBeChunk). *found: what goes with the answer;
  /// it is the table's.
  ExportReply Answer(uint64_t session, const ExportRequest& request, std::vector<wire::Fd> files,
                     std::span<const wire::Fd>* found);
  /// Takes the next packet of a session's worker from `fd` and answers it; never waits.
  enum class Served : uint8_t {
    kOne,
    kNone,    ///< There is none.
    kBroken,  ///< The worker has gone, or broken the rules: it is to be answered no more.
  };
  Served Serve(uint64_t session, int fd);

  size_t tokens() const { return entries_.size(); }
  /// Descriptors that are kept.
  size_t files() const { return files_; }

 private:
  struct Entry {
    uint64_t session = 0;
    ExportKind kind = ExportKind::kMemory;
    ExportedThing thing;
    std::vector<wire::Fd> files;
  };
  struct Session {
    std::string tenant;
    size_t tokens = 0;
    size_t files = 0;
  };

  ExportReply Publish(uint64_t session, Session& who, const ExportRequest& request, std::vector<wire::Fd>* files);
  /// Whether a session may have them kept, and they are what they should be.
  bool CanKeep(const Session& who, const ExportRequest& request, const std::vector<wire::Fd>& files) const;

  const size_t max_files_;
  size_t files_ = 0;

  std::map<uint64_t, Session> sessions_;
  /// By digest, so that the time of a search tells nothing of the tokens there are.
  std::map<wire::Sha256Digest, Entry> entries_;
};

}  // namespace hawser::server

#endif  // HAWSER_SERVER_EXPORT_TABLE_H_
