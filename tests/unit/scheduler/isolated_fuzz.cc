// SPDX-License-Identifier: Apache-2.0
// Whatever a policy's process answers: the input is its page, answer after answer.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "scheduler/core/scheduler.h"
#include "scheduler/isolated/isolated_policy.h"

namespace {

using namespace hawser::scheduler;  // NOLINT: a program of one file.
using hawser::wire::Code;
using hawser::wire::Deadline;
using hawser::wire::Result;
using hawser::wire::Status;

struct Input {
  const uint8_t* data;
  size_t size;

  size_t Take(void* to, size_t most) {
    const size_t taken = std::min(size, most);
    if (taken != 0) std::memcpy(to, data, taken);
    data += taken;
    size -= taken;
    return taken;
  }
};

/// The first byte says whether an answer is taken whole from the input, or is a good one of which a byte is changed.
class FuzzedLink : public PolicyLink {
 public:
  explicit FuzzedLink(Input& input) : input_(input) {}

  RequestPage& page() override { return *page_; }
  Status Exchange(const Deadline&, Reply* reply) override {
    uint8_t how = 0;
    if (killed_) std::abort();  // Nothing is asked after something was wrong.
    if (input_.Take(&how, 1) == 0) return Status(Code::kClosed, "its process ended");
    *reply = {};
    reply->answer = Answer::kDone;
    reply->callbacks = UINT64_MAX;
    reply->decision_size = sizeof(hawser_decision);
    for (uint32_t i = 0; i < page_->request.tenants && reply->tenant == 0; ++i) {
      if (page_->tenants[i].has_work != 0) reply->tenant = i + 1;
    }
    uint8_t change[2] = {};
    if (how % 4 == 1) {
      input_.Take(reply, sizeof(*reply));
    } else if (how % 4 == 2 && input_.Take(change, 2) == 2) {
      reinterpret_cast<uint8_t*>(reply)[change[0] % sizeof(*reply)] = change[1];
    }
    return {};
  }
  std::string Text(uint32_t size) override {
    if (size > kMostReplyText) std::abort();
    std::string text(size, 'x');
    input_.Take(text.data(), std::min<size_t>(text.size(), 16));
    return text;
  }
  uint64_t CpuNs() override { return 0; }
  void Kill() override { killed_ = true; }

 private:
  Input& input_;
  bool killed_ = false;
  std::unique_ptr<RequestPage> page_ = std::make_unique<RequestPage>();
};

class FuzzedPlace : public PolicyPlace {
 public:
  explicit FuzzedPlace(Input& input) : input_(input) {}
  Result<std::unique_ptr<PolicyRun>> Begin(const hawser_host& host) override {
    auto run = std::make_unique<IsolatedPolicy>(std::make_unique<FuzzedLink>(input_), host, std::chrono::seconds(1));
    if (Status s = run->Begin("fuzzed"); !s.ok()) return s;
    return std::unique_ptr<PolicyRun>(std::move(run));
  }

 private:
  Input& input_;
};

class Sink : public GrantSink {
 public:
  void Give(TenantId tenant, const Grant&) override { holder = tenant; }
  void Revoke(TenantId) override {}
  void Stage(TenantId) override {}
  TenantId holder = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Input input{data, size};
  Sink sink;
  SchedulerOptions options;
  options.policy.callback_cpu_ns = options.policy.callback_wall_ns = 0;
  Scheduler scheduler(options, sink, {});
  uint64_t now = 1'000'000'000;
  if (!scheduler.Use(PolicyLibrary::Elsewhere("fuzzed", std::make_shared<FuzzedPlace>(input)), now).ok()) return 0;
  WorkerFacts facts;
  TenantId ids[3];
  for (TenantId& id : ids) id = scheduler.Add({.name = "t"}, now);
  for (int step = 0; step < 50; ++step) {
    now += 1'000'000;
    const TenantId id = ids[step % 3];
    facts.used_ns += 500'000;
    if (scheduler.next_wake_ns() <= now) scheduler.Advance(now);
    scheduler.Runnable(id, now);
    if (sink.holder != 0) {
      const TenantId holder = std::exchange(sink.holder, 0);
      scheduler.Facts(holder, facts, now);
      scheduler.Idle(holder, now);
      scheduler.Drained(holder, now);
    }
    if (input.size == 0 && step > 10) break;
  }
  (void)scheduler.policy().Dump();
  return 0;
}
