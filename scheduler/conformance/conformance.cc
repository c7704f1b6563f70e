// SPDX-License-Identifier: Apache-2.0
#include "scheduler/conformance/conformance.h"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <utility>

#include "scheduler/sim/metrics.h"
#include "scheduler/sim/simulator.h"

using hawser::wire::Code;
using hawser::wire::Result;
using hawser::wire::Status;

namespace hawser::scheduler {
namespace {

/// A policy may wait for somebody who is about to come; more than this part of the time is waste.
constexpr double kMostIdle = 0.10;
/// Timers a second, on average, that a policy may want sooner than it gets them. One that counts on them works
/// otherwise than it was meant to.
constexpr uint64_t kMostHurried = 100;

std::string Percent(double part) { return std::to_string(static_cast<int>(part * 1000) / 10.0).substr(0, 4) + " %"; }

/// What one play has found.
struct Findings {
  std::vector<std::string> problems;
  bool slow = false;  ///< A callback took too long: the policy's doing, or this machine's.

  void Collect(const PolicyEvent& event) {
    const bool is_slow = event.kind == PolicyEvent::Kind::kSlow;
    slow |= is_slow;
    if (is_slow || event.kind == PolicyEvent::Kind::kEjected) problems.push_back(event.text);
  }
};

/// Whoever is slow is slow again; a moment in which the machine did something else does not come three times.
template <typename PlayOnce>
std::vector<std::string> Play(PlayOnce play) {
  constexpr int kPlays = 3;
  Findings findings = play();
  for (int i = 1; i < kPlays && findings.slow; ++i) findings = play();
  return findings.problems;
}

Findings PlayScenario(const Scenario& original, const PolicyLibrary& policy) {
  Scenario scenario = original;
  if (scenario.starvation_ns == 0) scenario.starvation_ns = 1'000'000'000;
  const auto result = Simulate(scenario, policy);
  if (!result.ok()) return {{result.status().text()}};
  const SimResult& played = result.value();
  Findings findings;
  for (const PolicyEvent& event : played.events) findings.Collect(event);
  std::vector<std::string>& problems = findings.problems;
  if (!problems.empty()) return findings;
  const Metrics metrics = Measure(played, {});
  const double lost_to_handoffs = static_cast<double>(played.handoff_ns) / static_cast<double>(played.duration_ns);
  if (metrics.idle_with_work - lost_to_handoffs > kMostIdle) {
    problems.push_back("the device was idle for " + Percent(metrics.idle_with_work) +
                       " of the time although there was work");
  }
  const uint64_t hurried = played.hurried_timers * 1'000'000'000 / std::max<uint64_t>(1, played.duration_ns);
  if (hurried > kMostHurried) {
    problems.push_back("it wants on_timer() sooner than 250 us after the last one, " + std::to_string(hurried) +
                       " times a second; it is called later than that");
  }
  if (played.short_units != 0) {
    problems.push_back("it wants pieces of less than 10 us, " + std::to_string(played.short_units) +
                       " times; they are lengthened to that");
  }
  uint64_t busy = 0, used = 0, last_end = 0;
  for (const SimInterval& interval : played.busy) {
    busy += interval.end_ns - interval.begin_ns;
    if (interval.begin_ns < last_end) problems.emplace_back("two tenants had the device at once");
    last_end = interval.end_ns;
  }
  for (size_t i = 0; i < played.tenants.size(); ++i) {
    const SimTenant& tenant = played.tenants[i];
    used += tenant.used_ns;
    if (tenant.charged_ns > tenant.used_ns)
      problems.push_back("tenant " + tenant.name + " was charged more than it used");
    const bool had_work = std::any_of(played.work.begin(), played.work.end(), [&](const SimInterval& work) {
      return work.tenant == i && work.end_ns - work.begin_ns > 1'000'000'000;
    });
    if (had_work && tenant.used_ns == 0 && !tenant.killed) {
      problems.push_back("tenant " + tenant.name + " had work for a second and never got the device");
    }
  }
  if (busy != used) problems.emplace_back("what tenants used does not add up to what the device did");
  return findings;
}

/// Workers of which it is only known what the scheduler told them.
class ChurnSink : public GrantSink {
 public:
  void Give(TenantId tenant, const Grant& grant) override {
    if (holder != 0) problems.emplace_back("two tenants got the device at once");
    holder = tenant;
    given = grant;
    revoked = false;
  }
  void Revoke(TenantId tenant) override {
    if (tenant != holder) problems.emplace_back("a grant was taken back from a tenant that has none");
    revoked = true;
  }
  void Stage(TenantId) override {}

  TenantId holder = 0;
  Grant given;
  bool revoked = false;
  std::vector<std::string> problems;
};

Findings PlayChurn(uint64_t seed, const PolicyLibrary& policy) {
  std::mt19937_64 random(seed * 7919 + 1);
  ChurnSink sink;
  Findings findings;
  std::vector<std::string>& problems = findings.problems;
  Scheduler scheduler({}, sink, [&findings](const PolicyEvent& event) { findings.Collect(event); });
  uint64_t now = 1'000'000'000;
  if (Status s = scheduler.Use(policy, now); !s.ok()) return {{s.text()}};
  struct Guest {
    TenantId id;
    bool work = false;
    WorkerFacts facts;
  };
  std::vector<Guest> guests;
  const auto find = [&guests](TenantId id) {
    return std::find_if(guests.begin(), guests.end(), [id](const Guest& g) { return g.id == id; });
  };
  const auto drain = [&](Guest& guest, uint64_t used) {
    guest.facts.used_ns += used;
    guest.facts.pending_ns = guest.work ? 1'000'000 : 0;
    const TenantId id = guest.id;
    scheduler.Facts(id, guest.facts, now);
    sink.holder = 0;
    scheduler.Drained(id, now);
  };
  for (int step = 0; step < 2000 && problems.empty() && sink.problems.empty(); ++step) {
    now += random() % 500'000;
    if (scheduler.next_wake_ns() <= now) scheduler.Advance(now);
    const uint64_t what = random() % 16;
    if (guests.empty() || (what == 0 && guests.size() < 12)) {
      TenantConfig config;
      config.name = "g" + std::string(1, static_cast<char>('a' + static_cast<char>(random() % 26)));
      config.weight = 1 + static_cast<uint32_t>(random() % 1000);
      config.priority = static_cast<int32_t>(random() % 3);
      config.slo_ns = random() % 2 * 10'000'000;
      config.min_share_ppm = static_cast<uint32_t>(random() % 300'000);
      // Who is above its maximum looks idle, and comes back.
      if (random() % 3 == 0) config.max_share_ppm = static_cast<uint32_t>(300'000 + random() % 700'000);
      guests.push_back({scheduler.Add(config, now), false, {}});
      continue;
    }
    Guest& guest = guests[random() % guests.size()];
    if (what == 1) {
      const TenantId id = guest.id;
      if (sink.holder == id) sink.holder = 0;
      guests.erase(find(id));
      scheduler.Remove(id, now);
    } else if (what == 2) {
      TenantConfig config;
      config.name = "again";
      config.weight = 1 + static_cast<uint32_t>(random() % 1000);
      if (random() % 3 == 0) config.max_share_ppm = static_cast<uint32_t>(1 + random() % 1'000'000);
      scheduler.Configure(guest.id, config, now);
    } else if (what < 8) {
      if (!guest.work) {
        guest.work = true;
        guest.facts.pending_ns = 1'000'000;
        guest.facts.pending_count = 1;
        guest.facts.oldest_arrival_ns = now;
        scheduler.Facts(guest.id, guest.facts, now);
        scheduler.Runnable(guest.id, now);
      }
    } else if (what < 11) {
      // Work can also end without having been done: the guest gave up.
      if (guest.work) {
        guest.work = false;
        guest.facts.pending_ns = guest.facts.pending_count = guest.facts.oldest_arrival_ns = 0;
        scheduler.Facts(guest.id, guest.facts, now);
        scheduler.Idle(guest.id, now);
      }
    } else if (sink.holder != 0) {
      Guest& holder = *find(sink.holder);
      if (sink.revoked || sink.given.kind == Grant::Kind::kSlice) drain(holder, 1 + random() % 3'000'000);
    }
    if (sink.holder != 0 && sink.revoked) drain(*find(sink.holder), random() % 1'000'000);
  }
  problems.insert(problems.end(), sink.problems.begin(), sink.problems.end());
  return findings;
}

}  // namespace

std::vector<std::string> CheckScenario(const Scenario& scenario, const PolicyLibrary& policy) {
  return Play([&] { return PlayScenario(scenario, policy); });
}

std::vector<std::string> CheckChurn(uint64_t seed, const PolicyLibrary& policy) {
  return Play([&] { return PlayChurn(seed, policy); });
}

namespace {

/// A line of JSON for each case; written by the child. The first line says that a case begins, so that its name is
/// known if nothing follows.
void Say(int fd, const nlohmann::json& message) {
  const std::string line = message.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  for (size_t written = 0; written < line.size();) {
    const ssize_t n = ::write(fd, line.data() + written, line.size() - written);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) ::_exit(3);
    written += static_cast<size_t>(n);
  }
}

[[noreturn]] void Child(int fd, const std::string& name, const ConformanceOptions& options,
                        const std::set<std::string>& skip) {
  const auto policy = options.open(name);
  if (!policy.ok()) {
    Say(fd, {{"refused", policy.status().text()}});
    ::_exit(0);
  }
  // Whether it can begin at all, said once and not for each scenario.
  TenantTable nobody;
  PolicyHost host(nobody, {}, {});
  if (const Status s = host.Use(policy.value(), 1); !s.ok()) {
    Say(fd, {{"refused", s.text()}});
    ::_exit(0);
  }
  const auto run = [&](const std::string& title, const std::function<std::vector<std::string>()>& check) {
    if (skip.count(title) != 0) return;
    Say(fd, {{"begins", title}});
    Say(fd, {{"case", title}, {"problems", check()}});
  };
  for (const BuiltinScenario& builtin : BuiltinScenarios()) {
    run(std::string(builtin.name), [&]() -> std::vector<std::string> {
      const auto scenario = ParseScenario(builtin.json, std::string(builtin.name));
      if (!scenario.ok()) return {scenario.status().text()};
      return CheckScenario(scenario.value(), policy.value());
    });
  }
  for (uint64_t seed = options.first_seed; seed < options.first_seed + options.seeds; ++seed) {
    run("random-" + std::to_string(seed), [&] { return CheckScenario(RandomScenario(seed), policy.value()); });
    run("churn-" + std::to_string(seed), [&] { return CheckChurn(seed, policy.value()); });
  }
  ::_exit(0);
}

/// A child process and what it says.
class Listener {
 public:
  Listener(pid_t pid, int fd) : pid_(pid), fd_(fd) {}
  ~Listener() {
    ::kill(pid_, SIGKILL);
    int status = 0;
    ::waitpid(pid_, &status, 0);
    ::close(fd_);
  }
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  enum class Heard { kLine, kEnd, kNothing };
  Heard Next(std::string& line, std::chrono::milliseconds patience) {
    while (true) {
      const size_t end = text_.find('\n');
      if (end != std::string::npos) {
        line = text_.substr(0, end);
        text_.erase(0, end + 1);
        return Heard::kLine;
      }
      pollfd ready{fd_, POLLIN, 0};
      const int n = ::poll(&ready, 1, static_cast<int>(patience.count()));
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return Heard::kNothing;
      char buffer[4096];
      const ssize_t got = ::read(fd_, buffer, sizeof(buffer));
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return Heard::kEnd;
      text_.append(buffer, static_cast<size_t>(got));
    }
  }
  /// After kEnd: how it ended.
  std::string HowItEnded() {
    int status = 0;
    pid_t got = 0;
    do {
      got = ::waitpid(pid_, &status, 0);
    } while (got < 0 && errno == EINTR);
    if (WIFSIGNALED(status)) return std::string("crashed: ") + ::strsignal(WTERMSIG(status));
    if (WIFEXITED(status) && WEXITSTATUS(status) != 0)
      return "ended the process with code " + std::to_string(WEXITSTATUS(status));
    return {};
  }

 private:
  const pid_t pid_;
  const int fd_;
  std::string text_;
};

}  // namespace

Result<std::vector<ConformanceCase>> TestConformance(const std::string& name_or_path, const ConformanceOptions& options,
                                                     const std::function<void(const ConformanceCase&)>& told) {
  std::vector<ConformanceCase> cases;
  std::set<std::string> over;
  const auto done = [&](ConformanceCase one) {
    over.insert(one.name);
    if (told) told(one);
    cases.push_back(std::move(one));
  };
  // After a crash the rest is done by another child, but a policy that crashes again and again need not be asked to the
  // end.
  for (int crashes = 0; crashes < 3; ++crashes) {
    int fds[2];
    if (::pipe(fds) != 0) return Status::FromErrno("a pipe for the conformance test");
    const pid_t pid = ::fork();
    if (pid < 0) {
      ::close(fds[0]);
      ::close(fds[1]);
      return Status::FromErrno("a process for the conformance test");
    }
    if (pid == 0) {
      ::close(fds[0]);
      Child(fds[1], name_or_path, options, over);
    }
    ::close(fds[1]);
    Listener child(pid, fds[0]);
    std::string line, current;
    Listener::Heard heard;
    while ((heard = child.Next(line, options.patience)) == Listener::Heard::kLine) {
      const auto message = nlohmann::json::parse(line, nullptr, false);
      if (!message.is_object()) continue;  // The policy wrote into our pipe; the end will tell.
      if (message.contains("refused")) return Status(Code::kRefused, message["refused"].get<std::string>());
      if (message.contains("begins")) current = message["begins"].get<std::string>();
      if (message.contains("case")) {
        done({message["case"].get<std::string>(), message["problems"].get<std::vector<std::string>>()});
        current.clear();
      }
    }
    std::string how = heard == Listener::Heard::kNothing ? "a callback did not return" : child.HowItEnded();
    if (how.empty() && current.empty()) return cases;
    if (current.empty() && over.empty())
      return Status(Code::kInvalid, "policy " + name_or_path + " " + how + " while it was loaded");
    done({current.empty() ? "end" : current, {how.empty() ? "ended the process" : how}});
  }
  return cases;
}

}  // namespace hawser::scheduler
