// SPDX-License-Identifier: Apache-2.0
// What a worker offers its backend, for a guest that is not there: answers are kept for a look, data from the guest
// comes late or never, data for it is read to its last byte.
#ifndef HAWSER_TESTS_HOSTILE_SERVICES_H_
#define HAWSER_TESTS_HOSTILE_SERVICES_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "server/worker/services.h"
#include "tests/hostile/random_values.h"

namespace hawser::hostile {

struct Answer {
  uint16_t opcode = 0;
  uint64_t seq = 0;
  std::vector<std::byte> payload;
};

class KeptReplies final : public server::Replies {
 public:
  void Flush() override {}
  /// What came since the last time.
  std::vector<Answer> Take() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return std::exchange(answers_, {});
  }

 protected:
  void SendEncoded(uint16_t opcode, uint64_t seq, size_t size, bool, EncodeFunction encode,
                   const void* message) override {
    Answer answer{opcode, seq, std::vector<std::byte>(size)};
    wire::Writer writer(answer.payload.data(), size);
    encode(message, writer);
    const std::lock_guard<std::mutex> lock(mutex_);
    answers_.push_back(std::move(answer));
  }

 private:
  std::mutex mutex_;
  std::vector<Answer> answers_;
};

/// As the worker's receiver: names are used once, sizes are bounded.
class LateData final : public server::BulkReceiver {
 public:
  static constexpr uint64_t kLimit = 64u << 20;

  bool Expect(uint64_t transfer, uint64_t size, std::byte* target, std::function<void(int32_t)> done) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (size > kLimit || waiting_.count(transfer) != 0) return false;
    waiting_.emplace(transfer, Waiting{size, target, std::move(done)});
    return true;
  }
  bool Drop(uint64_t, uint64_t) override { return true; }
  void SetTarget(uint64_t transfer, std::byte* target) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (const auto at = waiting_.find(transfer); at != waiting_.end()) at->second.target = target;
  }
  int32_t Receive(uint64_t, uint64_t size, std::byte* target) override {
    if (size > kLimit) return -5;
    if (size != 0) std::memset(target, 7, size);
    return 0;
  }
  /// The data of one transfer comes, or is said not to come.
  void Deliver(RandomValues& values) {
    std::function<void(int32_t)> done;
    int32_t status = 0;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (waiting_.empty()) return;
      auto at = waiting_.begin();
      std::advance(at, values.Below(waiting_.size()));
      if (at->second.target == nullptr || values.Chance(15)) {
        status = -5;
      } else if (at->second.size != 0) {
        std::memset(at->second.target, 9, at->second.size);
      }
      done = std::move(at->second.done);
      waiting_.erase(at);
    }
    done(status);
  }

 private:
  struct Waiting {
    uint64_t size;
    std::byte* target;
    std::function<void(int32_t)> done;
  };
  std::mutex mutex_;
  std::map<uint64_t, Waiting> waiting_;
};

class ReadData final : public server::BulkSender {
 public:
  void Send(uint64_t, wire::Bytes data, std::function<void()> done) override {
    uint64_t sum = 0;
    for (const std::byte each : data) sum += std::to_integer<uint64_t>(each);
    [[maybe_unused]] volatile uint64_t keep = sum;  // The reads must happen.
    if (done) done();
  }
  void Abort(uint64_t, int32_t) override {}
};

}  // namespace hawser::hostile

#endif  // HAWSER_TESTS_HOSTILE_SERVICES_H_
