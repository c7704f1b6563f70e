// SPDX-License-Identifier: Apache-2.0
#include "server/trace_collector.h"

#include <algorithm>
#include <utility>

namespace hawser::server {

using admin::TraceEvent;
using admin::TraceFeed;
using admin::TraceKind;

namespace {

TraceKind KindOf(TraceRingKind kind) {
  switch (kind) {
    case TraceRingKind::kKernel:
      return TraceKind::kKernel;
    case TraceRingKind::kCommand:
      return TraceKind::kCommand;
    case TraceRingKind::kCopy:
      return TraceKind::kCopy;
  }
  return TraceKind::kCommand;
}

}  // namespace

uint32_t TraceCollector::Kinds(uint64_t session) const {
  uint32_t kinds = 0;
  for (const auto& feed : feeds_) {
    if (!feed->WantsSession(session)) continue;
    kinds |= TraceRing::Bit(TraceRingKind::kKernel) | TraceRing::Bit(TraceRingKind::kCopy);
    if (feed->WantsCommands()) kinds |= TraceRing::Bit(TraceRingKind::kCommand);
  }
  return kinds;
}

void TraceCollector::Instruct(uint64_t id, Session& session) {
  const uint32_t kinds = Kinds(id);
  // What an earlier trace left behind is nobody's.
  if (session.page->trace.load(std::memory_order_relaxed) == 0 && kinds != 0) session.reader.SkipTo(session.page->ring);
  session.page->trace.store(kinds, std::memory_order_relaxed);
}

TraceEvent TraceCollector::Begin(uint64_t id, const Session& session) const {
  TraceEvent event;
  event.kind = TraceKind::kSessionBegin;
  event.begin_ns = TraceRing::Now();
  event.session = id;
  event.tenant = session.tenant;
  event.name = session.program;
  return event;
}

void TraceCollector::SessionStarted(uint64_t id, const std::string& tenant, const std::string& program,
                                    SessionStatsPage* page) {
  Session& session = sessions_[id];
  session.tenant = tenant;
  session.program = program;
  session.page = page;
  if (!listening()) return;
  Put(Begin(id, session));
  Instruct(id, session);
}

void TraceCollector::SessionEnded(uint64_t id) {
  const auto at = sessions_.find(id);
  if (at == sessions_.end()) return;
  if (listening()) {
    Drain(id, at->second);
    TraceEvent event = Begin(id, at->second);
    event.kind = TraceKind::kSessionEnd;
    Put(event);
  }
  sessions_.erase(at);
}

void TraceCollector::Put(const TraceEvent& event) {
  for (const auto& feed : feeds_) feed->Put(event);
}

void TraceCollector::PutGrant(const SessionGrant& grant) {
  const auto at = sessions_.find(grant.session);
  if (at == sessions_.end()) return;
  TraceEvent event;
  event.kind = TraceKind::kGrant;
  event.begin_ns = grant.begin_ns;
  event.end_ns = grant.end_ns;
  event.session = grant.session;
  event.tenant = at->second.tenant;
  event.name = grant.open ? "alone" : "turn";
  event.device = grant.device;
  Put(event);
}

void TraceCollector::AddLost(uint64_t count) {
  for (const auto& feed : feeds_) feed->AddLost(count);
}

void TraceCollector::AddFeed(std::shared_ptr<TraceFeed> feed) {
  // So that the new listener does not get what was recorded for others before it came.
  Collect();
  for (const auto& [id, session] : sessions_) feed->Put(Begin(id, session));
  feeds_.push_back(std::move(feed));
  for (auto& [id, session] : sessions_) Instruct(id, session);
}

void TraceCollector::Drain(uint64_t id, Session& session) {
  if (session.page->trace.load(std::memory_order_relaxed) == 0) return;
  const uint64_t now = TraceRing::Now();
  const uint64_t lost = session.reader.Drain(session.page->ring, [&](TraceRingEvent&& recorded) {
    TraceEvent event;
    event.kind = KindOf(recorded.kind);
    // A worker that lies about times shall not stretch everybody's timeline.
    event.end_ns = std::min(recorded.end_ns, now);
    event.begin_ns = std::min(recorded.begin_ns, event.end_ns);
    event.session = id;
    event.tenant = session.tenant;
    event.name = std::move(recorded.name);
    event.track = recorded.track;
    Put(event);
  });
  if (lost == 0) return;
  for (const auto& feed : feeds_) {
    if (feed->WantsSession(id)) feed->AddLost(lost);
  }
}

void TraceCollector::Collect() {
  const size_t before = feeds_.size();
  std::erase_if(feeds_, [](const auto& feed) { return feed.use_count() == 1 || feed->closed(); });
  if (feeds_.size() != before) {
    for (auto& [id, session] : sessions_) Instruct(id, session);
  }
  if (feeds_.empty()) return;
  for (auto& [id, session] : sessions_) Drain(id, session);
}

void TraceCollector::CloseFeeds() {
  for (const auto& feed : feeds_) feed->Close();
  feeds_.clear();
}

}  // namespace hawser::server
