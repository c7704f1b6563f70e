// SPDX-License-Identifier: Apache-2.0
#include "server/backends/cuda/deferral.h"

#include <algorithm>
#include <utility>

namespace hawser::server::cuda_backend {

using Kind = Footprint::Kind;

namespace {

bool Names(const Footprint& footprint, wire::Id event) {
  return footprint.event == event || footprint.second_event == event;
}

}  // namespace

void Deferral::Blocked::Add(const Footprint& footprint) {
  if (footprint.kind == Kind::kFree || footprint.asks || added_ == footprint) return;
  added_ = footprint;
  any_ = true;
  frees_ = frees_ || (footprint.frees && (footprint.kind == Kind::kStream || footprint.kind == Kind::kRelease));
  if (footprint.kind == Kind::kEverything) everything_ = true;
  if (footprint.kind == Kind::kStream) {
    contexts_.insert(footprint.context.raw());
    if (!footprint.stream) {
      legacy_.insert(footprint.context.raw());
    } else {
      streams_.insert(footprint.stream.raw());
      if (!footprint.nonblocking) blocking_.insert(footprint.context.raw());
    }
  }
  for (const wire::Id event : {footprint.event, footprint.second_event}) {
    if (event) (footprint.changes_event ? changed_events_ : awaited_events_).insert(event.raw());
  }
}

bool Deferral::Blocked::Finds(const Footprint& footprint) const {
  if (footprint.kind == Kind::kFree || !any_) return false;
  if (everything_ || footprint.kind == Kind::kEverything || footprint.kind == Kind::kRelease) return true;
  if (footprint.kind == Kind::kCreation) return footprint.frees && frees_;
  for (const wire::Id event : {footprint.event, footprint.second_event}) {
    if (Has(changed_events_, event) || (footprint.changes_event && Has(awaited_events_, event))) return true;
  }
  if (footprint.kind == Kind::kContext) return Has(contexts_, footprint.context);
  if (footprint.kind != Kind::kStream) return false;
  if (!footprint.stream) return Has(legacy_, footprint.context) || Has(blocking_, footprint.context);
  const bool alone = footprint.nonblocking || footprint.asks;
  return Has(streams_, footprint.stream) || (!alone && Has(legacy_, footprint.context));
}

Deferral::Ticket Deferral::Hold(const Footprint& stream, bool acts) {
  held_[next_] = {stream, acts, order_ != 0 ? order_ : next_order_++};
  blocked_.Add(stream);
  return next_++;
}

bool Deferral::ActsIn(wire::Id context, wire::Id stream) const {
  return std::any_of(held_.begin(), held_.end(), [&](const auto& each) {
    const Held& held = each.second;
    return held.acts && held.stream.context == context && held.stream.stream == stream;
  });
}

bool Deferral::Release(Ticket ticket) {
  const bool was = held_.erase(ticket) != 0;
  released_ = released_ || was;
  return was;
}

void Deferral::Push(DeferredFrame frame) {
  blocked_.Add(frame.footprint);
  frame.order = next_order_++;
  bytes_ += frame.payload.size() + kFrameBytes;
  frames_.push_back(std::make_unique<DeferredFrame>(std::move(frame)));
}

bool Deferral::CanDetach(wire::Id event) const {
  if (!event || frames_.size() > kMostDetached) return false;
  const auto held = [event](const auto& each) { return Names(each.second.stream, event); };
  const auto waits = [event](const auto& frame) { return Names(frame->footprint, event); };
  return std::none_of(held_.begin(), held_.end(), held) && std::any_of(frames_.begin(), frames_.end(), waits);
}

void Deferral::Detach(wire::Id event, const std::function<void(DeferredFrame&)>& detach) {
  const wire::Id nameless(UINT64_MAX - detached_++);
  for (const auto& frame : frames_) {
    if (!Names(frame->footprint, event)) continue;
    detach(*frame);
    for (wire::Id* name : {&frame->footprint.event, &frame->footprint.second_event}) {
      if (*name == event) *name = nameless;
    }
  }
  blocked_ = Blocked();
  for (const auto& [ticket, held] : held_) blocked_.Add(held.stream);
  for (const auto& frame : frames_) blocked_.Add(frame->footprint);
}

bool Deferral::Waits(const DeferredFrame& frame) const {
  const Footprint& footprint = frame.footprint;
  if (!blocked_.Hits(footprint)) return false;
  const bool all = footprint.kind == Kind::kEverything || footprint.kind == Kind::kRelease;
  if (!all && footprint.kind != Kind::kContext) return true;
  const auto of_this = [&](const Footprint& other) {
    return all || other.kind == Kind::kEverything || other.context == footprint.context ||
           (footprint.event && (other.event == footprint.event || other.second_event == footprint.event));
  };
  if (std::any_of(frames_.begin(), frames_.end(), [&](const auto& each) { return of_this(each->footprint); })) {
    return true;
  }
  return std::any_of(held_.begin(), held_.end(), [&](const auto& each) {
    const Held& held = each.second;
    return held.order < frame.order && of_this(held.stream);
  });
}

void Deferral::Run(const std::function<void(DeferredFrame&)>& execute) {
  if (!std::exchange(released_, false)) return;
  blocked_ = Blocked();
  for (const auto& [ticket, held] : held_) blocked_.Add(held.stream);
  std::deque<std::unique_ptr<DeferredFrame>> waiting = std::exchange(frames_, {});
  for (std::unique_ptr<DeferredFrame>& frame : waiting) {
    if (Waits(*frame)) {
      blocked_.NoteHit(frame->footprint);
      blocked_.Add(frame->footprint);
      frames_.push_back(std::move(frame));
    } else {
      bytes_ -= frame->payload.size() + kFrameBytes;
      order_ = frame->order;
      execute(*frame);  // It may hold a stream, and then blocks those behind it.
      order_ = 0;
      frame.reset();
    }
  }
}

}  // namespace hawser::server::cuda_backend
