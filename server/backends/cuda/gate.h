// SPDX-License-Identifier: Apache-2.0
// What waits until something outside of the device has happened: data of the guest has come, or the guest has run a
// function of a graph.
#ifndef HAWSER_SERVER_BACKENDS_CUDA_GATE_H_
#define HAWSER_SERVER_BACKENDS_CUDA_GATE_H_

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace hawser::server::cuda_backend {

/// Thread-safe. Opens once.
class Gate {
 public:
  void Open() {
    const std::lock_guard<std::mutex> lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  bool is_open() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return open_;
  }
  void Wait() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return open_; });
  }
  /// The same, but not for longer. False: it is shut.
  bool WaitFor(std::chrono::milliseconds longest) {
    std::unique_lock<std::mutex> lock(mutex_);
    return changed_.wait_for(lock, longest, [&] { return open_; });
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false;
};

/// All gates of a session by number, so that they can be opened when their context ends, and so that a driver that
/// calls late finds what it was given. Thread-safe.
class Gates {
 public:
  using Number = uint64_t;

  /// What a gate may be in the way of, besides its context: a stream by its number, or nothing that is known.
  static constexpr uint64_t kNoStream = UINT64_MAX;

  /// A number that no gate has or will have.
  Number NewNumber() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return next_++;
  }
  /// `context` groups them.
  std::pair<Number, std::shared_ptr<Gate>> New(const void* context, uint64_t stream = kNoStream) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const Number number = next_++;
    auto gate = std::make_shared<Gate>();
    gates_.emplace(number, Entry{context, stream, gate});
    return {number, gate};
  }
  /// The stream waits at one of them now.
  bool Holds(const void* context, uint64_t stream) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return std::any_of(gates_.begin(), gates_.end(), [&](const auto& each) {
      return each.second.context == context && each.second.stream == stream;
    });
  }
  std::shared_ptr<Gate> Find(Number number) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto at = gates_.find(number);
    return at == gates_.end() ? nullptr : at->second.gate;
  }
  /// False when there is none of that number.
  bool Open(Number number) {
    const std::shared_ptr<Gate> gate = Find(number);
    if (gate == nullptr) return false;
    gate->Open();
    return true;
  }
  void Forget(Number number) {
    const std::lock_guard<std::mutex> lock(mutex_);
    gates_.erase(number);
  }
  void OpenAll(const void* context) {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (auto& [number, entry] : gates_) {
      if (context == nullptr || entry.context == context) entry.gate->Open();
    }
  }
  size_t size() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return gates_.size();
  }

 private:
  struct Entry {
    const void* context = nullptr;
    uint64_t stream = kNoStream;
    std::shared_ptr<Gate> gate;
  };
  mutable std::mutex mutex_;
  Number next_ = 1;
  std::unordered_map<Number, Entry> gates_;
};

}  // namespace hawser::server::cuda_backend

#endif  // HAWSER_SERVER_BACKENDS_CUDA_GATE_H_
