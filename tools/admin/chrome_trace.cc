// SPDX-License-Identifier: Apache-2.0
#include "tools/admin/chrome_trace.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "tools/admin/kernel_name.h"

namespace hawser::tools {

using Json = nlohmann::ordered_json;
using wire::Status;

namespace {

// Threads of a session's process, in the order in which they are shown.
constexpr uint32_t kSessionTrack = 0, kGrantTrack = 1, kCommandTrack = 100, kCopyTrack = 101, kFirstQueue = 110;

std::string Text(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

std::string TrackName(uint32_t track, const std::string& device) {
  switch (track) {
    case kSessionTrack:
      return "session";
    case kCommandTrack:
      return "commands (executor)";
    case kCopyTrack:
      return "copies";
    default:
      if (track < kCommandTrack) return device.empty() ? "grants" : "grants, " + device;
      return "kernels, queue " + std::to_string(track - kFirstQueue);
  }
}

const char* KindName(pb::TraceKind kind) {
  switch (kind) {
    case pb::TRACE_KIND_KERNEL:
      return "kernel";
    case pb::TRACE_KIND_COMMAND:
      return "command";
    case pb::TRACE_KIND_GRANT:
      return "grant";
    case pb::TRACE_KIND_COPY:
      return "copy";
    default:
      return "other";
  }
}

}  // namespace

uint32_t ChromeTrace::GrantTrack(uint64_t session, const std::string& device) {
  const auto [at, fresh] = grant_tracks_.try_emplace({session, device}, kGrantTrack);
  if (!fresh) return at->second;
  uint32_t before = 0;
  for (const auto& [whose, track] : grant_tracks_) before += whose.first == session ? 1 : 0;
  return at->second = std::min(kGrantTrack + before - 1, kCommandTrack - 1);
}

uint32_t ChromeTrace::TrackOf(const pb::TraceEvent& event) {
  switch (event.kind()) {
    case pb::TRACE_KIND_GRANT:
      return GrantTrack(event.session(), event.device());
    case pb::TRACE_KIND_COMMAND:
      return kCommandTrack;
    case pb::TRACE_KIND_COPY:
      return kCopyTrack;
    default:
      return kFirstQueue + std::min<uint32_t>(event.track(), UINT32_MAX - kFirstQueue);
  }
}

ChromeTrace::~ChromeTrace() {
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

Status ChromeTrace::Failed() const { return Status::FromErrno("writing " + path_); }

Status ChromeTrace::Open() {
  temporary_ = path_ + ".part-" + std::to_string(::getpid());
  file_.open(temporary_, std::ios::trunc);
  if (!file_) {
    Status status = Failed();
    temporary_.clear();
    return status;
  }
  file_ << "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[";
  return {};
}

double ChromeTrace::Microseconds(uint64_t ns) const {
  return ns > origin_ns_ ? static_cast<double>(ns - origin_ns_) / 1000 : 0;
}

void ChromeTrace::WriteLine(const std::string& json) {
  file_ << (first_ ? "\n" : ",\n") << json;
  first_ = false;
}

void ChromeTrace::WriteName(const char* what, uint64_t session, uint32_t track, const std::string& name) {
  WriteLine(Text(Json{{"ph", "M"}, {"name", what}, {"pid", session}, {"tid", track}, {"args", {{"name", name}}}}));
}

void ChromeTrace::WriteSpan(uint64_t session, uint32_t track, const std::string& name, const char* kind,
                            uint64_t begin_ns, uint64_t end_ns, const std::string& device) {
  if (named_.emplace(session, track).second) {
    WriteName("thread_name", session, track, TrackName(track, device));
    WriteLine(Text(Json{{"ph", "M"},
                        {"name", "thread_sort_index"},
                        {"pid", session},
                        {"tid", track},
                        {"args", {{"sort_index", track}}}}));
  }
  const double begin = Microseconds(begin_ns);
  const std::string shown = track >= kFirstQueue ? KernelName(name) : name;
  Json span{{"ph", "X"},
            {"cat", kind},
            {"name", shown.empty() ? kind : shown},
            {"pid", session},
            {"tid", track},
            {"ts", begin},
            {"dur", std::max(Microseconds(end_ns) - begin, 0.0)}};
  if (shown != name) span["args"] = {{"symbol", name}};
  WriteLine(Text(span));
}

void ChromeTrace::Add(const pb::TraceBatch& batch) {
  unix_minus_monotonic_ns_ = batch.unix_minus_monotonic_ns();
  lost_ += batch.lost();
  for (const pb::TraceEvent& event : batch.events()) Write(event);
}

void ChromeTrace::Write(const pb::TraceEvent& event) {
  // Times are those of the first event: what a worker says of the time before is shown at the beginning.
  if (origin_ns_ == 0) origin_ns_ = event.begin_ns();
  last_ns_ = std::max({last_ns_, event.begin_ns(), event.end_ns()});
  switch (event.kind()) {
    case pb::TRACE_KIND_SESSION_BEGIN: {
      ++total_sessions_;
      const std::string name = event.tenant() + " / " + event.name() + ", session " + std::to_string(event.session());
      open_[event.session()] = {event.begin_ns(), event.name()};
      WriteName("process_name", event.session(), 0, name);
      return;
    }
    case pb::TRACE_KIND_SESSION_END: {
      const auto at = open_.find(event.session());
      if (at == open_.end()) return;
      WriteSpan(event.session(), kSessionTrack, at->second.name, "session", at->second.begin_ns, event.begin_ns());
      open_.erase(at);
      return;
    }
    case pb::TRACE_KIND_GRANT:
      if (event.end_ns() == 0) {
        grants_[{event.session(), event.device()}] = {event.begin_ns(), event.name()};
        return;
      }
      grants_.erase({event.session(), event.device()});  // Told when it began, or an older one that was lost.
      [[fallthrough]];
    default:
      ++events_;
      WriteSpan(event.session(), TrackOf(event), event.name(), KindName(event.kind()), event.begin_ns(),
                std::max(event.begin_ns(), event.end_ns()), event.device());
  }
}

Status ChromeTrace::Finish(uint64_t now_ns) {
  for (const auto& [id, session] : open_) {
    WriteSpan(id, kSessionTrack, session.name, "session", session.begin_ns, std::max(now_ns, last_ns_));
  }
  open_.clear();
  for (const auto& [whose, grant] : grants_) {
    const auto& [id, device] = whose;
    ++events_;
    WriteSpan(id, GrantTrack(id, device), grant.name, KindName(pb::TRACE_KIND_GRANT), grant.begin_ns,
              std::max(now_ns, last_ns_), device);
  }
  grants_.clear();
  const Json other{{"lost_events", lost_},
                   {"begin_unix_ns", static_cast<int64_t>(origin_ns_) + unix_minus_monotonic_ns_},
                   {"begin_monotonic_ns", origin_ns_}};
  file_ << "\n],\"otherData\":" << Text(other) << "}\n";
  file_.close();
  if (!file_) return Failed();
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) return Failed();
  temporary_.clear();
  return {};
}

}  // namespace hawser::tools
