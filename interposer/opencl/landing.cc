// SPDX-License-Identifier: Apache-2.0
#include "interposer/opencl/landing.h"

#include <algorithm>

#include "interposer/opencl/entry.h"

namespace hawser::ocl {

LandingBook& LandingBook::Get() {
  static LandingBook* book = new LandingBook;
  return *book;
}

std::shared_ptr<Landing> LandingBook::Open(cl_command_queue queue, bool follows_event) {
  auto landing = std::make_shared<Landing>();
  landing->session = queue->session;
  landing->queue = queue;
  landing->follows_event = follows_event;
  std::lock_guard lock(mutex_);
  landing->serial = next_serial_.fetch_add(1, std::memory_order_acq_rel);
  open_.push_back(landing);
  count_.store(open_.size(), std::memory_order_release);
  return landing;
}

void LandingBook::Sent(Landing& landing, uint64_t ordinal) {
  std::lock_guard lock(mutex_);
  landing.ordinal = ordinal;
}

std::vector<cl_event> LandingBook::Land(const std::shared_ptr<Landing>& landing, cl_int failure) {
  std::vector<cl_event> free;
  std::lock_guard lock(mutex_);
  if (landing->landed) return free;
  landing->landed = true;
  landing->failure = failure;
  open_.erase(std::remove(open_.begin(), open_.end(), landing), open_.end());
  count_.store(open_.size(), std::memory_order_release);
  for (cl_event event : landing->held) {
    if (--event->blockers == 0) {
      free.push_back(event);
    } else {
      DropUse(event);  // Another landing holds one too.
    }
  }
  landing->held.clear();
  return free;
}

bool LandingBook::Hold(cl_event event) {
  if (event->landing == nullptr && Empty()) return false;
  std::lock_guard lock(mutex_);
  Landing* own = event->landing.get();
  if (own != nullptr) own->announced = true;
  const bool ordered = event->queue != nullptr && !event->queue->out_of_order();
  for (const auto& landing : open_) {
    const bool is_own = landing.get() == own;
    if (is_own && landing->follows_event) continue;
    const bool earlier =
        ordered && landing->queue == event->queue && landing->ordinal != 0 && landing->ordinal < event->queue_position;
    if (landing->session != event->session || (!is_own && !landing->announced && !earlier)) continue;
    landing->held.push_back(Use(event));
    ++event->blockers;
  }
  return event->blockers != 0;
}

bool LandingBook::Clear(cl_command_queue queue, uint64_t ordinal, uint64_t mark) {
  if (Empty()) return true;
  std::lock_guard lock(mutex_);
  return std::none_of(open_.begin(), open_.end(), [&](const auto& landing) {
    return (landing->queue == queue && landing->ordinal != 0 && landing->ordinal <= ordinal) ||
           (landing->session == queue->session && landing->announced && landing->serial < mark);
  });
}

}  // namespace hawser::ocl
