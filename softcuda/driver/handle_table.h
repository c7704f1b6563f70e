// SPDX-License-Identifier: Apache-2.0
// Handles that programs hold: numbers that look like pointers, are never used twice, and are looked up, so that a
// handle of a destroyed object, of another kind or made up is told from a live one.
//
// Threads: any; a reader-writer lock, held for the look-up only.
#ifndef HAWSER_SOFTCUDA_DRIVER_HANDLE_TABLE_H_
#define HAWSER_SOFTCUDA_DRIVER_HANDLE_TABLE_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>
#include <utility>
#include <vector>

namespace hawser::soft {

/// A number that no other handle of the process has.
inline uint64_t NextHandle() {
  static std::atomic<uint64_t> next{0x1000};
  return next.fetch_add(1, std::memory_order_relaxed) * 16;
}

/// The number in a CUstream, CUevent, ...
template <typename H>
uint64_t Number(H handle) {
  if constexpr (std::is_pointer_v<H>) {
    return reinterpret_cast<uint64_t>(handle);
  } else {
    return static_cast<uint64_t>(handle);
  }
}

/// T has a member `handle` (uint64_t), which Add() sets.
template <typename T>
class HandleTable {
 public:
  uint64_t Add(std::shared_ptr<T> object) {
    const uint64_t handle = NextHandle();
    object->handle = handle;
    const std::unique_lock lock(mutex_);
    objects_.emplace(handle, std::move(object));
    return handle;
  }
  /// Null when there is none.
  template <typename H>
  std::shared_ptr<T> Find(H handle) const {
    const std::shared_lock lock(mutex_);
    const auto found = objects_.find(Number(handle));
    return found == objects_.end() ? nullptr : found->second;
  }
  template <typename H>
  std::shared_ptr<T> Remove(H handle) {
    const std::unique_lock lock(mutex_);
    const auto found = objects_.find(Number(handle));
    if (found == objects_.end()) return nullptr;
    std::shared_ptr<T> object = std::move(found->second);
    objects_.erase(found);
    return object;
  }
  std::vector<std::shared_ptr<T>> All() const {
    std::vector<std::shared_ptr<T>> all;
    const std::shared_lock lock(mutex_);
    all.reserve(objects_.size());
    for (const auto& [handle, object] : objects_) all.push_back(object);
    return all;
  }
  /// Takes out all for which `predicate` holds.
  template <typename P>
  std::vector<std::shared_ptr<T>> RemoveIf(P predicate) {
    std::vector<std::shared_ptr<T>> removed;
    const std::unique_lock lock(mutex_);
    for (auto at = objects_.begin(); at != objects_.end();) {
      if (predicate(*at->second)) {
        removed.push_back(std::move(at->second));
        at = objects_.erase(at);
      } else {
        ++at;
      }
    }
    return removed;
  }

 private:
  mutable std::shared_mutex mutex_;
  std::unordered_map<uint64_t, std::shared_ptr<T>> objects_;
};

}  // namespace hawser::soft

#endif  // HAWSER_SOFTCUDA_DRIVER_HANDLE_TABLE_H_
