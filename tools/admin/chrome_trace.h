// SPDX-License-Identifier: Apache-2.0
// A timeline in the JSON format of Chrome's tracing, which ui.perfetto.dev and chrome://tracing open.
//
// Each session is a process of the timeline ("tenant / program, session 3"); its tracks are threads: the session
// itself, grants of each device, the worker's executor, one for each queue. Events are written as they come, so memory
// does not grow with them.
#ifndef HAWSER_TOOLS_ADMIN_CHROME_TRACE_H_
#define HAWSER_TOOLS_ADMIN_CHROME_TRACE_H_

#include <cstdint>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "hawser/admin.pb.h"
#include "wire/status.h"

namespace hawser::tools {

namespace pb = ::hawser::admin::v1;

/// The file appears under its name when Finish() succeeds, whole; before there is only a temporary one beside it, which
/// is removed if there is no Finish().
class ChromeTrace {
 public:
  explicit ChromeTrace(std::string path) : path_(std::move(path)) {}
  ~ChromeTrace();
  ChromeTrace(const ChromeTrace&) = delete;
  ChromeTrace& operator=(const ChromeTrace&) = delete;

  wire::Status Open();
  void Add(const pb::TraceBatch& batch);
  /// Sessions that have not ended last until `now_ns` or their last event.
  wire::Status Finish(uint64_t now_ns);

  /// Besides beginnings and ends of sessions.
  uint64_t events() const { return events_; }
  uint64_t sessions() const { return total_sessions_; }
  uint64_t lost() const { return lost_; }

 private:
  struct Session {
    uint64_t begin_ns = 0;
    std::string name;
  };
  void Write(const pb::TraceEvent& event);
  /// A kernel's `name` is shown as its programmer wrote it (kernel_name.h), and the one that it has is told beside.
  void WriteSpan(uint64_t session, uint32_t track, const std::string& name, const char* kind, uint64_t begin_ns,
                 uint64_t end_ns, const std::string& device = {});
  uint32_t TrackOf(const pb::TraceEvent& event);
  /// Of a session's grants for a device: those for two devices may lie one beside the other.
  uint32_t GrantTrack(uint64_t session, const std::string& device);
  void WriteName(const char* what, uint64_t session, uint32_t track, const std::string& name);
  void WriteLine(const std::string& json);
  double Microseconds(uint64_t ns) const;
  wire::Status Failed() const;

  const std::string path_;
  std::string temporary_;
  std::ofstream file_;
  bool first_ = true;
  uint64_t origin_ns_ = 0;
  uint64_t last_ns_ = 0;
  int64_t unix_minus_monotonic_ns_ = 0;
  std::map<uint64_t, Session> open_;
  using SessionDevice = std::pair<uint64_t, std::string>;
  std::map<SessionDevice, Session> grants_;  ///< That go on.
  std::map<SessionDevice, uint32_t> grant_tracks_;
  std::set<std::pair<uint64_t, uint32_t>> named_;
  uint64_t events_ = 0, total_sessions_ = 0, lost_ = 0;
};

}  // namespace hawser::tools

#endif  // HAWSER_TOOLS_ADMIN_CHROME_TRACE_H_
