// SPDX-License-Identifier: Apache-2.0
#include "scheduler/isolated/plugin_side.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "wire/futex.h"
#include "wire/spin.h"

using hawser::wire::Status;

namespace hawser::scheduler {
namespace {

/// The next question often follows at once: charged(), then select(), then stage().
constexpr std::chrono::nanoseconds kSpin = std::chrono::microseconds(50);
constexpr size_t kMostKey = 256;

}  // namespace

PluginSide::PluginSide(const RequestPage& in, ReplyPage& out, std::string policy, std::function<Status()> loaded)
    : in_(in), out_(out), name_(std::move(policy)), loaded_(std::move(loaded)) {
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

bool PluginSide::Wait() {
  // The page cannot be written from here; the futex only reads it.
  auto& turn = const_cast<std::atomic<uint32_t>&>(in_.turn);  // NOLINT(cppcoreguidelines-pro-type-const-cast)
  const auto asked = [&] { return turn.load(std::memory_order_acquire) != turn_; };
  if (!wire::SpinUntil(kSpin, asked)) {
    out_.asleep.store(1, std::memory_order_seq_cst);
    while (turn.load(std::memory_order_seq_cst) == turn_) wire::FutexWait(turn, turn_, std::chrono::seconds(10));
    out_.asleep.store(0, std::memory_order_relaxed);
  }
  return turn.load(std::memory_order_acquire) == ++turn_;
}

void PluginSide::Post() {
  out_.reply = reply_;
  out_.turn.store(turn_, std::memory_order_seq_cst);
  if (in_.asleep.load(std::memory_order_seq_cst) != 0) wire::FutexWake(out_.turn);
}

void PluginSide::Say(const std::string& text) {
  reply_.text_size = static_cast<uint32_t>(std::min(text.size(), kMostReplyText));
  std::memcpy(out_.text, text.data(), reply_.text_size);
}

std::optional<Ask> PluginSide::Step() {
  if (!Wait()) return std::nullopt;
  request_ = in_.request;
  reply_ = {};
  reply_.answer = Answer::kDone;
  switch (request_.ask) {
    case Ask::kLoad:
      Load();
      break;
    case Ask::kEntry:
      ReadTenants();
      Enter();
      break;
    default:
      ReadTenants();
      Call(request_.ask);
      break;
  }
  Post();
  return request_.ask;
}

void PluginSide::Load() {
  auto library = PolicyLibrary::Find(name_);
  Status status = library.ok() ? loaded_() : library.status();
  if (status.ok()) {
    library_ = *library;
    return;
  }
  reply_.answer = Answer::kRefused;
  reply_.result = static_cast<int32_t>(status.code());
  Say(status.text());
}

void PluginSide::Enter() {
  auto begun = library_->Begin(host_);
  reply_.answer = Answer::kDone;
  if (!begun.ok()) {
    reply_.answer = Answer::kRefused;
    reply_.result = static_cast<int32_t>(begun.status().code());
    Say(begun.status().text());
    return;
  }
  policy_ = begun->policy;
  state_ = begun->state;
  const auto has = [this](bool there, Ask ask) {
    if (there) reply_.callbacks |= CallbackBit(ask);
  };
  has(policy_.init != nullptr, Ask::kInit);
  has(policy_.fini != nullptr, Ask::kFini);
  has(policy_.tenant_add != nullptr, Ask::kTenantAdd);
  has(policy_.tenant_del != nullptr, Ask::kTenantDel);
  has(policy_.tenant_cfg != nullptr, Ask::kTenantConfig);
  has(policy_.runnable != nullptr, Ask::kRunnable);
  has(policy_.idle != nullptr, Ask::kIdle);
  has(policy_.charged != nullptr, Ask::kCharged);
  has(policy_.preempt != nullptr, Ask::kPreempt);
  has(policy_.on_timer != nullptr, Ask::kOnTimer);
  has(policy_.stage != nullptr, Ask::kStage);
  has(policy_.mem_victim != nullptr, Ask::kMemoryVictim);
  has(policy_.mem_winner != nullptr, Ask::kMemoryWinner);
  has(policy_.dump != nullptr, Ask::kDump);
  reply_.abi_minor = policy_.abi_minor;
  Say(std::string(policy_.name) + "\n" + (policy_.version != nullptr ? policy_.version : ""));
}

void PluginSide::Call(Ask ask) {
  hawser_tenant* const tenant = At(request_.tenant);
  switch (ask) {
    case Ask::kInit:
      reply_.result = policy_.init(&host_, &state_);
      break;
    case Ask::kFini:
      policy_.fini(state_);
      break;
    case Ask::kTenantAdd:
      reply_.result = policy_.tenant_add(state_, tenant, &request_.config);
      break;
    case Ask::kTenantDel:
      policy_.tenant_del(state_, tenant);
      break;
    case Ask::kTenantConfig:
      policy_.tenant_cfg(state_, tenant, &request_.config);
      break;
    case Ask::kRunnable:
      policy_.runnable(state_, tenant);
      break;
    case Ask::kIdle:
      policy_.idle(state_, tenant);
      break;
    case Ask::kSelect: {
      hawser_decision decision{};
      decision.size = sizeof(decision);
      reply_.result = policy_.select(state_, &decision);
      reply_.decision_size = decision.size;
      reply_.flags = decision.flags;
      reply_.tenant = PlaceOf(decision.who);
      reply_.slice_ns = decision.slice_ns;
      reply_.inflight_cap_ns = decision.inflight_cap_ns;
      reply_.unit_ns = decision.unit_ns;
      reply_.linger_ns = decision.linger_ns;
      reply_.wait_ns = decision.wait_ns;
      break;
    }
    case Ask::kCharged:
      policy_.charged(state_, tenant, request_.amount, request_.why);
      break;
    case Ask::kPreempt:
      reply_.result = policy_.preempt(state_, tenant, At(request_.other));
      break;
    case Ask::kOnTimer:
      policy_.on_timer(state_, request_.amount);
      break;
    case Ask::kStage:
      reply_.tenant = PlaceOf(policy_.stage(state_, tenant));
      break;
    case Ask::kMemoryVictim:
      reply_.tenant = PlaceOf(policy_.mem_victim(state_, tenant, request_.amount));
      break;
    case Ask::kMemoryWinner:
      reply_.tenant = PlaceOf(policy_.mem_winner(state_, request_.amount));
      break;
    case Ask::kDump: {
      std::string text(kMostReplyText, '\0');
      reply_.length = policy_.dump(state_, text.data(), text.size());
      const size_t end = text.find('\0');
      // Without an end it is not a text.
      if (end == std::string::npos) reply_.length = UINT64_MAX;
      if (end != std::string::npos && reply_.length < text.size()) Say(text.substr(0, end));
      break;
    }
    default:
      break;
  }
  reply_.answer = Answer::kDone;
}

void PluginSide::ReadTenants() {
  const uint32_t count = std::min<uint32_t>(request_.tenants, kMostTenants);
  bool same = tenants_.size() == count;
  for (uint32_t i = 0; same && i < count; ++i) same = tenants_[i]->id == in_.tenants[i].view.id;
  if (same) return;
  std::unordered_map<uint64_t, std::unique_ptr<Local>> known;
  for (auto& tenant : tenants_) {
    const uint64_t id = tenant->id;
    known.emplace(id, std::move(tenant));
  }
  tenants_.clear();
  places_.clear();
  for (uint32_t i = 0; i < count; ++i) {
    std::unique_ptr<Local>& old = known[in_.tenants[i].view.id];
    if (old == nullptr) old = std::make_unique<Local>();
    old->id = in_.tenants[i].view.id;
    places_[old.get()] = i + 1;
    tenants_.push_back(std::move(old));
  }
}

hawser_tenant* PluginSide::At(Place place) const {
  return place >= 1 && place <= tenants_.size() ? tenants_[place - 1].get() : nullptr;
}

Place PluginSide::PlaceOf(const hawser_tenant* tenant) const {
  if (tenant == nullptr) return 0;
  const auto found = places_.find(tenant);
  return found != places_.end() ? found->second : kStranger;
}

hawser_tenant* PluginSide::Next(const hawser_tenant* previous, bool with_work_only) const {
  const Place place = PlaceOf(previous);
  if (place == kStranger) return nullptr;
  for (size_t i = place; i < tenants_.size(); ++i) {
    if (!with_work_only || in_.tenants[i].has_work != 0) return tenants_[i].get();
  }
  return nullptr;
}

uint64_t PluginSide::HostNow(void* ctx) { return static_cast<PluginSide*>(ctx)->request_.now_ns; }

void PluginSide::HostView(void* ctx, const hawser_tenant* tenant, hawser_tenant_view* view) {
  const auto* self = static_cast<PluginSide*>(ctx);
  const Place place = self->PlaceOf(tenant);
  hawser_tenant_view full{};
  if (place != 0 && place != kStranger) full = self->in_.tenants[place - 1].view;
  const uint32_t size = view->size;
  if (size < sizeof(size)) return;
  if (size > sizeof(full)) std::memset(reinterpret_cast<char*>(view) + sizeof(full), 0, size - sizeof(full));
  full.size = size;
  std::memcpy(static_cast<void*>(view), &full, std::min<size_t>(size, sizeof(full)));
}

void* PluginSide::HostPrivate(void* ctx, hawser_tenant* tenant) {
  const auto* self = static_cast<PluginSide*>(ctx);
  const Place place = self->PlaceOf(tenant);
  if (place == 0 || place == kStranger) return nullptr;
  auto& memory = self->tenants_[place - 1]->memory;
  if (memory.empty()) memory.resize(self->policy_.priv_size);
  return memory.empty() ? nullptr : memory.data();
}

hawser_tenant* PluginSide::HostNextTenant(void* ctx, hawser_tenant* previous) {
  return static_cast<PluginSide*>(ctx)->Next(previous, false);
}

hawser_tenant* PluginSide::HostNextRunnable(void* ctx, hawser_tenant* previous) {
  return static_cast<PluginSide*>(ctx)->Next(previous, true);
}

void PluginSide::HostRevoke(void* ctx, hawser_tenant* tenant) {
  auto* self = static_cast<PluginSide*>(ctx);
  self->reply_.effects |= Reply::kRevoked;
  self->reply_.revoked = self->PlaceOf(tenant);
}

void PluginSide::HostTimer(void* ctx, uint64_t at_ns) {
  auto* self = static_cast<PluginSide*>(ctx);
  self->reply_.effects |= Reply::kTimerSet;
  self->reply_.timer_ns = at_ns;
}

const char* PluginSide::HostSetting(void* ctx, const char* key) {
  auto* self = static_cast<PluginSide*>(ctx);
  if (key == nullptr || std::strlen(key) > kMostKey) return nullptr;
  const auto [found, is_new] = self->settings_.try_emplace(key);
  if (is_new) {
    self->reply_.answer = Answer::kSetting;
    self->Say(key);
    self->Post();
    if (!self->Wait() || self->in_.request.ask != Ask::kSetting) return nullptr;
    const uint32_t size = self->in_.request.text_size;
    if (size <= kMostRequestText) found->second = std::string(self->in_.text, size);
  }
  return found->second ? found->second->c_str() : nullptr;
}

void PluginSide::HostLog(void* ctx, int level, const char* text) {
  auto* self = static_cast<PluginSide*>(ctx);
  if (level > HAWSER_LOG_INFO || text == nullptr) return;
  self->reply_.answer = Answer::kLog;
  self->reply_.level = level;
  self->Say(text);
  self->Post();
  (void)self->Wait();
}

}  // namespace hawser::scheduler
