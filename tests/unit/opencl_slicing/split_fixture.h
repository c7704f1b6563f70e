// SPDX-License-Identifier: Apache-2.0
// Sessions whose launches pass a gate in the test's hands, for tests of split launches.
#ifndef HAWSER_TESTS_UNIT_OPENCL_SLICING_SPLIT_FIXTURE_H_
#define HAWSER_TESTS_UNIT_OPENCL_SLICING_SPLIT_FIXTURE_H_

#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/worker/launch_gate.h"
#include "tests/unit/backend_opencl/session.h"

namespace hawser::server::ocl {

/// Lets units in as a test says.
class TestGate final : public LaunchGate {
 public:
  explicit TestGate(uint64_t unit_ns = 0) : unit_ns_(unit_ns) {}

  uint64_t UnitNs() const override { return unit_ns_; }
  uint64_t PieceNs(uint64_t grain_ns) const override {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (first_grain_ns_ == 0) first_grain_ns_ = grain_ns;
    if (grants_piece_ != 0) return grants_piece_;
    return pieces_.empty() ? unit_ns_ : pieces_[static_cast<size_t>(entered_) % pieces_.size()];
  }
  uint32_t Tenants() const override { return 2; }
  bool TryEnter(uint64_t estimated_ns) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!open_) return false;
    Note(estimated_ns);
    return true;
  }
  bool Enter(uint64_t estimated_ns) override {
    std::unique_lock<std::mutex> lock(mutex_);
    ++waiting_;
    changed_.notify_all();
    changed_.wait(lock, [&] { return cancelled_ || open_ || permits_ > 0; });
    --waiting_;
    if (cancelled_) return false;
    if (!open_) --permits_;
    Note(estimated_ns);
    return true;
  }
  bool EnterPart(uint64_t* estimated_ns, const Resize& resize) override {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      grants_piece_ = piece_of_grant_;
    }
    *estimated_ns = resize();
    return Enter(*estimated_ns);
  }
  uint64_t EarlyNs() const override { return ends_ ? kHourNs : 0; }
  bool Ends() const override { return ends_; }
  void Leave(uint64_t estimated_ns, uint64_t measured_ns) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    ++left_;
    left_for_ += estimated_ns;
    measured_ += measured_ns;
    changed_.notify_all();
  }
  void Cancel() override {
    const std::lock_guard<std::mutex> lock(mutex_);
    cancelled_ = true;
    changed_.notify_all();
  }

  /// PieceNs(), by how many have entered, again and again; empty: UnitNs().
  void SetPieces(std::vector<uint64_t> pieces) {
    const std::lock_guard<std::mutex> lock(mutex_);
    pieces_ = std::move(pieces);
  }
  /// PieceNs() from when a part has waited for its grant; 0: as before.
  void SetPieceOfGrant(uint64_t piece_ns) {
    const std::lock_guard<std::mutex> lock(mutex_);
    piece_of_grant_ = piece_ns;
  }
  /// Each unit is the last of its grant, and always about to end: it leaves early when there is another one. While
  /// nothing runs.
  void SetEnds(bool ends) { ends_ = ends; }
  void SetOpen(bool open) {
    const std::lock_guard<std::mutex> lock(mutex_);
    open_ = open;
    changed_.notify_all();
  }
  void Permit(int count) {
    const std::lock_guard<std::mutex> lock(mutex_);
    permits_ += count;
    changed_.notify_all();
  }
  bool AwaitWaiting() {
    std::unique_lock<std::mutex> lock(mutex_);
    return changed_.wait_for(lock, kPatience, [&] { return waiting_ > 0 && permits_ == 0; });
  }
  bool AwaitEntered(int count) {
    std::unique_lock<std::mutex> lock(mutex_);
    return changed_.wait_for(lock, kPatience, [&] { return entered_ >= count; });
  }
  bool AwaitLeft(int count) {
    std::unique_lock<std::mutex> lock(mutex_);
    return changed_.wait_for(lock, kPatience, [&] { return left_ >= count; });
  }
  int entered() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return entered_;
  }
  int left() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return left_;
  }
  /// What those who left had asked for, all together.
  uint64_t left_for() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return left_for_;
  }
  uint64_t measured() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return measured_;
  }
  /// What the smallest part was said to take when that was said first; 0: it never was.
  uint64_t first_grain_ns() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return first_grain_ns_;
  }
  std::vector<uint64_t> estimates() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return estimates_;
  }

 private:
  void Note(uint64_t estimated_ns) {
    ++entered_;
    changed_.notify_all();
    estimates_.push_back(estimated_ns);
  }

  static constexpr uint64_t kHourNs = 3'600'000'000'000;
  const uint64_t unit_ns_;
  std::atomic<bool> ends_{false};
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = true, cancelled_ = false;
  int permits_ = 0, waiting_ = 0, entered_ = 0, left_ = 0;
  uint64_t measured_ = 0, left_for_ = 0, piece_of_grant_ = 0, grants_piece_ = 0;
  mutable uint64_t first_grain_ns_ = 0;
  std::vector<uint64_t> estimates_, pieces_;
};

/// Nobody else is there, but the session may be ahead of the device by a microsecond only.
class BoundedGate final : public LaunchGate {
 public:
  BoundedGate() { gate_.SetOpen(false); }
  TestGate& asked() { return gate_; }
  void Drain() { drain_(); }
  int begun() const { return begun_; }
  void Close() {
    unit_ns_ = kWhole;
    closed_();
  }

  bool BeginOpen() override {
    ++begun_;
    return true;
  }
  uint64_t OpenCapNs() const override { return 1000; }
  void SetDrain(std::function<void()> drain) override { drain_ = std::move(drain); }
  void SetClosed(std::function<void()> closed) override { closed_ = std::move(closed); }
  uint64_t UnitNs() const override { return unit_ns_; }
  uint32_t Tenants() const override { return 1; }
  bool TryEnter(uint64_t estimated_ns) override { return gate_.TryEnter(estimated_ns); }
  bool Enter(uint64_t estimated_ns) override { return gate_.Enter(estimated_ns); }
  void Leave(uint64_t estimated_ns, uint64_t measured_ns) override { gate_.Leave(estimated_ns, measured_ns); }
  void Cancel() override { gate_.Cancel(); }

 private:
  TestGate gate_{0};
  std::function<void()> drain_, closed_;
  std::atomic<uint64_t> unit_ns_{0};
  std::atomic<int> begun_{0};
};

inline constexpr std::string_view kSource = R"(
kernel void add(global int* a, int value) { a[get_global_id(0)] += value; }
kernel void sum(global int* a, global int* b) { b[get_global_id(0)] += a[get_global_id(0)] * 2; }
kernel void spin(global int* a) { while (atomic_add(a, 0) < 0) ; }
kernel void later(global int* flag, global int* out) {  // The first group waits for the second, by plain loads.
  size_t at = get_global_id(0);
  int tries = 0;
  if (at >= 64) *flag = 7;
  do {
    out[at] = ++tries;
  } while (*flag == 0);
  out[at] = *flag;
}
kernel void slow(global int* a) {
  uint x = get_global_id(0) + 1;
  for (int i = 0; i < 1000000; ++i) x = (x ^ x << 13) * 0x2c1b3c6du ^ x >> 7;
  a[get_global_id(0)] = x | 1;
}
kernel void rounds(global int* a, int count) {
  uint x = get_global_id(0) + 1;
  for (int i = 0; i < count; ++i) x = (x ^ x << 13) * 0x2c1b3c6du ^ x >> 7;
  a[get_global_id(0)] = x | 1;
}
kernel void bound(global int* a, read_only image2d_t picture, sampler_t how) {
  a[get_global_id(0)] = read_imagei(picture, how, (int2)(0, 0)).x;
}
)";
inline constexpr size_t kCount = 1024;

class SplitLaunch : public testing::Test {
 protected:
  std::unique_ptr<Session> NewSession(LaunchGate* gate, const std::string& mode = "items=128") {
    ::setenv("HAWSER_OPENCL_SPLIT", mode.c_str(), 1);
    SessionOptions options;
    options.gate = gate;
    auto session = std::make_unique<Session>(options);
    program_ = session->Program(kSource);
    return session;
  }
  void TearDown() override {
    ::unsetenv("HAWSER_OPENCL_SPLIT");
    ::unsetenv("HAWSER_OPENCL_SPLIT_HISTORY");
  }
  Id Add(Session& session, Id buffer, int value) {
    const Id kernel = session.Kernel(program_, "add");
    EXPECT_EQ(session.SetBuffer(kernel, 0, buffer), CL_SUCCESS);
    EXPECT_EQ(session.SetValue(kernel, 1, value), CL_SUCCESS);
    return kernel;
  }
  /// In work-groups of 64.
  static int32_t LaunchGroups(Session& session, Id queue, Id kernel, uint64_t count, Id event = {}) {
    opencl::EnqueueNDRangeKernel launch;
    launch.queue = queue;
    launch.kernel = kernel;
    launch.work_dim = 1;
    const uint64_t local = 64;
    launch.global = wire::ArrayView<uint64_t>(&count, 1);
    launch.local = wire::ArrayView<uint64_t>(&local, 1);
    launch.event = event;
    return session.Do(launch);
  }
  static bool HasLog(Session& session, const std::string& begin) {
    const std::vector<std::string> log = session.Log();
    return std::any_of(log.begin(), log.end(), [&](const std::string& line) { return line.rfind(begin, 0) == 0; });
  }
  static Id NewEvent(Session& session) { return session.NewId(opencl::Handle::kEvent); }

  Id program_;
};

}  // namespace hawser::server::ocl

#endif  // HAWSER_TESTS_UNIT_OPENCL_SLICING_SPLIT_FIXTURE_H_
