// SPDX-License-Identifier: Apache-2.0
#include "interposer/cuda/host_functions.h"

#include <map>
#include <utility>
#include <vector>

#include "interposer/core/log.h"
#include "interposer/cuda/capture.h"
#include "interposer/cuda/entry.h"
#include "interposer/cuda/graph.h"
#include "interposer/cuda/mirror.h"

namespace hawser::cu {

HostFunctions& HostFunctions::Get() {
  static auto* functions = new HostFunctions;
  return *functions;
}

uint64_t HostFunctions::Add(std::function<void(CUresult)> function, Landings before, Calls calls) {
  guest::Session* session = Client::Get().session();
  uint64_t name;
  {
    std::lock_guard lock(mutex_);
    name = next_++;
    entries_[name] = std::make_shared<Entry>(Entry{std::move(function), std::move(before), calls, session});
    if (!IsNode(calls)) pending_.fetch_add(1, std::memory_order_relaxed);
  }
  // Somebody must hear the server although no thread of the application waits.
  session->AddListener();
  return name;
}

CUresult HostFunctions::Enqueue(StreamCommand& command, std::function<void(CUresult)> function, Landings before,
                                Calls calls) {
  cuda::EnqueueHostFunction message;
  message.callback = Add(std::move(function), std::move(before), calls);
  message.always = calls == Calls::kAlways || calls == Calls::kOurs ? 1 : 0;
  const CUresult error = command.Send(message);
  if (error != CUDA_SUCCESS) {
    Forget(message.callback);
  } else if (IsNode(calls)) {
    const std::shared_ptr<Capture> capture = Captures::Of(command.stream());
    if (capture == nullptr) return error;
    std::lock_guard lock(capture->graph->mutex);
    capture->graph->host_functions.push_back(std::make_shared<const GraphFunction>(message.callback));
  } else if (message.always != 0) {
    Sent(message.callback);
  }
  return error;
}

void HostFunctions::Sent(uint64_t callback) {
  std::lock_guard lock(mutex_);
  const auto found = entries_.find(callback);
  if (found == entries_.end()) return;  // It has run already.
  found->second->sent = true;
  // Abandon() may have been before, and left it to us.
  if (!found->second->session->lost() || found->second->asked) return;
  Tell(found->second);
  pending_.fetch_sub(1, std::memory_order_relaxed);
  entries_.erase(found);
}

void HostFunctions::Forget(uint64_t callback) {
  decltype(entries_)::node_type forgotten;  // What it keeps ends without the lock: that may be functions, too.
  {
    std::lock_guard lock(mutex_);
    forgotten = entries_.extract(callback);
    if (!forgotten.empty() && !IsNode(forgotten.mapped()->calls)) pending_.fetch_sub(1, std::memory_order_relaxed);
  }
  if (!forgotten.empty()) Client::Get().session()->RemoveListener();
}

void HostFunctions::SetMemory(uint64_t callback, std::shared_ptr<const FunctionMemory> memory, wire::Id executable) {
  std::lock_guard lock(mutex_);
  const auto found = entries_.find(callback);
  if (found == entries_.end()) return;
  found->second->memory.swap(memory);  // What was there ends without the lock.
  found->second->executable = executable;
}

bool HostFunctions::HasMemory(uint64_t callback, const FunctionMemory& memory, wire::Id* instead) {
  std::lock_guard lock(mutex_);
  *instead = {};
  const auto found = entries_.find(callback);
  if (found == entries_.end()) return true;  // Nobody asks for it any more.
  const Entry& entry = *found->second;
  if (entry.memory != nullptr && (entry.memory.get() == &memory || entry.memory->SamePieces(memory))) return true;
  *instead = entry.executable;
  return false;
}

void HostFunctions::Run(const cuda::RunHostFunction& notice) {
  std::shared_ptr<Entry> entry;
  std::shared_ptr<const FunctionMemory> memory;
  {
    std::lock_guard lock(mutex_);
    if (const auto found = entries_.find(notice.callback); found != entries_.end()) {
      entry = found->second;
      memory = entry->memory;
      entry->asked = true;
    }
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
  Post(*entry, [this, entry, memory, done, status, session] {
    (void)AwaitLandings(entry->before);
    (void)Mirrors::Get().AfterWait(/*mark=*/0, nullptr, nullptr);
    // Should the device's or the server's end keep the data from coming, later calls tell.
    if (memory != nullptr) (void)FetchFor(*memory);
    entry->function(status);
    if (memory != nullptr) (void)FillFor(*memory);
    if (entry->calls != Calls::kOurs) (void)Mirrors::Get().AfterFunction();  // Those write nothing of the program's.
    session->Send(done);
    session->Flush();
    if (!IsNode(entry->calls)) Forget(done.callback);
  });
}

void HostFunctions::Abandon() {
  std::vector<std::shared_ptr<Entry>> forgotten;  // They end without the lock.
  std::lock_guard lock(mutex_);
  std::map<uint64_t, std::shared_ptr<Entry>> told;  // In the order in which they were enqueued.
  for (auto entry = entries_.begin(); entry != entries_.end();) {
    const auto& [name, what] = *entry;
    // What is being sent just now returns an error to its caller, or becomes Sent().
    if (MustRun(*what) && !what->sent) {
      ++entry;
      continue;
    }
    if (MustRun(*what) && !what->asked) told[name] = what;
    if (!IsNode(what->calls)) pending_.fetch_sub(1, std::memory_order_relaxed);
    forgotten.push_back(what);
    entry = entries_.erase(entry);
  }
  for (const auto& [name, entry] : told) Tell(entry);
}

void HostFunctions::Post(const Entry& entry, std::function<void()> run) {
  if (entry.calls == Calls::kOurs || entry.calls == Calls::kOursOften) {
    entry.session->PostChore(std::move(run));
  } else {
    entry.session->PostCallback(std::move(run));
  }
}

void HostFunctions::Tell(const std::shared_ptr<Entry>& entry) {
  Post(*entry, [entry] { entry->function(Client::Get().Lost()); });
}

}  // namespace hawser::cu
