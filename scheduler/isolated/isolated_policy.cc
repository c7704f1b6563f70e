// SPDX-License-Identifier: Apache-2.0
#include "scheduler/isolated/isolated_policy.h"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

using hawser::wire::Code;
using hawser::wire::Deadline;
using hawser::wire::Status;

namespace hawser::scheduler {
namespace {

constexpr size_t kMostName = 64;
constexpr size_t kMostLine = 1024;
constexpr size_t kMostReason = 4096;
constexpr uint32_t kNoText = UINT32_MAX;

/// Between two questions the process may finish what it did, spin for a moment, and fall asleep.
constexpr uint64_t kUncalledFreeNs = 1'000'000;
/// And no more than so much beyond that, ever.
constexpr uint64_t kMostUncalledNs = 1'000'000'000;

/// For people: one line of ASCII, cut. Whoever shows it need not ask how it is encoded.
std::string Cleaned(std::string_view text, size_t most) {
  std::string out(text.substr(0, std::min(text.find('\0'), most)));
  for (char& c : out) {
    if (static_cast<unsigned char>(c) < 0x20) c = ' ';
    if (static_cast<unsigned char>(c) >= 0x7f) c = '?';
  }
  return out;
}

const char* CallbackName(Ask ask) {
  switch (ask) {
    case Ask::kLoad:
      return "while it was loaded";
    case Ask::kEntry:
      return "in hawser_policy_entry_v1()";
    case Ask::kInit:
      return "in init()";
    case Ask::kFini:
      return "in fini()";
    case Ask::kTenantAdd:
      return "in tenant_add()";
    case Ask::kTenantDel:
      return "in tenant_del()";
    case Ask::kTenantConfig:
      return "in tenant_cfg()";
    case Ask::kRunnable:
      return "in runnable()";
    case Ask::kIdle:
      return "in idle()";
    case Ask::kSelect:
      return "in select()";
    case Ask::kCharged:
      return "in charged()";
    case Ask::kPreempt:
      return "in preempt()";
    case Ask::kOnTimer:
      return "in on_timer()";
    case Ask::kStage:
      return "in stage()";
    case Ask::kMemoryVictim:
      return "in mem_victim()";
    case Ask::kMemoryWinner:
      return "in mem_winner()";
    case Ask::kDump:
      return "in dump()";
    case Ask::kSetting:
    case Ask::kLogged:
      break;
  }
  return "in a callback";
}

}  // namespace

/// The functions of a hawser_policy. `state` is the IsolatedPolicy.
struct IsolatedPolicy::Callbacks {
  static IsolatedPolicy& Self(void* state) { return *static_cast<IsolatedPolicy*>(state); }

  static int Init(const hawser_host*, void** state) {
    IsolatedPolicy& self = Self(*state);
    return self.Call(Ask::kInit, {}) ? self.reply_.result : -1;
  }
  static void Fini(void* state) { (void)Self(state).Call(Ask::kFini, {}); }
  static int TenantAdd(void* state, hawser_tenant* tenant, const hawser_tenant_cfg* config) {
    IsolatedPolicy& self = Self(state);
    return self.Call(Ask::kTenantAdd, {.tenant = tenant, .config = config}) ? self.reply_.result : -1;
  }
  static void TenantDel(void* state, hawser_tenant* tenant) {
    (void)Self(state).Call(Ask::kTenantDel, {.tenant = tenant});
  }
  static void TenantConfig(void* state, hawser_tenant* tenant, const hawser_tenant_cfg* config) {
    (void)Self(state).Call(Ask::kTenantConfig, {.tenant = tenant, .config = config});
  }
  static void Runnable(void* state, hawser_tenant* tenant) {
    (void)Self(state).Call(Ask::kRunnable, {.tenant = tenant});
  }
  static void Idle(void* state, hawser_tenant* tenant) { (void)Self(state).Call(Ask::kIdle, {.tenant = tenant}); }
  static int Select(void* state, hawser_decision* out) {
    IsolatedPolicy& self = Self(state);
    if (!self.Call(Ask::kSelect, {})) return -1;
    const Reply& reply = self.reply_;
    out->size = reply.decision_size;
    out->flags = reply.flags;
    out->who = self.TenantAt(reply.tenant);
    out->slice_ns = reply.slice_ns;
    out->inflight_cap_ns = reply.inflight_cap_ns;
    out->unit_ns = reply.unit_ns;
    out->linger_ns = reply.linger_ns;
    out->wait_ns = reply.wait_ns;
    return reply.result;
  }
  static void Charged(void* state, hawser_tenant* tenant, uint64_t gpu_ns, uint32_t why) {
    (void)Self(state).Call(Ask::kCharged, {.tenant = tenant, .amount = gpu_ns, .why = why});
  }
  static int Preempt(void* state, hawser_tenant* running, hawser_tenant* woken) {
    IsolatedPolicy& self = Self(state);
    return self.Call(Ask::kPreempt, {.tenant = running, .other = woken}) ? self.reply_.result : 0;
  }
  static void OnTimer(void* state, uint64_t now_ns) { (void)Self(state).Call(Ask::kOnTimer, {.amount = now_ns}); }
  static hawser_tenant* Stage(void* state, hawser_tenant* running) {
    return Self(state).Named(Ask::kStage, {.tenant = running});
  }
  static hawser_tenant* MemoryVictim(void* state, hawser_tenant* asker, uint64_t bytes) {
    return Self(state).Named(Ask::kMemoryVictim, {.tenant = asker, .amount = bytes});
  }
  static hawser_tenant* MemoryWinner(void* state, uint64_t bytes) {
    return Self(state).Named(Ask::kMemoryWinner, {.amount = bytes});
  }
  static size_t Dump(void* state, char* json, size_t cap) {
    IsolatedPolicy& self = Self(state);
    if (cap == 0 || !self.Call(Ask::kDump, {})) return 0;
    const std::string text = self.link_->Text(std::min<uint32_t>(self.reply_.text_size, kMostReplyText));
    const size_t copied = std::min(text.size(), cap - 1);
    std::memcpy(json, text.data(), copied);
    json[copied] = '\0';
    return self.reply_.length;
  }
};

IsolatedPolicy::IsolatedPolicy(std::unique_ptr<PolicyLink> link, const hawser_host& host,
                               std::chrono::nanoseconds deadline)
    : link_(std::move(link)), host_(host), deadline_(deadline), cpu_after_call_ns_(link_->CpuNs()) {}

Status IsolatedPolicy::Begin(const std::string& from) {
  if (!Call(Ask::kEntry, {})) return Status(Code::kInvalid, "policy " + from + ": " + failure_);
  const std::string text = link_->Text(std::min<uint32_t>(reply_.text_size, kMostReason));
  if (reply_.answer == Answer::kRefused) {
    // Which of the two it is, only a text for people depends on.
    const bool invalid = reply_.result == static_cast<int32_t>(Code::kInvalid);
    return Status(invalid ? Code::kInvalid : Code::kRefused, Cleaned(text, kMostReason));
  }
  const size_t line = std::min(text.find('\n'), text.size());
  name_ = Cleaned(std::string_view(text).substr(0, line), kMostName);
  version_ = Cleaned(std::string_view(text).substr(std::min(line + 1, text.size())), kMostName);
  const auto has = [this](Ask ask) { return (reply_.callbacks & CallbackBit(ask)) != 0; };
  offered_.size = sizeof(offered_);
  offered_.abi_major = HAWSER_POLICY_ABI_MAJOR;
  offered_.abi_minor = reply_.abi_minor;
  offered_.name = name_.c_str();
  offered_.version = version_.c_str();
  offered_.select = Callbacks::Select;
  // What it does not have is not asked for.
  if (has(Ask::kInit)) offered_.init = Callbacks::Init;
  if (has(Ask::kFini)) offered_.fini = Callbacks::Fini;
  if (has(Ask::kTenantAdd)) offered_.tenant_add = Callbacks::TenantAdd;
  if (has(Ask::kTenantDel)) offered_.tenant_del = Callbacks::TenantDel;
  if (has(Ask::kTenantConfig)) offered_.tenant_cfg = Callbacks::TenantConfig;
  if (has(Ask::kRunnable)) offered_.runnable = Callbacks::Runnable;
  if (has(Ask::kIdle)) offered_.idle = Callbacks::Idle;
  if (has(Ask::kCharged)) offered_.charged = Callbacks::Charged;
  if (has(Ask::kPreempt)) offered_.preempt = Callbacks::Preempt;
  if (has(Ask::kOnTimer)) offered_.on_timer = Callbacks::OnTimer;
  if (has(Ask::kStage)) offered_.stage = Callbacks::Stage;
  if (has(Ask::kMemoryVictim)) offered_.mem_victim = Callbacks::MemoryVictim;
  if (has(Ask::kMemoryWinner)) offered_.mem_winner = Callbacks::MemoryWinner;
  if (has(Ask::kDump)) offered_.dump = Callbacks::Dump;
  return {};
}

bool IsolatedPolicy::Fail(std::string why) {
  failure_ = std::move(why);
  link_->Kill();
  return false;
}

bool IsolatedPolicy::Call(Ask ask, const Arguments& arguments) {
  if (!failure_.empty()) return false;
  if (!WriteTenants()) {
    return Fail("there are more than " + std::to_string(kMostTenants) +
                " tenants, which a policy in a process of its own cannot serve");
  }
  Request& request = link_->page().request;
  request.now_ns = host_.now_ns(host_.ctx);
  request.tenant = PlaceOf(arguments.tenant);
  request.other = PlaceOf(arguments.other);
  request.amount = arguments.amount;
  request.why = arguments.why;
  request.text_size = kNoText;
  if (arguments.config != nullptr) request.config = *arguments.config;
  const uint64_t before = link_->CpuNs();
  if (before > cpu_after_call_ns_ + kUncalledFreeNs) cpu_uncalled_ns_ += before - cpu_after_call_ns_ - kUncalledFreeNs;
  if (cpu_uncalled_ns_ > kMostUncalledNs) {
    return Fail("its process took more than a second of processor time while nobody asked it anything");
  }
  const bool answered = Talk(ask);
  cpu_after_call_ns_ = std::max(before, link_->CpuNs());
  cpu_in_calls_ns_ += cpu_after_call_ns_ - before;
  return answered;
}

bool IsolatedPolicy::Talk(Ask ask) {
  const Deadline deadline(deadline_);
  link_->page().request.ask = ask;
  for (bool asked = false;; asked = true) {
    // Questions without end are no answer either, however fast they come.
    const bool late = asked && deadline.Passed();
    const Status status = late ? Status(Code::kTimeout, "") : link_->Exchange(deadline, &reply_);
    if (status.code() == Code::kTimeout) {
      return Fail("it did not answer within " +
                  std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(deadline_).count()) + " ms " +
                  CallbackName(ask));
    }
    if (!status.ok()) return Fail(status.text() + " " + CallbackName(ask));
    if (reply_.text_size != kNoText && reply_.text_size > kMostReplyText) {
      return Fail(std::string("its process answered with a text that is too long ") + CallbackName(ask));
    }
    if (reply_.text_size == kNoText) reply_.text_size = 0;
    switch (reply_.answer) {
      case Answer::kDone:
        ApplyEffects();
        return true;
      case Answer::kRefused:
        if (ask == Ask::kEntry) return true;
        return Fail(std::string("its process answered with nonsense ") + CallbackName(ask));
      case Answer::kSetting:
        AnswerSetting();
        continue;
      case Answer::kLog:
        Log();
        continue;
    }
    return Fail(std::string("its process answered with nonsense ") + CallbackName(ask));
  }
}

hawser_tenant* IsolatedPolicy::Named(Ask ask, const Arguments& arguments) {
  return Call(ask, arguments) ? TenantAt(reply_.tenant) : nullptr;
}

bool IsolatedPolicy::WriteTenants() {
  RequestPage& page = link_->page();
  tenants_.clear();
  hawser_tenant* with_work = host_.next_runnable(host_.ctx, nullptr);
  for (hawser_tenant* tenant = host_.next_tenant(host_.ctx, nullptr); tenant != nullptr;
       tenant = host_.next_tenant(host_.ctx, tenant)) {
    if (tenants_.size() == kMostTenants) return false;
    SharedTenant& shared = page.tenants[tenants_.size()];
    shared.view.size = sizeof(shared.view);
    host_.view(host_.ctx, tenant, &shared.view);
    shared.has_work = tenant == with_work ? 1 : 0;
    if (tenant == with_work) with_work = host_.next_runnable(host_.ctx, tenant);
    tenants_.push_back(tenant);
  }
  page.request.tenants = static_cast<uint32_t>(tenants_.size());
  return true;
}

Place IsolatedPolicy::PlaceOf(const hawser_tenant* tenant) const {
  if (tenant == nullptr) return 0;
  const auto found = std::find(tenants_.begin(), tenants_.end(), tenant);
  return found != tenants_.end() ? static_cast<Place>(found - tenants_.begin() + 1) : kStranger;
}

hawser_tenant* IsolatedPolicy::TenantAt(Place place) {
  if (place == 0) return nullptr;
  // No tenant lies where this object lies.
  return place <= tenants_.size() ? tenants_[place - 1] : reinterpret_cast<hawser_tenant*>(this);
}

void IsolatedPolicy::AnswerSetting() {
  Request& request = link_->page().request;
  request.ask = Ask::kSetting;
  request.text_size = kNoText;
  const std::string key = link_->Text(std::min<uint32_t>(reply_.text_size, kMostReason));
  const char* value = host_.cfg(host_.ctx, key.c_str());
  if (value == nullptr || std::strlen(value) > kMostRequestText) return;
  request.text_size = static_cast<uint32_t>(std::strlen(value));
  std::memcpy(link_->page().text, value, request.text_size);
}

void IsolatedPolicy::Log() {
  Request& request = link_->page().request;
  request.ask = Ask::kLogged;
  request.text_size = kNoText;
  const LogBudget::Verdict verdict = log_budget_.Take(host_.now_ns(host_.ctx));
  if (verdict == LogBudget::Verdict::kDrop) return;
  std::string line = Cleaned(link_->Text(std::min<uint32_t>(reply_.text_size, kMostLine)), kMostLine);
  if (verdict == LogBudget::Verdict::kWriteLast) line += " (more lines of this second are not shown)";
  host_.log(host_.ctx, std::clamp<int32_t>(reply_.level, HAWSER_LOG_ERROR, HAWSER_LOG_DEBUG), line.c_str());
}

void IsolatedPolicy::ApplyEffects() {
  if ((reply_.effects & Reply::kTimerSet) != 0) host_.timer(host_.ctx, reply_.timer_ns);
  const bool named = reply_.revoked != 0 && reply_.revoked <= tenants_.size();
  if ((reply_.effects & Reply::kRevoked) != 0 && named) host_.revoke(host_.ctx, tenants_[reply_.revoked - 1]);
}

Status LoadIsolated(PolicyLink& link, const std::string& from, std::chrono::nanoseconds deadline) {
  Request& request = link.page().request;
  request = {};
  request.ask = Ask::kLoad;
  request.text_size = kNoText;
  Reply reply;
  const Status status = link.Exchange(Deadline(deadline), &reply);
  if (!status.ok()) return Status(Code::kInvalid, "policy " + from + ": " + status.text() + " while it was loaded");
  if (reply.answer == Answer::kDone) return {};
  if (reply.answer == Answer::kRefused && reply.text_size <= kMostReplyText) {
    return Status(Code::kInvalid, Cleaned(link.Text(std::min<uint32_t>(reply.text_size, kMostReason)), kMostReason));
  }
  return Status(Code::kInvalid, "policy " + from + ": its process answered with nonsense while it was loaded");
}

}  // namespace hawser::scheduler
