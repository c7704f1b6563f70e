// SPDX-License-Identifier: Apache-2.0
#include "scheduler/core/policy_host.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <ctime>
#include <utility>
#include <vector>

#include "scheduler/core/json_text.h"

using hawser::wire::Code;
using hawser::wire::Status;

namespace hawser::scheduler {
namespace {

/// `fair` is not expected to fail. If it does it does so at each decision, and is told of no more often than this.
constexpr uint64_t kBetweenFailuresNs = 10'000'000'000;

uint64_t Clock(clockid_t id) {
  timespec time{};
  ::clock_gettime(id, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(time.tv_nsec);
}

std::string Milliseconds(uint64_t ns) {
  std::string text = std::to_string(static_cast<double>(ns) / 1e6);
  while (text.back() == '0') text.pop_back();
  if (text.back() == '.') text.pop_back();
  return text + " ms";
}

std::string Quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return out + "\"";
}

uint64_t Times(uint64_t a, uint64_t b) {
  uint64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

hawser_tenant_cfg ToConfig(const Tenant& tenant) {
  hawser_tenant_cfg config{};
  config.size = sizeof(config);
  config.weight = tenant.config.weight;
  config.id = tenant.id;
  config.priority = tenant.config.priority;
  config.min_share_ppm = tenant.config.min_share_ppm;
  config.max_share_ppm = tenant.config.max_share_ppm;
  config.slo_ns = tenant.config.slo_ns;
  return config;
}

}  // namespace

/// Measures one callback.
class PolicyHost::Call {
 public:
  Call(PolicyHost& host, uint64_t now_ns) : Call(host, now_ns, host.run_.get()) {}
  /// `run`: where the policy runs that is called; null: here.
  Call(PolicyHost& host, uint64_t now_ns, const PolicyRun* run) : host_(host), run_(run) {
    host_.now_ns_ = std::max(host_.now_ns_, now_ns);
    if (host_.options_.callback_cpu_ns != 0) cpu_ = Cpu();
    if (host_.options_.callback_wall_ns != 0) wall_ = Clock(CLOCK_MONOTONIC);
  }
  ~Call() {
    host_.last_elsewhere_ = run_ != nullptr;
    host_.last_cpu_ns_ = host_.options_.callback_cpu_ns != 0 ? Cpu() - cpu_ : 0;
    host_.last_wall_ns_ = host_.options_.callback_wall_ns != 0 ? Clock(CLOCK_MONOTONIC) - wall_ : 0;
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

 private:
  uint64_t Cpu() const { return run_ != nullptr ? run_->cpu_ns() : Clock(CLOCK_THREAD_CPUTIME_ID); }

  PolicyHost& host_;
  const PolicyRun* const run_;
  uint64_t cpu_ = 0, wall_ = 0;
};

PolicyHost::PolicyHost(TenantTable& tenants, PolicyHostOptions options, EventFunction events)
    : tenants_(tenants), options_(std::move(options)), events_(std::move(events)) {
  host_.size = sizeof(host_);
  host_.abi_major = HAWSER_POLICY_ABI_MAJOR;
  host_.abi_minor = HAWSER_POLICY_ABI_MINOR;
  host_.ctx = this;
  host_.now_ns = HostNow;
  host_.view = HostView;
  host_.priv = HostPrivate;
  host_.next_tenant = HostNextTenant;
  host_.next_runnable = HostNextRunnable;
  host_.revoke = HostRevoke;
  host_.timer = HostTimer;
  host_.cfg = HostSetting;
  host_.log = HostLog;
}

PolicyHost::~PolicyHost() { Stop(); }

void PolicyHost::Stop() {
  if (!library_) return;
  if (policy_.fini != nullptr) policy_.fini(state_);  // Nobody is there any more to hear how long it took.
  state_ = nullptr;
  run_.reset();
  library_.reset();
}

Status PolicyHost::Use(const PolicyLibrary& library, uint64_t now_ns) {
  now_ns_ = std::max(now_ns_, now_ns);
  auto begun = library.Begin(host_);
  if (!begun.ok()) return begun.status();
  const hawser_policy& policy = begun->policy;
  // The new one gets private memory of its own; the old one's is kept until the new one has begun.
  std::vector<std::vector<std::byte>> old_memory;
  for (const auto& tenant : tenants_.all()) {
    old_memory.push_back(std::exchange(tenant->private_memory, std::vector<std::byte>(policy.priv_size)));
  }
  // So is its timer, and what the new one asks for in init() is not lost.
  const uint64_t old_timer_ns = std::exchange(timer_ns_, UINT64_MAX);
  void* state = begun->state;
  int result = 0;
  {
    Call call(*this, now_ns, begun->run.get());
    if (policy.init != nullptr) result = policy.init(&host_, &state);
  }
  Mention(policy.name, "init");
  if (result != 0) {
    for (size_t i = 0; i < old_memory.size(); ++i) tenants_.all()[i]->private_memory = std::move(old_memory[i]);
    timer_ns_ = old_timer_ns;
    const std::string failure = begun->run != nullptr ? begun->run->failure() : "";
    return Status(Code::kRefused, "policy " + library.name() + " could not begin: " +
                                      (failure.empty() ? "init() returned " + std::to_string(result) : failure));
  }
  const uint64_t new_timer_ns = timer_ns_;
  if (library_ && policy_.fini != nullptr) {
    for (size_t i = 0; i < old_memory.size(); ++i) std::swap(tenants_.all()[i]->private_memory, old_memory[i]);
    {
      Call call(*this, now_ns, run_.get());
      policy_.fini(state_);
    }
    Mention(name_, "fini");
    for (size_t i = 0; i < old_memory.size(); ++i) std::swap(tenants_.all()[i]->private_memory, old_memory[i]);
  }
  policy_ = policy;
  state_ = state;
  run_ = std::move(begun->run);
  library_ = library;
  name_ = policy_.name;
  is_fallback_ = library.is_fair();
  timer_ns_ = new_timer_ns;
  revoked_ = nullptr;
  idle_since_ns_ = UINT64_MAX;
  slow_in_a_row_.clear();
  Emit(PolicyEvent::Kind::kLoaded, "policy " + name_ + " is in charge");
  const uint64_t before = ejections_;
  for (const auto& tenant : tenants_.all()) {
    tenant->waits_since_ns = now_ns_;
    tenant->served_others = 0;
    if (Tell(*tenant, now_ns)) continue;
    std::string reason = "tenant_add() failed";
    if (ejections_ == before) {
      if (RunFailed()) reason = run_->failure();
      Eject(reason);
    } else {
      reason = "tenant_add() or runnable() was slow";
    }
    return Status(Code::kRefused, "policy " + library.name() + ": " + reason + "; fair took its place");
  }
  return Status::Ok();
}

/// False: it cannot go on, or was ejected already.
bool PolicyHost::Tell(Tenant& tenant, uint64_t now_ns) {
  if (policy_.tenant_add != nullptr) {
    const hawser_tenant_cfg config = ToConfig(tenant);
    int result = 0;
    {
      Call call(*this, now_ns, run_.get());
      result = policy_.tenant_add(state_, &tenant, &config);
    }
    if (result != 0) return false;
    if (!InTime("tenant_add")) return false;
  }
  if (tenant.wants() && policy_.runnable != nullptr) {
    {
      Call call(*this, now_ns, run_.get());
      policy_.runnable(state_, &tenant);
    }
    if (!InTime("runnable")) return false;
  }
  return true;
}

void PolicyHost::Added(Tenant& tenant, uint64_t now_ns) {
  tenant.private_memory.assign(policy_.priv_size, std::byte{0});
  const uint64_t before = ejections_;
  if (!Tell(tenant, now_ns) && ejections_ == before) Eject("tenant_add() failed for tenant " + tenant.config.name);
}

void PolicyHost::Removed(Tenant& tenant, uint64_t now_ns) {
  // Once more if that ended the policy: the one that took over has been told of the tenant, too.
  for (int attempt = 0; attempt < 2 && policy_.tenant_del != nullptr; ++attempt) {
    {
      Call call(*this, now_ns);
      policy_.tenant_del(state_, &tenant);
    }
    if (InTime("tenant_del")) break;
  }
  if (revoked_ == &tenant) revoked_ = nullptr;
}

void PolicyHost::Configured(Tenant& tenant, uint64_t now_ns) {
  if (policy_.tenant_cfg == nullptr) return;
  const hawser_tenant_cfg config = ToConfig(tenant);
  {
    Call call(*this, now_ns);
    policy_.tenant_cfg(state_, &tenant, &config);
  }
  (void)InTime("tenant_cfg");
}

void PolicyHost::Runnable(Tenant& tenant, uint64_t now_ns) {
  if (policy_.runnable == nullptr) return;
  {
    Call call(*this, now_ns);
    policy_.runnable(state_, &tenant);
  }
  (void)InTime("runnable");
}

void PolicyHost::Idle(Tenant& tenant, uint64_t now_ns) {
  if (policy_.idle == nullptr) return;
  {
    Call call(*this, now_ns);
    policy_.idle(state_, &tenant);
  }
  (void)InTime("idle");
}

void PolicyHost::Charged(Tenant& tenant, uint64_t gpu_ns, uint32_t why, uint64_t now_ns) {
  tenant.charged_ns += gpu_ns;
  if (policy_.charged == nullptr) return;
  {
    Call call(*this, now_ns);
    policy_.charged(state_, &tenant, gpu_ns, why);
  }
  (void)InTime("charged");
}

bool PolicyHost::Preempt(Tenant& running, Tenant& woken, uint64_t now_ns) {
  if (policy_.preempt == nullptr) return false;
  int result = 0;
  {
    Call call(*this, now_ns);
    result = policy_.preempt(state_, &running, &woken);
  }
  return InTime("preempt") && result != 0;
}

Tenant* PolicyHost::Stage(Tenant& running, uint64_t now_ns) {
  if (policy_.stage == nullptr) {
    Tenant* longest = nullptr;
    for (const auto& tenant : tenants_.all()) {
      if (tenant.get() == &running || !tenant->wants()) continue;
      if (longest == nullptr || tenant->last_served_ns < longest->last_served_ns) longest = tenant.get();
    }
    return longest;
  }
  const hawser_tenant* handle = nullptr;
  {
    Call call(*this, now_ns);
    handle = policy_.stage(state_, &running);
  }
  if (!InTime("stage") || handle == nullptr) return nullptr;
  Tenant* tenant = tenants_.Find(handle);
  if (tenant == nullptr) Eject("stage() named a tenant that is not there");
  return tenant;
}

Tenant* PolicyHost::MemoryVictim(Tenant& asker, uint64_t bytes, uint64_t now_ns) {
  if (policy_.mem_victim == nullptr) return nullptr;
  const hawser_tenant* handle = nullptr;
  {
    Call call(*this, now_ns);
    handle = policy_.mem_victim(state_, &asker, bytes);
  }
  return InTime("mem_victim") && handle != nullptr ? tenants_.Find(handle) : nullptr;
}

Tenant* PolicyHost::MemoryWinner(uint64_t bytes, uint64_t now_ns) {
  if (policy_.mem_winner == nullptr) return nullptr;
  const hawser_tenant* handle = nullptr;
  {
    Call call(*this, now_ns);
    handle = policy_.mem_winner(state_, bytes);
  }
  return InTime("mem_winner") && handle != nullptr ? tenants_.Find(handle) : nullptr;
}

void PolicyHost::Advance(uint64_t now_ns) {
  if (now_ns < timer_ns_) return;
  timer_ns_ = UINT64_MAX;
  if (policy_.on_timer == nullptr) return;
  next_timer_ns_ = now_ns + options_.min_timer_ns;
  {
    Call call(*this, now_ns);
    policy_.on_timer(state_, now_ns);
  }
  (void)InTime("on_timer");
}

Choice PolicyHost::Select(uint64_t now_ns) {
  if (tenants_.Next(nullptr, true) == nullptr) {
    idle_since_ns_ = UINT64_MAX;
    return {};
  }
  // Once more after an ejection, with `fair`.
  for (int attempt = 0; attempt < 2; ++attempt) {
    hawser_decision decision{};
    decision.size = sizeof(decision);
    int result = 0;
    {
      Call call(*this, now_ns);
      result = policy_.select(state_, &decision);
    }
    if (auto wrong = Wrong(result, decision)) {
      Eject(*wrong);
      continue;
    }
    if (!InTime("select")) continue;
    if (result == HAWSER_SELECT_DECIDED) {
      idle_since_ns_ = UINT64_MAX;
      const Choice choice = Bounded(decision);
      const uint64_t before = ejections_;
      GuardStarvation(*choice.who);
      if (ejections_ != before) continue;
      return choice;
    }
    if (idle_since_ns_ == UINT64_MAX) idle_since_ns_ = now_ns_;
    if (now_ns_ - idle_since_ns_ > options_.max_idle_ns) {
      Eject("kept the device idle for " + Milliseconds(now_ns_ - idle_since_ns_) + " although there was work");
      continue;
    }
    Choice choice;
    choice.kind = Choice::Kind::kWait;
    choice.wait_ns = std::clamp(decision.wait_ns, kShortestWaitNs, std::max(kShortestWaitNs, options_.max_wait_ns));
    return choice;
  }
  return Fallback();
}

std::optional<std::string> PolicyHost::Wrong(int result, const hawser_decision& decision) const {
  if (result < 0) return "select() failed with " + std::to_string(result);
  if (result > HAWSER_SELECT_WAIT) return "select() returned " + std::to_string(result) + ", which means nothing";
  if (decision.size != sizeof(decision)) return "select() changed the decision's size";
  if ((decision.flags & ~uint32_t{HAWSER_DECISION_NEVER_OPEN}) != 0) return "select() set flags that mean nothing";
  if (result == HAWSER_SELECT_WAIT) {
    if (decision.wait_ns == 0) return "select() wants to wait for no time";
    return std::nullopt;
  }
  if (decision.who == nullptr) return "select() decided for nobody";
  const Tenant* who = tenants_.Find(decision.who);
  if (who == nullptr) return "select() decided for a tenant that is not there";
  if (!who->has_work) return "select() decided for tenant " + who->config.name + ", which has no work";
  if (who->held) return "select() decided for tenant " + who->config.name + ", which is above its maximum share";
  return std::nullopt;
}

Choice PolicyHost::Bounded(const hawser_decision& decision) {
  Choice choice;
  choice.kind = Choice::Kind::kGrant;
  choice.who = tenants_.Find(decision.who);
  const uint64_t slice = decision.slice_ns != 0 ? decision.slice_ns : options_.default_slice_ns;
  choice.slice_ns = std::clamp(slice, std::max<uint64_t>(1, options_.min_slice_ns), options_.max_slice_ns);
  if (choice.who->limit.limited()) {
    choice.slice_ns = std::clamp<uint64_t>(choice.who->limit.Allowance(now_ns_), 1, choice.slice_ns);
  }
  const uint64_t cap =
      decision.inflight_cap_ns != 0 ? decision.inflight_cap_ns : std::min(choice.slice_ns, options_.default_cap_ns);
  choice.cap_ns = std::clamp<uint64_t>(cap, 1, options_.max_cap_ns);
  choice.unit_ns = decision.unit_ns != 0 ? decision.unit_ns : DefaultUnit(choice.slice_ns);
  if (choice.unit_ns < options_.min_unit_ns) {
    choice.unit_ns = options_.min_unit_ns;
    ++short_units_;
  }
  choice.linger_ns = std::min(decision.linger_ns, options_.max_wait_ns);
  choice.never_open = (decision.flags & HAWSER_DECISION_NEVER_OPEN) != 0 || choice.who->limit.limited();
  return choice;
}

uint64_t PolicyHost::Weights() const {
  uint64_t weights = 0;
  for (const auto& tenant : tenants_.all()) weights += tenant->config.weight;
  return weights;
}

uint64_t PolicyHost::DebtNs(const Tenant& tenant, uint64_t weights) const {
  // It is fair to let wait who had a long grant for a small weight: until the others have had theirs, twice.
  const uint64_t turns = weights / tenant.config.weight + 1;
  return std::max(Times(options_.starvation_ns, std::max<uint64_t>(1, turns / 100)),
                  Times(2 * turns, tenant.longest_charge_ns));
}

void PolicyHost::GuardStarvation(const Tenant& chosen) {
  const uint64_t weights = Weights();
  const Tenant* starved = nullptr;
  uint64_t starved_ns = 0;
  for (const auto& tenant : tenants_.all()) {
    if (!tenant->wants() || tenant.get() == &chosen) {
      tenant->served_others = 0;
      tenant->waits_since_ns = now_ns_;
      continue;
    }
    const uint64_t waited = now_ns_ - std::max(tenant->waits_since_ns, tenant->since_ns);
    // A kernel of seconds is not the policy's fault: others must have had two turns each meanwhile.
    const bool passed_over = ++tenant->served_others > 2 * tenants_.all().size();
    if (options_.starvation_ns == 0 || !passed_over || waited <= DebtNs(*tenant, weights)) continue;
    starved = tenant.get();
    starved_ns = waited;
  }
  if (starved != nullptr) {
    Eject("let tenant " + starved->config.name + " starve: it has had work for " + Milliseconds(starved_ns) +
          " without being chosen");
  }
}

std::string PolicyHost::Slowness(const char* callback) const {
  // In another process a callback pays for being woken too, with cold caches, and on a busy machine for more than that.
  constexpr uint64_t kElsewhere = 10;
  const uint64_t most_cpu_ns = options_.callback_cpu_ns * (last_elsewhere_ ? kElsewhere : 1);
  const bool slow_cpu = most_cpu_ns != 0 && last_cpu_ns_ > most_cpu_ns;
  const bool slow_wall = options_.callback_wall_ns != 0 && last_wall_ns_ > options_.callback_wall_ns;
  if (!slow_cpu && !slow_wall) return "";
  return std::string(callback) + "() took " +
         (slow_cpu ? Milliseconds(last_cpu_ns_) + " of processor time" : Milliseconds(last_wall_ns_));
}

void PolicyHost::Mention(const std::string& policy, const char* callback) {
  if (options_.callback_wall_ns == 0 || last_wall_ns_ <= options_.callback_wall_ns || !events_) return;
  events_({.kind = PolicyEvent::Kind::kSlow,
           .at_ns = now_ns_,
           .policy = policy,
           .text = "policy " + policy + " is slow: " + callback + "() took " + Milliseconds(last_wall_ns_) +
                   ", and the scheduler waits for it"});
}

bool PolicyHost::InTime(const char* callback) {
  if (RunFailed()) {
    Eject(run_->failure());
    return false;
  }
  const std::string text = Slowness(callback);
  if (text.empty()) {
    if (!slow_in_a_row_.empty()) slow_in_a_row_.erase(callback);
    return true;
  }
  const uint64_t times = ++slow_in_a_row_[callback];
  if (times < options_.slow_callbacks || is_fallback_) {
    // Once is the machine's doing as often as the policy's; and who stays in charge all the same is told of less and
    // less often.
    if (times > 1 && std::has_single_bit(times)) {
      Emit(PolicyEvent::Kind::kSlow, "policy " + name_ + " is slow: " + text);
    }
    return true;
  }
  Eject("was slow " + std::to_string(times) + " times in a row; the last: " + text);
  return false;
}

void PolicyHost::Eject(const std::string& reason) {
  const std::string old = name_;
  // A callback that could not be called answers with an error; why it could not be called is the better reason.
  const std::string why = RunFailed() ? run_->failure() : reason;
  ++ejections_;
  bool tell = events_ != nullptr;
  std::string often;
  if (is_fallback_) {
    ++fallback_failures_;
    tell = tell && (fallback_failed_at_ns_ == 0 || now_ns_ - fallback_failed_at_ns_ >= kBetweenFailuresNs);
    if (fallback_failures_ > 1) often = " (" + std::to_string(fallback_failures_) + " times by now)";
  }
  if (tell) {
    if (is_fallback_) fallback_failed_at_ns_ = now_ns_;
    events_({.kind = PolicyEvent::Kind::kEjected,
             .at_ns = now_ns_,
             .policy = old,
             .text = "policy " + old + " was ejected: " + why + often + "; " +
                     (is_fallback_ ? "who has waited longest is next" : "fair takes over"),
             .dump = Dump(),
             .reason = why});
  }
  if (is_fallback_) return;  // Select() then decides by itself; there is nothing better.
  if (const Status status = Use(PolicyLibrary::Fair(), now_ns_); !status.ok()) {
    Emit(PolicyEvent::Kind::kLog, "fair could not begin: " + status.text());
  }
}

Choice PolicyHost::Fallback() {
  Choice choice;
  choice.kind = Choice::Kind::kGrant;
  for (const auto& tenant : tenants_.all()) {
    if (tenant->wants() && (choice.who == nullptr || tenant->last_served_ns < choice.who->last_served_ns)) {
      choice.who = tenant.get();
    }
  }
  choice.slice_ns = std::clamp<uint64_t>(choice.who->limit.Allowance(now_ns_), 1, options_.default_slice_ns);
  choice.never_open = choice.who->limit.limited();
  choice.cap_ns = options_.default_cap_ns;
  choice.unit_ns = DefaultUnit(choice.slice_ns);
  return choice;
}

Tenant* PolicyHost::TakeRevoked() { return tenants_.Find(std::exchange(revoked_, nullptr)); }

std::string PolicyHost::Dump() {
  std::string own = "null";
  if (policy_.dump != nullptr) {
    std::vector<char> text(65536);
    size_t length = 0;
    {
      Call call(*this, now_ns_);
      length = policy_.dump(state_, text.data(), text.size());
    }
    Mention(name_, "dump");
    if (length > 0 && length < text.size() && std::memchr(text.data(), 0, text.size()) != nullptr) own = text.data();
  }
  std::string json = "{\"policy\":";
  json += Quoted(name_);
  json += ",\"now_ns\":" + std::to_string(now_ns_);
  json += ",\"state\":";
  json += own;
  json += ",\"tenants\":[";
  const char* separator = "";
  for (const auto& tenant : tenants_.all()) {
    json += separator;
    json += "{\"id\":" + std::to_string(tenant->id);
    json += ",\"name\":";
    json += Quoted(tenant->config.name);
    json += ",\"weight\":" + std::to_string(tenant->config.weight);
    json += ",\"state\":" + std::to_string(tenant->state);
    json += ",\"used_ns\":" + std::to_string(tenant->facts.used_ns);
    json += ",\"pending_ns\":" + std::to_string(tenant->facts.pending_ns);
    json += ",\"last_served_ns\":" + std::to_string(tenant->last_served_ns);
    json += "}";
    separator = ",";
  }
  return json + "]}";
}

void PolicyHost::Emit(PolicyEvent::Kind kind, std::string text) {
  if (events_) events_({.kind = kind, .at_ns = now_ns_, .policy = name_, .text = std::move(text)});
}

}  // namespace hawser::scheduler
