// SPDX-License-Identifier: Apache-2.0
// Gathers what sessions record into the feeds of those who listen.
//
// Threads: belongs to hawserd's event loop; a feed's other end belongs to a thread of the control plane.
// Sessions record only while somebody listens: with the first feed their pages are told to, with the last one's end not
// to.
#ifndef HAWSER_SERVER_TRACE_COLLECTOR_H_
#define HAWSER_SERVER_TRACE_COLLECTOR_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "server/admin/trace_feed.h"
#include "server/scheduler_control.h"
#include "server/session_stats.h"

namespace hawser::server {

class TraceCollector {
 public:
  /// `page` is borrowed until SessionEnded().
  void SessionStarted(uint64_t id, const std::string& tenant, const std::string& program, SessionStatsPage* page);
  void SessionEnded(uint64_t id);

  /// From now on this feed gets events; first of all the beginnings of the sessions that there are.
  void AddFeed(std::shared_ptr<admin::TraceFeed> feed);
  /// Fetches what was recorded, and forgets feeds that are closed or that nobody else holds. Call it while listening().
  void Collect();
  bool listening() const { return !feeds_.empty(); }
  void CloseFeeds();

  /// Something that the event loop knows by itself.
  void Put(const admin::TraceEvent& event);
  void PutGrant(const SessionGrant& grant);
  /// Of something that was not put, because there was too much.
  void AddLost(uint64_t count);

 private:
  struct Session {
    std::string tenant;
    std::string program;
    SessionStatsPage* page = nullptr;
    TraceReader reader;
  };

  uint32_t Kinds(uint64_t session) const;
  void Instruct(uint64_t id, Session& session);
  void Drain(uint64_t id, Session& session);
  admin::TraceEvent Begin(uint64_t id, const Session& session) const;

  std::map<uint64_t, Session> sessions_;
  std::vector<std::shared_ptr<admin::TraceFeed>> feeds_;
};

}  // namespace hawser::server

#endif  // HAWSER_SERVER_TRACE_COLLECTOR_H_
