// SPDX-License-Identifier: Apache-2.0
#include "interposer/cuda/host_functions.h"

#include <utility>

#include "interposer/core/log.h"
#include "interposer/cuda/entry.h"
#include "interposer/cuda/mirror.h"

namespace hawser::cu {

HostFunctions& HostFunctions::Get() {
  static auto* functions = new HostFunctions;
  return *functions;
}

uint64_t HostFunctions::Add(std::function<void(CUresult)> function, Landings before, bool often) {
  uint64_t name;
  {
    std::lock_guard lock(mutex_);
    name = next_++;
    entries_[name] = std::make_shared<Entry>(Entry{std::move(function), std::move(before), often});
    if (!often) pending_.fetch_add(1, std::memory_order_relaxed);
  }
  // Somebody must hear the server although no thread of the application waits.
  Client::Get().session()->AddListener();
  return name;
}

void HostFunctions::Forget(uint64_t callback) {
  bool known;
  {
    std::lock_guard lock(mutex_);
    const auto entry = entries_.find(callback);
    known = entry != entries_.end();
    if (known && !entry->second->often) pending_.fetch_sub(1, std::memory_order_relaxed);
    if (known) entries_.erase(entry);
  }
  if (known) Client::Get().session()->RemoveListener();
}

void HostFunctions::Run(const cuda::RunHostFunction& notice) {
  std::shared_ptr<Entry> entry;
  {
    std::lock_guard lock(mutex_);
    if (const auto found = entries_.find(notice.callback); found != entries_.end()) entry = found->second;
  }
  guest::Session* session = Client::Get().session();
  cuda::HostFunctionDone done;
  done.callback = notice.callback;
  done.run = notice.run;
  if (entry == nullptr) {
    guest::Log(guest::LogLevel::kError, "the server asks for host function %llu, which does not exist",
               static_cast<unsigned long long>(notice.callback));
    session->Send(done);
    session->Flush();
    return;
  }
  const auto status = static_cast<CUresult>(notice.status);
  session->PostCallback([this, entry, done, status, session] {
    (void)AwaitLandings(entry->before);
    (void)Mirrors::Get().AfterWait(/*mark=*/0, nullptr, nullptr);
    entry->function(status);
    session->Send(done);
    session->Flush();
    if (!entry->often) Forget(done.callback);
  });
}

void HostFunctions::Abandon() {
  std::lock_guard lock(mutex_);
  entries_.clear();
  pending_.store(0, std::memory_order_relaxed);
}

}  // namespace hawser::cu
