// SPDX-License-Identifier: Apache-2.0
#include "server/backends/cuda/deferral.h"

#include <utility>

namespace hawser::server::cuda_backend {

using Kind = Footprint::Kind;

void Deferral::Blocked::Add(const Footprint& footprint) {
  if (footprint.kind == Kind::kFree) return;
  any_ = true;
  frees_ = frees_ || (footprint.frees && footprint.kind == Kind::kStream);
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

bool Deferral::Blocked::Hits(const Footprint& footprint) const {
  if (footprint.kind == Kind::kFree || !any_) return false;
  if (everything_ || footprint.kind == Kind::kEverything) return true;
  if (footprint.kind == Kind::kCreation) return footprint.frees && frees_;
  for (const wire::Id event : {footprint.event, footprint.second_event}) {
    if (Has(changed_events_, event) || (footprint.changes_event && Has(awaited_events_, event))) return true;
  }
  if (footprint.kind == Kind::kContext) return Has(contexts_, footprint.context);
  if (footprint.kind != Kind::kStream) return false;
  if (!footprint.stream) return Has(legacy_, footprint.context) || Has(blocking_, footprint.context);
  return Has(streams_, footprint.stream) || (!footprint.nonblocking && Has(legacy_, footprint.context));
}

void Deferral::Hold(const Footprint& stream) {
  held_[KeyOf(stream.context, stream.stream)] = stream;
  blocked_.Add(stream);
}

bool Deferral::Holds(wire::Id context, wire::Id stream) const { return held_.count(KeyOf(context, stream)) != 0; }

bool Deferral::Release(wire::Id context, wire::Id stream) { return held_.erase(KeyOf(context, stream)) != 0; }

void Deferral::Push(DeferredFrame frame) {
  blocked_.Add(frame.footprint);
  bytes_ += frame.payload.size();
  frames_.push_back(std::move(frame));
}

void Deferral::Run(const std::function<void(DeferredFrame&)>& execute) {
  blocked_ = Blocked();
  for (const auto& [key, stream] : held_) blocked_.Add(stream);
  std::deque<DeferredFrame> waiting = std::exchange(frames_, {});
  bytes_ = 0;
  for (DeferredFrame& frame : waiting) {
    if (blocked_.Hits(frame.footprint)) {
      Push(std::move(frame));
    } else {
      execute(frame);  // It may hold a stream, and then blocks those behind it.
    }
  }
}

}  // namespace hawser::server::cuda_backend
