// SPDX-License-Identifier: Apache-2.0
#include "interposer/cuda/object.h"

namespace hawser::cu {

Registry& Registry::Get() {
  static auto* registry = new Registry;
  return *registry;
}

void Registry::Add(Object* object) {
  if (!object->id) return;
  std::lock_guard lock(mutex_);
  alive_[object->id] = object;
}

void Registry::Bury(Object* object) {
  Object* old = nullptr;
  {
    std::lock_guard lock(mutex_);
    if (const auto found = alive_.find(object->id); found != alive_.end() && found->second == object) {
      alive_.erase(found);
    }
    object->kind.store(Kind::kDestroyed, std::memory_order_relaxed);
    buried_.push_back(object);
    if (buried_.size() > kKept) {
      old = buried_.front();
      buried_.pop_front();
    }
  }
  delete old;
}

void Registry::With(wire::Id id, const std::function<void(Object&)>& function) {
  std::lock_guard lock(mutex_);
  if (const auto found = alive_.find(id); found != alive_.end()) function(*found->second);
}

void Registry::ForEach(const std::function<void(Object&)>& function) {
  std::lock_guard lock(mutex_);
  for (const auto& [id, object] : alive_) function(*object);
}

}  // namespace hawser::cu
