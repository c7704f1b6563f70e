// SPDX-License-Identifier: Apache-2.0
// A hostile guest (guest.h) of the CUDA backend over the software device. See sessions.h for the options.
#include <stdlib.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "proto/cuda/messages.h"
#include "proto/cuda/trace.h"
#include "server/backends/cuda/backend.h"
#include "server/backends/cuda/driver_choice.h"
#include "tests/hostile/guest.h"
#include "wire/sha256.h"

namespace hawser::hostile {
namespace {

using cuda::Handle;
using server::cuda_backend::ChosenDriver;

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
.visible .entry until(.param .u64 p)
{
  .reg .pred %q;
  .reg .u32 %r;
  .reg .u64 %d;
  ld.param.u64 %d, [p];
AGAIN:
  ld.volatile.global.u32 %r, [%d];
  setp.eq.u32 %q, %r, 123456789;
  @!%q bra AGAIN;
  ret;
}
.visible .entry nothing()
{
  ret;
}
)";

class CudaGuest final : public Guest {
 public:
  /// In some sessions a kernel never ends, so a command that waits for the device is found.
  CudaGuest(const Plan& plan, ChosenDriver driver) : Guest(plan), endless_(plan.seed % 5 == 0) {
    settings_.tenant = "hostile";
    // Memory in the heap takes another way than the driver's.
    Take(std::make_unique<server::cuda_backend::CudaBackend>(std::move(driver), settings_,
                                                             server::cuda_backend::AddressRanges()),
         /*heap=*/plan.seed % 3 != 0);
    for (const Handle type : {Handle::kContext, Handle::kEvent, Handle::kModule, Handle::kFunction, Handle::kStream,
                              Handle::kPool, Handle::kAllocation, Handle::kStaging, Handle::kArray, Handle::kMipmap,
                              Handle::kGraph, Handle::kGraphExec, Handle::kNode})
      values_.types.push_back(static_cast<uint8_t>(type));
    for (const Handle type : {Handle::kContext, Handle::kModule, Handle::kFunction})
      values_.needed.push_back(static_cast<uint8_t>(type));
    values_.often_none = static_cast<uint8_t>(Handle::kStream);
    values_.names = {"add", "nothing", "table", "factors"};
    values_.usual = {{"grid", {1, 1, 2, 5}},
                     {"block", {1, 1, 4, 33}},
                     {"shared", {0, 0, 128}},
                     {"flags", {0, 0, 0, 0, 1, 2}},
                     {"device", {0}},
                     {"width", {1, 4, 16, 200}},
                     {"height", {0, 1, 1, 3}},
                     {"depth", {0, 1, 1, 2}},
                     {"pitch", {0, 16, 64, 256}},
                     {"size", {4, 64, 512, 4096, 65536}},
                     {"format", {1, 2, 3, 8, 0x20}},
                     {"channels", {1, 2, 4}},
                     {"levels", {1, 2}},
                     {"heap_offset", {0, 4096, 65536}},
                     {"heap_size", {0, 0, 0, 65536}},
                     {"offset", {0, 0, 4, 256}}};
    // Those of add(), and of nothing().
    values_.lengths = {{"parameters", {16, 16, 16, 0}}, {"dependencies", {0, 0, 1}}, {"attributes", {0, 0, 0, 1}}};
    values_.contents["parameters"] = [this](std::span<std::byte> bytes) {
      const uint64_t address = values_.addresses.empty() ? 0 : values_.addresses[0];
      // It looks at as many numbers, if the last is a multiple of 32.
      const std::array<uint32_t, 4> all{static_cast<uint32_t>(address), static_cast<uint32_t>(address >> 32),
                                        static_cast<uint32_t>(values_.Below(200)),
                                        static_cast<uint32_t>(values_.Below(64))};
      if (!bytes.empty()) std::memcpy(bytes.data(), all.data(), std::min(bytes.size(), sizeof(all)));
    };
  }

 private:
  static wire::Id Known(Handle type, uint32_t index = 1) { return wire::Id(static_cast<uint8_t>(type), 1, index); }
  template <typename Message>
  void Do(const char* name, const Message& message) {
    Guest::Do(name, static_cast<uint16_t>(cuda::OpcodeOf<Message>::value), message);
  }

  void Begin() override {
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
    AwaitAnswer();
    uint32_t index = 0;
    for (const char* name : {"add", "nothing"}) {
      cuda::GetFunction get;
      get.function = Known(Handle::kFunction, ++index);
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
    if (endless_) LaunchEndless();
    values_.addresses.push_back(0x1000);  // In nobody's memory; in the heap, pages are counted from 0.
  }

  void LaunchEndless() {
    cuda::CreateStream stream;
    stream.stream = Known(Handle::kStream, 61);  // Nobody guesses that.
    stream.context = Known(Handle::kContext);
    stream.flags = CU_STREAM_NON_BLOCKING;
    Do("CreateStream", stream);
    cuda::GetFunction get;
    get.function = Known(Handle::kFunction, 61);
    get.module = Known(Handle::kModule);
    get.name = "until";
    Do("GetFunction", get);
    cuda::Launch launch;
    launch.context = stream.context;
    launch.stream = stream.stream;
    launch.function = get.function;
    launch.grid = {1, 1, 1};
    launch.block = {1, 1, 1};
    launch.parameters = wire::AsBytes(values_.addresses.data(), sizeof(uint64_t));
    Do("Launch", launch);
  }

  std::string Text(uint16_t opcode, wire::Bytes payload) override { return cuda::Trace(opcode, payload); }
  void AddCalls(proto::SeedSink& sink) override { cuda::AddSeeds(sink); }

  int Copies(const proto::Seed& seed) override {
    if (seed.folder != "cuda_calls" || MayWaitForEver(seed)) return 0;
    // These take away what most others need.
    const bool harms = seed.name == "ReleaseObject" || seed.name == "ResetPrimary" || seed.name == "CreateContext";
    // The end of a context waits for what is in it.
    if (harms) return !endless_ && values_.Chance(4) ? 1 : 0;
    // What creates and launches is what others need.
    const bool often = seed.name.starts_with("Create") || seed.name.starts_with("Launch") || seed.name == "AddNode" ||
                       seed.name == "Memset" || seed.name == "GetFunction";
    return often ? 2 : 1;
  }

  template <typename Message>
  static bool Read(const proto::Seed& seed, Message* message) {
    wire::FrameHeader header;
    std::memcpy(&header, seed.frame.data(), sizeof(header));
    wire::Reader reader(wire::Bytes(seed.frame).subspan(sizeof(header)));
    return header.opcode == static_cast<uint16_t>(cuda::OpcodeOf<Message>::value) && message->Decode(reader);
  }

  /// Nobody sets a value in memory that a stream waits for, nor a condition: with it waits all that waits for the
  /// stream.
  static bool MayWaitForEver(const proto::Seed& seed) {
    const auto waits = [](const wire::ListView<cuda::StreamValue>& values) {
      bool any = false;
      values.ForEach([&](const cuda::StreamValue& value) { any = any || value.wait != 0; });
      return any;
    };
    const auto node_waits = [&](auto message) {
      constexpr uint32_t kValues = 12;
      return Read(seed, &message) && message.parameters.kind == kValues && waits(message.parameters.values);
    };
    cuda::EnqueueStreamValues values;
    cuda::AddConditionalNode conditional;
    return (Read(seed, &values) && waits(values.values)) || node_waits(cuda::AddNode()) ||
           node_waits(cuda::PlaceNode()) || node_waits(cuda::SetNode()) ||
           (Read(seed, &conditional) && conditional.type == CU_GRAPH_COND_TYPE_WHILE);
  }

  void Hear(const Answer& answer) override {
    wire::Reader reader(answer.payload);
    const auto is = [&](auto message) {
      return answer.opcode == static_cast<uint16_t>(cuda::OpcodeOf<decltype(message)>::value);
    };
    if (answer.seq == 0) {
      cuda::RunHostFunction run;
      if (!is(run) || !run.Decode(reader)) return;
      cuda::HostFunctionDone done;
      done.callback = run.callback;
      done.run = run.run;
      Do("HostFunctionDone", done);
    } else if (is(cuda::Allocate()) || is(cuda::AllocateAsync()) || is(cuda::ReserveAddress())) {
      cuda::Address address;
      if (!address.Decode(reader) || address.status != 0) return;
      values_.addresses.push_back(address.address);
      if (values_.addresses.size() > 12) values_.addresses.erase(values_.addresses.begin() + 1);
    }
  }

  const bool endless_;
  server::WorkerSettings settings_;
};

int Session(const Plan& plan) {
  server::WorkerSettings settings;
  settings.cuda_driver = HAWSER_SOFT_CUDA;
  wire::Result<ChosenDriver> driver =
      server::cuda_backend::ChooseDriver(settings, {HAWSER_SOFT_CUDA}, server::cuda_backend::LoadDriver);
  if (!driver.ok()) return std::printf("%s\n", driver.status().text().c_str()), 3;
  // Never destroyed, as in a worker.
  auto* const guest = new CudaGuest(plan, std::move(*driver));
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
