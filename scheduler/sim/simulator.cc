// SPDX-License-Identifier: Apache-2.0
#include "scheduler/sim/simulator.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <deque>
#include <optional>
#include <queue>
#include <random>
#include <utility>

#include "scheduler/core/kernel_history.h"
#include "scheduler/core/thread_group.h"

using hawser::wire::Code;
using hawser::wire::Result;
using hawser::wire::Status;

namespace hawser::scheduler {
namespace {

/// Virtual time begins here, because 0 means "never" in many places.
constexpr uint64_t kEpochNs = 1'000'000'000;

KernelKey KeyOf(size_t client, size_t kernel) {
  const uint64_t words[2] = {client, kernel};
  KernelKey key;
  static_assert(sizeof(words) == sizeof(key.bytes));
  std::memcpy(key.bytes.data(), words, sizeof(words));
  return key;
}

struct Event {
  enum class Kind { kArrival, kPieceEnd, kSubmit, kStopped, kKill };
  uint64_t at_ns;
  uint64_t order;  ///< Among those of one moment.
  Kind kind;
  size_t client;
  uint64_t grant;  ///< kSubmit, kStopped: of which grant.

  bool operator>(const Event& other) const { return at_ns != other.at_ns ? at_ns > other.at_ns : order > other.order; }
};

struct Request {
  uint64_t arrival_ns = 0;
  size_t kernel = 0;
  uint64_t length_ns = 0;
  uint64_t unsubmitted_ns = 0;
  uint64_t unsubmitted_threads = 0;
  uint64_t inflight = 0;  ///< Pieces.
};

struct Piece {
  size_t client = 0;
  uint64_t length_ns = 0;
  uint64_t estimate_ns = 0;
  uint64_t threads = 0;
  uint64_t begin_ns = 0;
  std::optional<size_t> sizing;
};

/// A guest and its worker.
struct Client {
  TenantId id = 0;
  bool here = true;
  std::deque<Request> requests;  ///< Oldest first; done ones leave at the front.
  uint64_t sent = 0;
  uint64_t outstanding = 0;
  uint64_t used_ns = 0;
  uint64_t last_unit_ns = 0;
  bool has_work = false;
  uint64_t work_since_ns = 0;
  uint64_t waits_since_ns = 0;

  bool granted = false;
  bool stopping = false;
  bool ready = false;  ///< The hand-off is over.
  Grant grant;
  uint64_t grant_at_ns = 0;
  uint64_t used_in_grant_ns = 0;
  uint64_t inflight_ns = 0;  ///< Estimated.
  uint64_t inflight = 0;     ///< Pieces.
};

class Simulation : public GrantSink {
 public:
  Simulation(const Scenario& scenario, const PolicyLibrary& policy, SimOptions options)
      : scenario_(scenario),
        library_(policy),
        options_(std::move(options)),
        random_(scenario.seed),
        clients_(scenario.clients.size()),
        scheduler_(MakeOptions(scenario, options_), *this, [this](const PolicyEvent& event) { OnEvent(event); }) {}

  Result<SimResult> Run();

  void Give(TenantId tenant, const Grant& grant) override;
  void Revoke(TenantId tenant) override;
  void Stage(TenantId) override {}

 private:
  static SchedulerOptions MakeOptions(const Scenario& scenario, const SimOptions& options) {
    SchedulerOptions made;
    made.policy = options.host;
    for (const auto& [key, value] : scenario.settings) made.policy.settings.emplace(key, value);
    made.policy.starvation_ns = scenario.starvation_ns;
    made.max_unit_ns = scenario.max_unit_ns;
    made.alone_after_ns = scenario.alone_after_ns;
    return made;
  }

  void At(uint64_t at_ns, Event::Kind kind, size_t client, uint64_t grant = 0) {
    events_.push({at_ns, ++order_, kind, client, grant});
  }
  uint64_t Since(uint64_t at_ns) const { return at_ns - kEpochNs; }
  double Even() { return static_cast<double>(random_() >> 11) / 9007199254740992.0; }  // [0, 1)
  uint64_t Jittered(uint64_t value, double jitter) {
    if (jitter == 0) return value;
    return static_cast<uint64_t>(std::llround(static_cast<double>(value) * (1 + jitter * (2 * Even() - 1))));
  }

  void OnEvent(const PolicyEvent& event);
  void Handle(const Event& event);
  /// When the client sends something that it would send at `at_ns`; nothing: never.
  std::optional<uint64_t> Allowed(size_t index, uint64_t at_ns) const;
  void ScheduleArrival(size_t index, uint64_t at_ns);
  void Arrive(size_t index);
  void Submit(size_t index);
  Piece NextPiece(size_t index);
  void StartDevice();
  void PieceEnd(size_t index);
  void Publish(size_t index);
  void CheckIdle(size_t index);
  void CheckStopped(size_t index);
  void Kill(size_t index);
  void Sample(size_t index, SimSample::Kind kind);
  void SetWork(size_t index, bool work);
  size_t IndexOf(TenantId id) const;

  const Scenario& scenario_;
  const PolicyLibrary& library_;
  const SimOptions options_;
  std::mt19937_64 random_;
  std::vector<Client> clients_;
  Scheduler scheduler_;
  KernelHistory history_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  uint64_t order_ = 0;
  uint64_t now_ns_ = kEpochNs;
  std::deque<Piece> device_;  ///< The first one runs.
  bool running_ = false;
  uint64_t device_ends_ns_ = 0;
  std::optional<size_t> last_holder_;
  SimResult result_;
};

size_t Simulation::IndexOf(TenantId id) const {
  for (size_t i = 0; i < clients_.size(); ++i) {
    if (clients_[i].id == id) return i;
  }
  return clients_.size();
}

void Simulation::OnEvent(const PolicyEvent& event) {
  result_.events.push_back(event);
  result_.events.back().at_ns = event.at_ns >= kEpochNs ? Since(event.at_ns) : 0;
  if (event.kind == PolicyEvent::Kind::kEjected) result_.ejected = true;
  if (event.kind == PolicyEvent::Kind::kRunaway) At(now_ns_, Event::Kind::kKill, IndexOf(event.tenant));
}

Result<SimResult> Simulation::Run() {
  result_.scenario = scenario_;
  result_.policy = library_.name();
  result_.duration_ns = scenario_.duration_ns;
  if (Status s = scheduler_.Use(library_, now_ns_); !s.ok()) return s;
  result_.policy = scheduler_.policy().policy_name();
  for (size_t i = 0; i < clients_.size(); ++i) {
    clients_[i].id = scheduler_.Add(scenario_.clients[i].tenant, now_ns_);
    result_.tenants.push_back({scenario_.clients[i].tenant.name, std::max(1u, scenario_.clients[i].tenant.weight)});
    const bool closed = scenario_.clients[i].arrival == SimClient::Arrival::kClosed;
    for (uint32_t d = 0; d < (closed ? scenario_.clients[i].depth : 1); ++d) {
      ScheduleArrival(i, kEpochNs + scenario_.clients[i].start_ns);
    }
  }
  const uint64_t end = kEpochNs + scenario_.duration_ns;
  for (uint64_t count = 0;; ++count) {
    if (count > options_.max_events) {
      return Status(Code::kExhausted, "scenario " + scenario_.name + ": more than " +
                                          std::to_string(options_.max_events) + " events; make it shorter");
    }
    const uint64_t wake = scheduler_.next_wake_ns();
    const uint64_t next = events_.empty() ? UINT64_MAX : events_.top().at_ns;
    if (std::min(next, wake) >= end) break;
    if (next <= wake) {
      const Event event = events_.top();
      events_.pop();
      now_ns_ = std::max(now_ns_, event.at_ns);
      Handle(event);
    } else {
      now_ns_ = std::max(now_ns_, wake);
      ++result_.timers;
      scheduler_.Advance(now_ns_);
    }
  }
  now_ns_ = end;
  if (running_ && !device_.empty()) {  // The part that fits.
    Piece& piece = device_.front();
    const uint64_t part = end - std::min(end, piece.begin_ns);
    clients_[piece.client].used_ns += part;
    if (part > 0) result_.busy.push_back({piece.client, Since(piece.begin_ns), Since(end)});
  }
  for (size_t i = 0; i < clients_.size(); ++i) {
    if (clients_[i].has_work) result_.work.push_back({i, Since(clients_[i].work_since_ns), Since(end)});
    if (clients_[i].granted && clients_[i].grant.kind == Grant::Kind::kOpen) {
      result_.open.push_back({i, Since(clients_[i].grant_at_ns), Since(end)});
    }
    result_.tenants[i].used_ns = clients_[i].used_ns;
  }
  for (const auto& tenant : scheduler_.tenants().all()) {
    SimTenant& out = result_.tenants[IndexOf(tenant->id)];
    out.charged_ns = tenant->charged_ns;
    out.grants = tenant->grants;
    out.longest_charge_ns = tenant->longest_charge_ns;
  }
  result_.handoff_ns = scheduler_.system().gap_ns;
  result_.switches = scheduler_.system().switches;
  result_.waited_ns = scheduler_.system().waited_ns;
  result_.lingered_ns = scheduler_.system().lingered_ns;
  result_.hurried_timers = scheduler_.policy().hurried_timers();
  result_.short_units = scheduler_.policy().short_units();
  result_.asked_settings = scheduler_.policy().asked_settings();
  result_.final_dump = scheduler_.policy().Dump();
  return std::move(result_);
}

void Simulation::Handle(const Event& event) {
  Client& client = clients_[event.client];
  if (!client.here) return;
  switch (event.kind) {
    case Event::Kind::kArrival:
      Arrive(event.client);
      break;
    case Event::Kind::kPieceEnd:
      PieceEnd(event.client);
      break;
    case Event::Kind::kSubmit:
      if (client.granted && client.grant.epoch == event.grant) {
        client.ready = true;
        Submit(event.client);
        CheckStopped(event.client);
      }
      break;
    case Event::Kind::kStopped:
      if (client.granted && client.grant.epoch == event.grant) CheckStopped(event.client);
      break;
    case Event::Kind::kKill:
      Kill(event.client);
      break;
  }
}

std::optional<uint64_t> Simulation::Allowed(size_t index, uint64_t at_ns) const {
  const SimClient& spec = scenario_.clients[index];
  uint64_t at = Since(std::max(at_ns, kEpochNs + spec.start_ns));
  for (const auto& [from, to] : spec.sleeps) {
    if (at >= from && at < to) at = to;
  }
  if (at >= spec.stop_ns) return std::nullopt;
  return kEpochNs + at;
}

void Simulation::ScheduleArrival(size_t index, uint64_t at_ns) {
  if (const auto at = Allowed(index, at_ns)) At(*at, Event::Kind::kArrival, index);
}

void Simulation::Arrive(size_t index) {
  const SimClient& spec = scenario_.clients[index];
  Client& client = clients_[index];
  if (spec.requests != 0 && client.sent >= spec.requests) return;
  Request request;
  request.arrival_ns = now_ns_;
  request.kernel = client.sent % spec.kernels.size();
  const SimKernel& kernel = spec.kernels[request.kernel];
  request.length_ns = std::max<uint64_t>(1, Jittered(kernel.length_ns, spec.length_jitter));
  request.unsubmitted_ns = request.length_ns;
  request.unsubmitted_threads = kernel.threads;
  client.requests.push_back(request);
  ++client.sent;
  ++client.outstanding;
  if (spec.arrival == SimClient::Arrival::kPeriodic) {
    ScheduleArrival(index, now_ns_ + std::max<uint64_t>(1000, Jittered(spec.think_ns, spec.think_jitter)));
  } else if (spec.arrival == SimClient::Arrival::kPoisson) {
    const double gap = -std::log(1 - Even()) * static_cast<double>(spec.think_ns);
    ScheduleArrival(index, now_ns_ + std::max<uint64_t>(1000, static_cast<uint64_t>(gap)));
  }
  Publish(index);
  if (!client.has_work) {
    SetWork(index, true);
    scheduler_.Runnable(client.id, now_ns_);
  }
  if (client.granted && client.ready) {
    Submit(index);
    CheckStopped(index);  // The slice may have been used by pieces longer than estimated.
  }
}

void Simulation::Give(TenantId tenant, const Grant& grant) {
  const size_t index = IndexOf(tenant);
  Client& client = clients_[index];
  client.granted = true;
  client.stopping = false;
  client.ready = false;
  client.grant = grant;
  client.grant_at_ns = now_ns_;
  client.used_in_grant_ns = 0;
  const uint64_t delay = scenario_.decision_ns + (last_holder_ && *last_holder_ != index ? scenario_.handoff_ns : 0);
  last_holder_ = index;
  SimTenant& out = result_.tenants[index];
  out.longest_wait_ns = std::max(out.longest_wait_ns, now_ns_ + delay - std::min(now_ns_, client.waits_since_ns));
  At(now_ns_ + delay, Event::Kind::kSubmit, index, grant.epoch);
}

void Simulation::Revoke(TenantId tenant) {
  const size_t index = IndexOf(tenant);
  clients_[index].stopping = true;
  if (clients_[index].inflight == 0) At(now_ns_, Event::Kind::kStopped, index, clients_[index].grant.epoch);
}

Piece Simulation::NextPiece(size_t index) {
  Client& client = clients_[index];
  const SimClient& spec = scenario_.clients[index];
  const auto request = std::find_if(client.requests.begin(), client.requests.end(),
                                    [](const Request& r) { return r.unsubmitted_ns > 0; });
  const SimKernel& kernel = spec.kernels[request->kernel];
  Piece piece;
  piece.client = index;
  if (kernel.threads == 0) {
    piece.length_ns = request->unsubmitted_ns;
    if (kernel.unit_ns != 0 && client.grant.unit_ns != HAWSER_UNIT_WHOLE) {
      piece.length_ns = std::min(piece.length_ns, std::max(kernel.unit_ns, client.grant.unit_ns));
    }
    piece.estimate_ns = piece.length_ns;
  } else {
    // As a real worker: it knows threads, and the rate of what has ended.
    const KernelKey key = KeyOf(index, request->kernel);
    const double rate = history_.Rate(key) * 1e9;
    uint64_t active = 0;
    for (const Client& other : clients_) active += other.has_work ? 1 : 0;
    uint64_t threads =
        rate > 0 ? NextGroup(client.grant.unit_ns, rate) : FirstGroup(scenario_.cores, scenario_.beta, active);
    if (client.grant.unit_ns == HAWSER_UNIT_WHOLE) threads = request->unsubmitted_threads;
    piece.threads = WholeGroups(threads, kernel.work_group, request->unsubmitted_threads);
    piece.length_ns = piece.threads == request->unsubmitted_threads
                          ? request->unsubmitted_ns
                          : std::max<uint64_t>(1, static_cast<uint64_t>(static_cast<double>(request->length_ns) *
                                                                        static_cast<double>(piece.threads) /
                                                                        static_cast<double>(kernel.threads)));
    piece.length_ns = std::min(piece.length_ns, request->unsubmitted_ns);
    piece.estimate_ns = history_.Estimate(key, piece.threads).value_or(client.grant.cap_ns);
    request->unsubmitted_threads -= piece.threads;
    piece.sizing = result_.sizings.size();
    result_.sizings.push_back({Since(now_ns_), index, piece.threads, 0, 0});
  }
  request->unsubmitted_ns -= piece.length_ns;
  ++request->inflight;
  return piece;
}

void Simulation::Submit(size_t index) {
  Client& client = clients_[index];
  while (client.granted && client.ready && !client.stopping) {
    const bool waiting = std::any_of(client.requests.begin(), client.requests.end(),
                                     [](const Request& r) { return r.unsubmitted_ns > 0; });
    if (!waiting || (client.inflight > 0 && client.inflight_ns >= client.grant.cap_ns)) break;
    const bool slice = client.grant.kind == Grant::Kind::kSlice;
    if (slice && client.used_in_grant_ns + client.inflight_ns >= client.grant.slice_ns) {
      client.stopping = true;  // The slice is used.
      break;
    }
    Piece piece = NextPiece(index);
    client.inflight_ns += piece.estimate_ns;
    ++client.inflight;
    device_.push_back(piece);
    if (slice && client.used_in_grant_ns + client.inflight_ns >= client.grant.slice_ns) client.stopping = true;
    StartDevice();
  }
  Publish(index);
}

void Simulation::StartDevice() {
  if (running_ || device_.empty()) return;
  running_ = true;
  Piece& piece = device_.front();
  piece.begin_ns = now_ns_;
  device_ends_ns_ = now_ns_ + piece.length_ns;
  if (piece.sizing) result_.sizings[*piece.sizing].begin_ns = Since(now_ns_);
  At(device_ends_ns_, Event::Kind::kPieceEnd, piece.client);
}

void Simulation::PieceEnd(size_t index) {
  const SimClient& spec = scenario_.clients[index];
  Client& client = clients_[index];
  const Piece piece = device_.front();
  device_.pop_front();
  running_ = false;
  if (!result_.busy.empty() && result_.busy.back().tenant == index &&
      result_.busy.back().end_ns == Since(piece.begin_ns)) {
    result_.busy.back().end_ns = Since(now_ns_);
  } else {
    result_.busy.push_back({index, Since(piece.begin_ns), Since(now_ns_)});
  }
  if (piece.sizing) {
    result_.sizings[*piece.sizing].end_ns = Since(now_ns_);
    const auto request =
        std::find_if(client.requests.begin(), client.requests.end(), [](const Request& r) { return r.inflight > 0; });
    history_.Learn(KeyOf(index, request->kernel), piece.threads, piece.length_ns);
  }
  client.used_ns += piece.length_ns;
  client.used_in_grant_ns += piece.length_ns;
  client.last_unit_ns = piece.length_ns;
  client.inflight_ns -= piece.estimate_ns;
  --client.inflight;
  // Pieces end in the order of the requests.
  const auto request =
      std::find_if(client.requests.begin(), client.requests.end(), [](const Request& r) { return r.inflight > 0; });
  --request->inflight;
  if (request->inflight == 0 && request->unsubmitted_ns == 0) {
    result_.tenants[index].requests.push_back({Since(request->arrival_ns), Since(now_ns_)});
    client.requests.erase(request);
    --client.outstanding;
    if (spec.arrival == SimClient::Arrival::kClosed) {
      const uint64_t think = Jittered(spec.think_ns, spec.think_jitter);
      const auto at = Allowed(index, now_ns_ + think);
      if (at == now_ns_) {
        Arrive(index);  // No gap: it never ran out of work.
      } else if (at) {
        At(*at, Event::Kind::kArrival, index);
      }
    }
  }
  StartDevice();
  if (client.granted && client.ready) Submit(index);
  Publish(index);
  CheckIdle(index);
  CheckStopped(index);
}

void Simulation::Publish(size_t index) {
  const SimClient& spec = scenario_.clients[index];
  const Client& client = clients_[index];
  WorkerFacts facts;
  facts.used_ns = client.used_ns;
  facts.inflight_ns = client.inflight_ns;
  facts.last_unit_ns = client.last_unit_ns;
  for (const Request& request : client.requests) {
    if (request.unsubmitted_ns == 0) continue;
    facts.pending_ns += request.unsubmitted_ns;
    ++facts.pending_count;
    if (facts.oldest_arrival_ns != 0) continue;
    facts.oldest_arrival_ns = request.arrival_ns;
    const SimKernel& kernel = spec.kernels[request.kernel];
    facts.unit_ns = kernel.unit_ns != 0 ? kernel.unit_ns : request.length_ns;
  }
  scheduler_.Facts(client.id, facts, now_ns_);
}

void Simulation::SetWork(size_t index, bool work) {
  Client& client = clients_[index];
  if (client.has_work == work) return;
  client.has_work = work;
  if (work) {
    client.work_since_ns = now_ns_;
    if (!client.granted) client.waits_since_ns = now_ns_;
  } else {
    result_.work.push_back({index, Since(client.work_since_ns), Since(now_ns_)});
  }
  for (size_t i = 0; i < clients_.size(); ++i) {
    if (i != index && clients_[i].granted) Sample(i, SimSample::Kind::kSnapshot);
  }
  Sample(index, work ? SimSample::Kind::kBeginsWork : SimSample::Kind::kEndsWork);
}

void Simulation::Sample(size_t index, SimSample::Kind kind) {
  result_.samples.push_back({Since(now_ns_), index, kind, clients_[index].used_ns});
}

void Simulation::CheckIdle(size_t index) {
  Client& client = clients_[index];
  if (!client.has_work || !client.requests.empty()) return;
  SetWork(index, false);
  scheduler_.Idle(client.id, now_ns_);
}

void Simulation::CheckStopped(size_t index) {
  Client& client = clients_[index];
  if (!client.granted || !client.stopping || client.inflight > 0) return;
  client.granted = false;
  client.waits_since_ns = now_ns_;
  if (client.grant.kind == Grant::Kind::kOpen) {
    result_.open.push_back({index, Since(client.grant_at_ns), Since(now_ns_)});
  }
  Sample(index, SimSample::Kind::kGrantEnd);
  scheduler_.Drained(client.id, now_ns_);
  if (options_.on_grant_end) options_.on_grant_end(scheduler_, now_ns_);
}

void Simulation::Kill(size_t index) {
  Client& client = clients_[index];
  // What ran until now was on the device, although it never ended.
  if (running_ && device_.front().client == index) {
    client.used_ns += now_ns_ - device_.front().begin_ns;
    result_.busy.push_back({index, Since(device_.front().begin_ns), Since(now_ns_)});
    running_ = false;
  }
  std::erase_if(device_, [index](const Piece& piece) { return piece.client == index; });
  client.requests.clear();
  client.inflight = 0;
  Publish(index);
  SetWork(index, false);
  client.here = false;
  client.granted = false;
  result_.tenants[index].killed = true;
  for (const auto& tenant : scheduler_.tenants().all()) {
    if (tenant->id == client.id) result_.tenants[index].grants = tenant->grants + 1;
  }
  scheduler_.Remove(client.id, now_ns_);
  StartDevice();
}

}  // namespace

Result<SimResult> Simulate(const Scenario& scenario, const PolicyLibrary& policy, SimOptions options) {
  return Simulation(scenario, policy, std::move(options)).Run();
}

}  // namespace hawser::scheduler
