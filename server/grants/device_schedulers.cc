// SPDX-License-Identifier: Apache-2.0
#include "server/grants/device_schedulers.h"

#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <utility>

namespace hawser::server {

using wire::Code;
using wire::Fd;
using wire::Result;
using wire::Status;

namespace {

/// What the epoll says of a device; of a worker it says the session.
constexpr uint64_t kDevice = UINT64_MAX;

Status Watch(int epoll, int fd, uint32_t events, uint64_t whose) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = whose;
  if (::epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0) return {};
  return Status::FromErrno("cannot watch a scheduler's news");
}

/// The worker may write there meanwhile.
std::string KeyIn(const GrantSlot& slot) {
  char key[sizeof(slot.key)];
  std::memcpy(key, slot.key, sizeof(key));
  return CleanDeviceKey(std::string_view(key, ::strnlen(key, sizeof(key))));
}

}  // namespace

Result<std::unique_ptr<DeviceSchedulers>> DeviceSchedulers::Start(const SchedulerSettings& settings) {
  std::unique_ptr<DeviceSchedulers> made(new DeviceSchedulers);
  if (Status status = made->Open(settings); !status.ok()) return status;
  return made;
}

Status DeviceSchedulers::Open(const SchedulerSettings& settings) {
  settings_ = settings;
  news_ = Fd(::epoll_create1(EPOLL_CLOEXEC));
  if (!news_.valid()) return Status::FromErrno("cannot create the schedulers' epoll");
  devices_.reserve(kMostDevices);
  return AddDevice();
}

DeviceSchedulers::~DeviceSchedulers() = default;

Status DeviceSchedulers::AddDevice() {
  Result<std::unique_ptr<GrantScheduler>> started = GrantScheduler::Start(settings_);
  if (!started.ok()) return started.status();
  if (Status status = Watch(news_.get(), (*started)->notices_fd(), EPOLLIN, kDevice); !status.ok()) return status;
  (*started)->RecordGrants(records_);
  devices_.push_back({std::move(*started), {}, 0, 0});
  return {};
}

std::vector<std::string> DeviceSchedulers::Policies() const {
  std::vector<std::string> names;
  for (const scheduler::BuiltinPolicy& policy : scheduler::BuiltinPolicies()) names.emplace_back(policy.name);
  return names;
}

Status DeviceSchedulers::SetPolicy(const std::string& name) {
  if (name == SchedulerSettings::kNone) {
    return Status(Code::kRefused,
                  "a running scheduler cannot be taken away; write policy = \"none\" under [scheduler] "
                  "and start the server anew");
  }
  for (size_t i = 0; i < devices_.size(); ++i) {
    Status status = devices_[i].scheduler->SetPolicy(name);
    if (status.ok()) continue;
    for (size_t j = 0; j < i; ++j) (void)devices_[j].scheduler->SetPolicy(settings_.policy);
    return status;
  }
  settings_.policy = name;
  return {};
}

Ejections DeviceSchedulers::EjectedPolicies() const {
  Ejections all;
  for (const Device& device : devices_) {
    const Ejections some = device.scheduler->EjectedPolicies();
    all.count += some.count;
    if (some.last && (!all.last || all.last->unix_ns < some.last->unix_ns)) all.last = some.last;
  }
  return all;
}

std::optional<SystemUse> DeviceSchedulers::System() const {
  SystemUse sum;
  for (const Device& device : devices_) {
    const SystemUse one = device.scheduler->System();
    sum.gap_ns += one.gap_ns;
    sum.switches += one.switches;
    sum.waited_ns += one.waited_ns;
  }
  return sum;
}

void DeviceSchedulers::SetShare(const std::string& tenant, const TenantShare& share) {
  tenants_[tenant].share = share;
  for (const Device& device : devices_) device.scheduler->SetShare(tenant, share);
}

// ---------------------------------------------------------------------------------------------
// Sessions

Result<GrantDescriptors> DeviceSchedulers::Prepare(uint64_t id) {
  Result<GrantShare> share = GrantShare::Create();
  if (!share.ok()) return share.status();
  Result<Fd> bell = Doorbells::Make(), ask = Doorbells::Make();
  if (!bell.ok()) return bell.status();
  if (!ask.ok()) return ask.status();
  GrantDescriptors theirs;
  theirs.page = Fd(::fcntl(share->fd(), F_DUPFD_CLOEXEC, 0));
  theirs.bell = Fd(::fcntl(bell->get(), F_DUPFD_CLOEXEC, 0));
  theirs.ask = Fd(::fcntl(ask->get(), F_DUPFD_CLOEXEC, 0));
  if (!theirs.page.valid() || !theirs.bell.valid() || !theirs.ask.valid()) {
    return Status::FromErrno("cannot hand a worker its page for grants");
  }
  // Edge triggered, as the schedulers' bells are: a descriptor that a worker has too is not read, because the worker
  // could make that wait.
  if (Status status = Watch(news_.get(), ask->get(), EPOLLIN | EPOLLET, id); !status.ok()) return status;
  share->CloseDescriptor();
  for (size_t i = 0; i < kMostDevices; ++i) {
    share->slot(i).handover_ns.store(settings_.handover_us * 1000, std::memory_order_relaxed);
  }
  Session& session = sessions_[id];
  session.share = std::move(*share);
  session.bell = std::move(*bell);
  session.ask = std::move(*ask);
  return theirs;
}

void DeviceSchedulers::SessionStarted(uint64_t id, const std::string& tenant) {
  const auto found = sessions_.find(id);
  if (found == sessions_.end()) return;
  found->second.tenant = tenant;
  ++tenants_[tenant].sessions;
  for (auto at = tenants_.begin(); at != tenants_.end() && tenants_.size() > kMostTenants;) {
    at = at->second.sessions == 0 ? tenants_.erase(at) : std::next(at);
  }
  SeatAll(id, found->second);
}

void DeviceSchedulers::SessionEnded(uint64_t id) {
  const auto found = sessions_.find(id);
  if (found == sessions_.end()) return;
  Session& session = found->second;
  for (const auto& [slot, key] : session.seats) {
    devices_[PlaceOf(key).device].scheduler->Leave(NumberOf(id, slot));
    LeavePlace(key);
  }
  if (session.tenant) --tenants_[*session.tenant].sessions;
  ::epoll_ctl(news_.get(), EPOLL_CTL_DEL, session.ask.get(), nullptr);
  sessions_.erase(found);
}

void DeviceSchedulers::OnAsk(uint64_t id) {
  const auto found = sessions_.find(id);
  if (found == sessions_.end()) return;
  Session& session = found->second;
  SeatAll(id, session);
  if (++session.asks >= kMostDevices) ::epoll_ctl(news_.get(), EPOLL_CTL_DEL, session.ask.get(), nullptr);
}

void DeviceSchedulers::SeatAll(uint64_t id, Session& session) {
  if (!session.tenant) return;
  for (size_t i = 0; i < kMostDevices; ++i) {
    GrantSlot& slot = session.share.slot(i);
    if (slot.asked.load(std::memory_order_acquire) == 0 || session.seats.count(i) != 0) continue;
    const std::string key = KeyIn(slot);
    if (const Status status = SeatOne(id, session, i, key); !status.ok()) {
      // What it launched there would wait for ever.
      Say(SchedulerNotice::Kind::kLost, "device " + key + " cannot be given to a session: " + status.text(), {id});
    }
  }
}

Status DeviceSchedulers::SeatOne(uint64_t id, Session& session, size_t slot, const std::string& key) {
  Place& place = PlaceOf(key);
  ++place.seats;
  GrantScheduler& scheduler = *devices_[place.device].scheduler;
  scheduler.SetShare(*session.tenant, tenants_[*session.tenant].share);
  Status status =
      scheduler.Join({NumberOf(id, slot), id, *session.tenant, key}, session.share.slot(slot), session.bell.get());
  if (status.ok()) {
    session.seats[slot] = key;
  } else {
    LeavePlace(key);
  }
  return status;
}

// ---------------------------------------------------------------------------------------------
// Devices

DeviceSchedulers::Place& DeviceSchedulers::PlaceOf(const std::string& key) {
  const auto found = places_.find(key);
  if (found != places_.end()) return found->second;
  const size_t chosen = ChooseDevice(key);
  ++devices_[chosen].keys;
  return places_[key] = Place{chosen, 0};
}

size_t DeviceSchedulers::ChooseDevice(const std::string& key) {
  const auto free_with = [&](const auto& fits) {
    const auto at = std::find_if(devices_.begin(), devices_.end(),
                                 [&](const Device& device) { return device.keys == 0 && fits(device); });
    return static_cast<size_t>(at - devices_.begin());
  };
  // What is owed on a device is so still when its only tenant comes back.
  size_t chosen = free_with([&](const Device& device) { return device.key == key; });
  if (chosen == devices_.size()) chosen = free_with([](const Device& device) { return device.key.empty(); });
  if (chosen == devices_.size() && devices_.size() < kMostDevices) {
    // On failure nothing was added, and what there is has to do.
    if (const Status status = AddDevice(); !status.ok()) {
      chosen = devices_.size();
      Say(SchedulerNotice::Kind::kWarning, "device " + key + " has no scheduler of its own: " + status.text());
    }
  }
  if (chosen == devices_.size()) chosen = free_with([](const Device&) { return true; });
  if (chosen == devices_.size()) return std::hash<std::string>()(key) % devices_.size();
  devices_[chosen].key = key;
  return chosen;
}

void DeviceSchedulers::LeavePlace(const std::string& key) {
  const auto found = places_.find(key);
  if (--found->second.seats != 0) return;
  --devices_[found->second.device].keys;
  places_.erase(found);
}

// ---------------------------------------------------------------------------------------------
// What there is to tell

std::vector<SchedulerControl::Use> DeviceSchedulers::SessionUse(uint64_t id) const {
  std::vector<Use> uses;
  const auto found = sessions_.find(id);
  if (found == sessions_.end()) return uses;
  for (const auto& [slot, key] : found->second.seats) {
    uses.push_back(GrantScheduler::UseOf(found->second.share.slot(slot)));
    uses.back().device = key;
  }
  return uses;
}

void DeviceSchedulers::RecordGrants(bool on) {
  records_ = on;
  for (const Device& device : devices_) device.scheduler->RecordGrants(on);
}

SessionGrants DeviceSchedulers::TakeGrants() {
  SessionGrants all;
  for (const Device& device : devices_) {
    SessionGrants some = device.scheduler->TakeGrants();
    all.lost += some.lost;
    std::move(some.grants.begin(), some.grants.end(), std::back_inserter(all.grants));
  }
  return all;
}

void DeviceSchedulers::Say(SchedulerNotice::Kind kind, std::string text, std::vector<uint64_t> sessions) {
  said_.push_back({kind, std::move(text), std::move(sessions)});
}

std::vector<SchedulerNotice> DeviceSchedulers::TakeNotices() {
  epoll_event events[16];
  const int count = ::epoll_wait(news_.get(), events, 16, 0);
  for (int i = 0; i < count; ++i) {
    if (events[i].data.u64 != kDevice) OnAsk(events[i].data.u64);
  }
  std::vector<SchedulerNotice> notices = std::exchange(said_, {});
  const bool several = devices_.size() > 1;
  for (const Device& device : devices_) {
    for (SchedulerNotice& notice : device.scheduler->TakeNotices()) {
      if (several) notice.text = "device " + device.key + ": " + notice.text;
      notices.push_back(std::move(notice));
    }
  }
  FollowEjections();
  return notices;
}

void DeviceSchedulers::FollowEjections() {
  const std::string fallback(scheduler::BuiltinPolicies().front().name);
  bool ejected = false;
  for (Device& device : devices_) {
    const uint64_t count = device.scheduler->EjectedPolicies().count;
    const bool more = std::exchange(device.ejections, count) != count;
    // Another one may have been set since.
    ejected = ejected || (more && device.scheduler->Policy() == fallback);
  }
  if (!ejected) return;
  settings_.policy = fallback;
  for (const Device& device : devices_) {
    if (device.scheduler->Policy() != settings_.policy) (void)device.scheduler->SetPolicy(settings_.policy);
  }
}

}  // namespace hawser::server
