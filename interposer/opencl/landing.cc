// SPDX-License-Identifier: Apache-2.0
#include "interposer/opencl/landing.h"

#include <algorithm>
#include <utility>

#include "interposer/opencl/entry.h"

namespace hawser::ocl {
namespace {

bool IsLanded(const std::shared_ptr<Landing>& landing) { return landing->landed.load(std::memory_order_acquire); }

void Prune(Landings& landings) {
  landings.erase(std::remove_if(landings.begin(), landings.end(), &IsLanded), landings.end());
}

void Add(Landings& to, const std::shared_ptr<Landing>& landing) {
  if (landing == nullptr || IsLanded(landing)) return;
  if (std::find(to.begin(), to.end(), landing) == to.end()) to.push_back(landing);
}

void AddAll(Landings& to, const Landings& from) {
  for (const auto& landing : from) Add(to, landing);
}

bool WaitsForAll(cl_command_type type) { return type == CL_COMMAND_MARKER || type == CL_COMMAND_BARRIER; }

}  // namespace

LandingBook& LandingBook::Get() {
  static LandingBook* book = new LandingBook;
  return *book;
}

std::shared_ptr<Landing> LandingBook::Open(const void* memory, size_t size) {
  count_.fetch_add(1, std::memory_order_acq_rel);
  return std::make_shared<Landing>(memory, size);
}

std::vector<cl_event> LandingBook::Land(const std::shared_ptr<Landing>& landing, cl_int failure) {
  std::vector<cl_event> free;
  std::vector<std::shared_ptr<AfterLandings>> ready;
  std::unique_lock lock(mutex_);
  if (IsLanded(landing)) return free;
  landing->failure.store(failure, std::memory_order_relaxed);
  landing->landed.store(true, std::memory_order_release);
  count_.fetch_sub(1, std::memory_order_acq_rel);
  for (cl_event event : std::exchange(landing->held, {})) {
    if (--event->blockers == 0) {
      free.push_back(event);
    } else {
      DropUse(event);  // Another landing holds one too.
    }
  }
  for (auto& then : std::exchange(landing->then, {})) {
    if (--then->missing == 0) ready.push_back(std::move(then));
  }
  lock.unlock();
  for (const auto& then : ready) then->call();
  return free;
}

Landings LandingBook::Before(cl_command_queue queue, cl_command_type type, cl_uint count, const cl_event* wait_list) {
  Landings before;
  if (Empty()) return before;
  std::lock_guard lock(mutex_);
  Prune(queue->landings);
  Prune(queue->ordered_landings);
  // A marker or barrier without a wait list comes after everything; in an in-order queue each command does.
  const bool all = !queue->out_of_order() || (WaitsForAll(type) && count == 0);
  AddAll(before, all ? queue->landings : queue->ordered_landings);
  for (cl_uint i = 0; i < count; ++i) {
    Add(before, wait_list[i]->landing);
    AddAll(before, wait_list[i]->after);
  }
  return before;
}

void LandingBook::Sent(cl_command_queue queue, cl_command_type type, const Landings& before,
                       std::shared_ptr<Landing> own) {
  if (before.empty() && own == nullptr) return;
  std::lock_guard lock(mutex_);
  AddAll(queue->landings, before);
  Add(queue->landings, own);
  if (queue->out_of_order() && type == CL_COMMAND_BARRIER) AddAll(queue->ordered_landings, before);
}

Landings LandingBook::Of(cl_command_queue queue) {
  if (Empty()) return {};
  std::lock_guard lock(mutex_);
  Prune(queue->landings);
  return queue->landings;
}

bool LandingBook::Hold(cl_event event) {
  if (Empty()) return false;
  std::lock_guard lock(mutex_);
  Landings blocking = event->after;  // Kept: commands that wait for a held event come after these too.
  if (event->landing != nullptr) blocking.push_back(event->landing);
  for (const auto& landing : blocking) {
    if (IsLanded(landing)) continue;
    landing->held.push_back(Use(event));
    ++event->blockers;
  }
  return event->blockers != 0;
}

Landings LandingBook::Overlapping(const Landings& landings, const void* memory, size_t size) {
  const auto begin = reinterpret_cast<uintptr_t>(memory);
  Landings found;
  if (size == 0) return found;
  for (const auto& landing : landings) {
    if (landing->begin < begin + size && begin < landing->end && !IsLanded(landing)) found.push_back(landing);
  }
  return found;
}

void LandingBook::Then(const Landings& landings, std::function<void()> call) {
  const auto then = std::make_shared<AfterLandings>(AfterLandings{0, std::move(call)});
  {
    std::lock_guard lock(mutex_);
    for (const auto& landing : landings) {
      if (IsLanded(landing)) continue;
      landing->then.push_back(then);
      ++then->missing;
    }
    if (then->missing != 0) return;
  }
  then->call();
}

bool LandingBook::Landed(const Landings& landings) { return std::all_of(landings.begin(), landings.end(), &IsLanded); }

}  // namespace hawser::ocl
