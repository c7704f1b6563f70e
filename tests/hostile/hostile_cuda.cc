// SPDX-License-Identifier: Apache-2.0
// A guest that sends any commands in any order, to the CUDA backend over the software device: all of the description's,
// with values at random of which many name something that exists. A worker may refuse them or end the session; it must
// not crash, not hang, and no command may keep the executor. See sessions.h for the options.
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

#include <chrono>
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "proto/cuda/messages.h"
#include "proto/seeds.h"
#include "server/backends/cuda/backend.h"
#include "server/backends/cuda/driver_choice.h"
#include "tests/hostile/random_values.h"
#include "tests/hostile/services.h"
#include "tests/hostile/sessions.h"
#include "wire/sha256.h"

namespace hawser::hostile {
namespace {

using cuda::Handle;
using server::SessionBackend;

/// What add() is given is nonsense, and a context is of no use any more after a fault: so it rarely looks.
constexpr char kPtx[] = R"(
.version 7.8
.target sm_75
.address_size 64
.visible .global .align 8 .b8 table[64];
.visible .const .align 8 .b8 factors[64];
.visible .entry add(.param .u64 p, .param .u32 count, .param .u32 value)
{
  .reg .pred %q<2>;
  .reg .b32 %r<8>;
  .reg .b64 %d<5>;
  ld.param.u64 %d1, [p];
  ld.param.u32 %r1, [count];
  ld.param.u32 %r2, [value];
  mov.u32 %r3, %ctaid.x;
  mov.u32 %r4, %ntid.x;
  mov.u32 %r5, %tid.x;
  mad.lo.s32 %r6, %r3, %r4, %r5;
  setp.ge.u32 %q1, %r6, %r1;
  @%q1 bra DONE;
  and.b32 %r7, %r2, 31;
  setp.ne.u32 %q1, %r7, 0;
  @%q1 bra DONE;
  mul.wide.u32 %d2, %r6, 4;
  add.s64 %d3, %d1, %d2;
  ld.global.u32 %r7, [%d3];
  add.s32 %r7, %r7, %r2;
  st.global.u32 [%d3], %r7;
DONE:
  ret;
}
.visible .entry nothing()
{
  ret;
}
)";

/// No command may keep the executor for so long. Generous: sanitizers, and a machine with other things to do.
constexpr std::chrono::seconds kMostForOne{20};

class Guest {
 public:
  Guest(const Plan& plan, server::cuda_backend::ChosenDriver driver)
      : plan_(plan), values_(plan.seed), random_(plan.seed + 1), heap_(1u << 20) {
    settings_.tenant = "hostile";
    backend_ = std::make_unique<server::cuda_backend::CudaBackend>(std::move(driver), settings_,
                                                                   server::cuda_backend::AddressRanges());
    server::Services services;
    services.replies = &replies_;
    services.bulk_in = &data_;
    services.bulk_out = &reader_;
    // Memory in the heap takes another way than the driver's.
    if (plan.seed % 3 != 0) services.heap = {heap_.data(), heap_.size(), -1};
    services.limits.staging_memory = 64u << 20;
    services.limits.device_memory = 256u << 20;
    services.limits.max_objects = 1000;
    services.log = [this](std::string_view, const std::string& text) {
      if (plan_.tells) std::printf("  log: %s\n", text.c_str());
    };
    SessionBackend::Later later;
    later.wake = [] {};
    later.report = [this](const wire::FrameHeader& header, const SessionBackend::Outcome& outcome, const std::string&) {
      if (outcome.status != 0) (void)backend_->TakeFailure();
      if (plan_.tells) std::printf("  later: %llu: %d\n", static_cast<unsigned long long>(header.seq), outcome.status);
    };
    backend_->SetLater(later);
    backend_->SetServices(services);
    for (const Handle type :
         {Handle::kContext, Handle::kEvent, Handle::kModule, Handle::kFunction, Handle::kStream, Handle::kPool,
          Handle::kAllocation, Handle::kStaging, Handle::kArray, Handle::kMipmap, Handle::kGraph, Handle::kGraphExec,
          Handle::kNode})
      values_.types.push_back(static_cast<uint8_t>(type));
    values_.names = {"add", "nothing", "table", "factors"};
  }

  void Run() {
    Begin();
    std::vector<proto::Seed> calls;
    for (int i = 0; i < plan_.commands; ++i) {
      if (calls.empty()) calls = Calls();
      proto::Seed call = std::move(calls.back());
      calls.pop_back();
      Send(call.name, std::move(call.frame));
    }
  }

 private:
  /// All that there are, once, in any order.
  std::vector<proto::Seed> Calls() {
    proto::SeedSink sink(&values_);
    cuda::AddSeeds(sink);
    std::vector<proto::Seed> calls;
    for (const proto::Seed& seed : sink.seeds()) {
      // A stream that waits for a value in memory waits for ever here, and with it all that waits for the stream.
      if (seed.folder != "cuda_calls" || seed.name == "EnqueueStreamValues") continue;
      // These take away what most others need.
      const bool harms = seed.name == "ReleaseObject" || seed.name == "ResetPrimary" || seed.name == "CreateContext";
      if (harms && values_.Chance(85)) continue;
      // What creates, copies and launches is what others need.
      const bool often = seed.name.starts_with("Create") || seed.name.starts_with("Launch") || seed.name == "AddNode" ||
                         seed.name == "Memset" || seed.name == "GetFunction";
      calls.insert(calls.end(), often ? 2 : 1, seed);
    }
    std::shuffle(calls.begin(), calls.end(), random_);
    return calls;
  }

  [[noreturn]] static void Stop(int status, const std::string& why) {
    std::printf("%s\n", why.c_str());
    std::fflush(stdout);
    ::_exit(status);
  }

  wire::Id Known(Handle type) const { return wire::Id(static_cast<uint8_t>(type), 1, 1); }

  /// As an honest guest begins.
  void Begin() {
    cuda::CreateContext context;
    context.context = Known(Handle::kContext);
    context.primary = 1;
    Do("CreateContext", context);
    cuda::CreateStream stream;
    stream.stream = Known(Handle::kStream);
    stream.context = context.context;
    Do("CreateStream", stream);
    cuda::UploadImage upload;
    upload.data = wire::AsBytes(std::string_view(kPtx));
    upload.hash = wire::Sha256Of(upload.data);
    upload.size = upload.total = upload.data.size();
    Do("UploadImage", upload);
    cuda::ImageEntry entry;
    entry.form = 2;
    entry.kind = 1;
    entry.size = upload.size;
    entry.hash = upload.hash;
    cuda::LoadModule load;
    load.module = Known(Handle::kModule);
    load.context = context.context;
    load.entries = wire::ListView<cuda::ImageEntry>(std::span<const cuda::ImageEntry>(&entry, 1));
    Do("LoadModule", load);
    // The guest has its answer before it can ask for what is in it.
    const uint64_t loads = seq_;
    for (int i = 0; i < 10'000 && answered_ < loads; ++i) {
      ::usleep(100);
      backend_->Resume();
      for (const Answer& answer : replies_.Take()) Hear(answer);
    }
    uint32_t index = 0;
    for (const char* name : {"add", "nothing"}) {
      cuda::GetFunction get;
      get.function = wire::Id(static_cast<uint8_t>(Handle::kFunction), 1, ++index);
      get.module = load.module;
      get.name = name;
      Do("GetFunction", get);
    }
    for (const uint64_t size : {4096, 65536, 300000}) {
      cuda::Allocate allocate;
      allocate.context = context.context;
      allocate.size = size;
      Do("Allocate", allocate);
    }
    if (values_.addresses.empty()) Stop(3, "no memory: the session does not begin as it should");
    values_.addresses.push_back(0x1000);  // In nobody's memory; in the heap, pages are counted from 0.
  }

  template <typename Message>
  void Do(const char* name, const Message& message) {
    wire::FrameHeader header;
    header.size = static_cast<uint32_t>(message.SizeOf());
    header.opcode = static_cast<uint16_t>(cuda::OpcodeOf<Message>::value);
    std::vector<std::byte> frame(sizeof(header) + header.size);
    std::memcpy(frame.data(), &header, sizeof(header));
    wire::Writer writer(frame.data() + sizeof(header), header.size);
    message.Encode(writer);
    Send(name, std::move(frame));
  }

  /// One command, and what may happen beside it. One that is malformed ends a session, and changed nothing: here it goes
  /// on.
  void Send(const std::string& name, std::vector<std::byte> frame) {
    wire::FrameHeader header;
    std::memcpy(&header, frame.data(), sizeof(header));
    header.seq = ++seq_;
    header.flags = 0;
    // As the executor reads it: of exactly its size, so that whoever looks beyond is seen.
    const std::vector<std::byte> payload(frame.begin() + sizeof(header), frame.end());
    if (plan_.tells) std::printf("%llu: %s\n", static_cast<unsigned long long>(seq_), name.c_str()), std::fflush(stdout);
    std::string error;
    const auto begin = std::chrono::steady_clock::now();
    const SessionBackend::Outcome outcome = backend_->Execute(header, payload, &error);
    if (outcome.status != 0) (void)backend_->TakeFailure();
    if (plan_.tells) {
      std::printf("  %s%s%d %s\n", outcome.malformed ? "malformed " : "", outcome.deferred ? "deferred " : "",
                  outcome.status, error.c_str());
    }
    if (values_.Chance(50)) backend_->Resume();
    if (values_.Chance(20)) data_.Deliver(values_);
    if (values_.Chance(2)) ::usleep(1000);
    if (std::chrono::steady_clock::now() - begin > kMostForOne) {
      Stop(4, name + " kept the executor for too long");
    }
    for (const Answer& answer : replies_.Take()) Hear(answer);
  }

  void Hear(const Answer& answer) {
    answered_ = std::max(answered_, answer.seq);
    wire::Reader reader(answer.payload);
    if (answer.seq == 0) {
      cuda::RunHostFunction run;
      if (answer.opcode != static_cast<uint16_t>(cuda::OpcodeOf<cuda::RunHostFunction>::value)) return;
      (void)run.Decode(reader);
      cuda::HostFunctionDone done;
      done.callback = run.callback;
      done.run = run.run;
      Do("HostFunctionDone", done);
      return;
    }
    const auto is = [&](auto message) {
      return answer.opcode == static_cast<uint16_t>(cuda::OpcodeOf<decltype(message)>::value);
    };
    if (is(cuda::Allocate()) || is(cuda::AllocateAsync()) || is(cuda::ReserveAddress())) {
      cuda::Address address;
      if (!address.Decode(reader) || address.status != 0) return;
      values_.addresses.push_back(address.address);
      if (values_.addresses.size() > 12) values_.addresses.erase(values_.addresses.begin() + 1);
    }
  }

  const Plan plan_;
  RandomValues values_;
  std::mt19937_64 random_;
  std::vector<std::byte> heap_;
  server::WorkerSettings settings_;
  KeptReplies replies_;
  LateData data_;
  ReadData reader_;
  std::unique_ptr<server::cuda_backend::CudaBackend> backend_;
  uint64_t seq_ = 0, answered_ = 0;
};

int Session(const Plan& plan) {
  server::WorkerSettings settings;
  settings.cuda_driver = HAWSER_SOFT_CUDA;
  wire::Result<server::cuda_backend::ChosenDriver> driver =
      server::cuda_backend::ChooseDriver(settings, {HAWSER_SOFT_CUDA}, server::cuda_backend::LoadDriver);
  if (!driver.ok()) return std::printf("%s\n", driver.status().text().c_str()), 3;
  // Never destroyed, as in a worker.
  auto* const guest = new Guest(plan, std::move(*driver));
  guest->Run();
  return 0;
}

}  // namespace
}  // namespace hawser::hostile

int main(int argc, char** argv) {
  // So that running out of device memory is seen, and not of the machine's.
  ::setenv("HAWSER_SOFT_MEMORY", "268435456", 1);
  return hawser::hostile::RunSessions(argc, argv, hawser::hostile::Session);
}
