// SPDX-License-Identifier: Apache-2.0
#include "tests/hostile/guest.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <utility>

namespace hawser::hostile {
namespace {

/// No command may keep the executor for so long. Generous: sanitizers, and a machine with other things to do.
constexpr std::chrono::seconds kMostForOne{20};
constexpr int kMostCopies = 2;
/// Of all that may be sent so many are, then values are drawn anew: what was created meanwhile has a name.
constexpr size_t kBatch = 24;

}  // namespace

void Guest::Take(std::unique_ptr<server::SessionBackend> backend, bool heap) {
  backend_ = std::move(backend);
  server::Services services;
  services.replies = &replies_;
  services.bulk_in = &data_;
  services.bulk_out = &reader_;
  if (heap) services.heap = {heap_.data(), heap_.size(), -1};
  services.limits.staging_memory = 64u << 20;
  services.limits.device_memory = 256u << 20;
  services.limits.max_objects = 1000;
  services.log = [this](std::string_view, const std::string& text) {
    if (plan_.tells) std::printf("  log: %s\n", text.c_str());
  };
  services.drain_kernel_output = [] {};
  services.enable_kernel_output = [] {};
  if (plan_.seed % 2 != 0) services.launch_gates = new server::OneLaunchGate(*new MoodyGate(plan_.seed));
  server::SessionBackend::Later later;
  later.wake = [] {};
  later.report = [this](const wire::FrameHeader& header, const server::SessionBackend::Outcome& outcome,
                        const std::string&) {
    if (outcome.status != 0) (void)backend_->TakeFailure();
    if (plan_.tells) std::printf("  later: %llu: %d\n", static_cast<unsigned long long>(header.seq), outcome.status);
  };
  backend_->SetLater(later);
  backend_->SetServices(services);
}

void Guest::Run() {
  Begin();
  std::vector<proto::Seed> calls;
  for (int i = 0; i < plan_.commands; ++i) {
    if (calls.empty()) calls = Calls();
    const proto::Seed& call = calls.back();
    wire::FrameHeader header;
    std::memcpy(&header, call.frame.data(), sizeof(header));
    // Of exactly its size, so that whoever looks beyond is seen.
    const std::vector<std::byte> payload(call.frame.begin() + sizeof(header), call.frame.end());
    Send(call.name, header.opcode, payload);
    calls.pop_back();
  }
}

std::vector<proto::Seed> Guest::Calls() {
  std::vector<proto::Seed> calls;
  values_.Discard();
  // Each time with other values: new names are used once.
  for (int time = 0; time < kMostCopies; ++time) {
    proto::SeedSink sink(&values_);
    AddCalls(sink);
    for (const proto::Seed& seed : sink.seeds()) {
      if (Copies(seed) > time) calls.push_back(seed);
    }
  }
  std::shuffle(calls.begin(), calls.end(), random_);
  calls.resize(std::min(calls.size(), kBatch));
  return calls;
}

void Guest::Send(std::string_view name, uint16_t opcode, const std::vector<std::byte>& payload) {
  wire::FrameHeader header;
  header.size = static_cast<uint32_t>(payload.size());
  header.opcode = opcode;
  header.seq = ++seq_;
  const std::string text(name);
  if (plan_.tells) {
    std::printf("%llu: %s\n", static_cast<unsigned long long>(seq_), Text(opcode, payload).c_str());
    std::fflush(stdout);
  }
  std::string error;
  const auto begin = std::chrono::steady_clock::now();
  const server::SessionBackend::Outcome outcome = backend_->Execute(header, payload, &error);
  if (outcome.status != 0) (void)backend_->TakeFailure();
  values_.Sent(payload, outcome.status == 0 && !outcome.malformed);
  if (plan_.tells) {
    std::printf("  %s%s%d %s\n", outcome.malformed ? "malformed " : "", outcome.deferred ? "deferred " : "",
                outcome.status, error.c_str());
  }
  if (values_.Chance(50)) backend_->Resume();
  if (values_.Chance(20)) data_.Deliver(values_);
  if (std::chrono::steady_clock::now() - begin > kMostForOne) Stop(4, text + " kept the executor for too long");
  if (values_.Chance(2)) ::usleep(1000);
  HearAll();
}

void Guest::HearAll() {
  for (const Answer& answer : replies_.Take()) {
    answered_ = std::max(answered_, answer.seq);
    Hear(answer);
  }
}

void Guest::AwaitAnswer() {
  const uint64_t seq = seq_;
  for (int i = 0; i < 10'000 && answered_ < seq; ++i) {
    ::usleep(100);
    backend_->Resume();
    HearAll();
  }
}

void Guest::Stop(int status, const std::string& why) {
  std::printf("%s\n", why.c_str());
  std::fflush(stdout);
  ::_exit(status);
}

}  // namespace hawser::hostile
