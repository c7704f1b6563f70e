// SPDX-License-Identifier: Apache-2.0
// A hostile guest (guest.h) of the OpenCL backend, over the platform of this machine. See sessions.h for the options.
#include <stdlib.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "proto/opencl/messages.h"
#include "proto/opencl/trace.h"
#include "server/worker/backend.h"
#include "tests/hostile/guest.h"

namespace hawser::hostile {
namespace {

using opencl::Handle;

/// A kernel is native code of the worker's, where the device is its processor: what it is told to touch it touches. So
/// these touch nothing unless they are told a number that nobody guesses.
constexpr char kSource[] =
    "kernel void add(global uint* p, uint n) { if (n == 123456789) p[get_global_id(0)] += n; }\n"
    "kernel void two(global float4* p, local float* q, image2d_t i, sampler_t s) { }\n";

class OpenClGuest final : public Guest {
 public:
  OpenClGuest(const Plan& plan, std::unique_ptr<server::Backend> backend) : Guest(plan) {
    Take(std::move(backend), /*heap=*/plan.seed % 3 != 0);
    for (const Handle type : {Handle::kContext, Handle::kQueue, Handle::kMem, Handle::kSampler, Handle::kProgram,
                              Handle::kKernel, Handle::kEvent, Handle::kDevice})
      values_.types.push_back(static_cast<uint8_t>(type));
    for (const Handle type : {Handle::kContext, Handle::kQueue, Handle::kDevice, Handle::kKernel})
      values_.needed.push_back(static_cast<uint8_t>(type));
    values_.names = {"add", "two", kSource, "-cl-fast-relaxed-math"};
    values_.usual = {{"size", {4, 64, 4096, 65536}}, {"offset", {0, 0, 0, 4, 128}},
                     {"global", {1, 2, 8, 64, 200}}, {"local", {1, 1, 2, 8}},
                     {"flags", {0, 1, 1, 2, 4}},     {"heap_offset", {~uint64_t{0}}},
                     {"width", {1, 4, 16, 100}},     {"height", {0, 1, 3}},
                     {"depth", {0, 1, 2}},           {"row_pitch", {0}},
                     {"slice_pitch", {0}},           {"origin", {0, 0, 1}},
                     {"region", {1, 1, 4}}};
    values_.lengths = {{"wait_list", {0, 0, 1, 2}}, {"pattern", {1, 4, 16}}};
  }

 private:
  static wire::Id Known(Handle type, uint32_t index = 1) { return wire::Id(static_cast<uint8_t>(type), 1, index); }
  template <typename Message>
  void Do(const char* name, const Message& message) {
    Guest::Do(name, static_cast<uint16_t>(opencl::OpcodeOf<Message>::value), message);
  }

  void Begin() override {
    const wire::Id device = Known(Handle::kDevice);
    const wire::ArrayView<wire::Id> devices(&device, 1);
    opencl::CreateContext context;
    context.context = Known(Handle::kContext);
    context.devices = devices;
    Do("clCreateContext", context);
    opencl::CreateQueue queue;
    queue.queue = Known(Handle::kQueue);
    queue.context = context.context;
    queue.device = device;
    Do("clCreateCommandQueueWithProperties", queue);
    for (uint32_t index = 1; index <= 2; ++index) {
      opencl::CreateBuffer buffer;
      buffer.buffer = Known(Handle::kMem, index);
      buffer.context = context.context;
      buffer.flags = 1;  // CL_MEM_READ_WRITE
      buffer.size = 65536;
      buffer.heap_offset = ~uint64_t{0};
      Do("clCreateBuffer", buffer);
    }
    opencl::CreateProgramWithSource program;
    program.program = Known(Handle::kProgram);
    program.context = context.context;
    program.source = wire::AsBytes(std::string_view(kSource));
    Do("clCreateProgramWithSource", program);
    opencl::BuildProgram build;
    build.program = program.program;
    build.devices = devices;
    Do("clBuildProgram", build);
    AwaitAnswer();
    opencl::CreateKernel kernel;
    kernel.kernel = Known(Handle::kKernel);
    kernel.program = program.program;
    kernel.name = "add";
    Do("clCreateKernel", kernel);
    opencl::SetKernelArg argument;
    argument.kernel = kernel.kernel;
    argument.kind = 2;
    argument.size = sizeof(void*);
    argument.object = Known(Handle::kMem);
    Do("clSetKernelArg", argument);
    const uint32_t number = 5;
    argument = opencl::SetKernelArg();
    argument.kernel = kernel.kernel;
    argument.index = 1;
    argument.kind = 1;
    argument.size = sizeof(number);
    argument.value = wire::AsBytes(&number, sizeof(number));
    Do("clSetKernelArg", argument);
  }

  std::string Text(uint16_t opcode, wire::Bytes payload) override { return opencl::Trace(opcode, payload); }
  void AddCalls(proto::SeedSink& sink) override { opencl::AddSeeds(sink); }

  int Copies(const proto::Seed& seed) override {
    if (seed.folder != "calls") return 0;
    // These take away what most others need.
    if (seed.name == "ReleaseObject" || seed.name == "clCreateContext") return values_.Chance(15) ? 1 : 0;
    // PoCL counts work-groups in 32 bits and ends the process where they do not fit, also without Hawser.
    if (seed.name == "clEnqueueNDRangeKernel" && Items(seed) >= uint64_t{1} << 31) return 0;
    const bool often = seed.name.starts_with("clEnqueue") || seed.name == "clSetKernelArg";
    return often ? 2 : 1;
  }

  static uint64_t Items(const proto::Seed& seed) {
    opencl::EnqueueNDRangeKernel launch;
    wire::Reader reader(wire::Bytes(seed.frame).subspan(sizeof(wire::FrameHeader)));
    uint64_t items = launch.Decode(reader) ? 1 : 0;
    for (size_t i = 0; i < launch.global.size(); ++i) {
      if (__builtin_mul_overflow(items, launch.global[i], &items)) return UINT64_MAX;
    }
    return items;
  }

  void Hear(const Answer&) override {}
};

int Session(const Plan& plan) {
  wire::Result<std::unique_ptr<server::Backend>> backend = server::CreateOpenClBackend();
  if (!backend.ok()) return std::printf("%s\n", backend.status().text().c_str()), 3;
  // Never destroyed, as in a worker.
  auto* const guest = new OpenClGuest(plan, std::move(*backend));
  guest->Run();
  return 0;
}

}  // namespace
}  // namespace hawser::hostile

int main(int argc, char** argv) {
  std::string folder = (std::filesystem::temp_directory_path() / "hawser-hostile-XXXXXX").string();
  if (::mkdtemp(folder.data()) == nullptr) return std::perror(folder.c_str()), 3;
  ::setenv("POCL_CACHE_DIR", folder.c_str(), 1);
  const int result = hawser::hostile::RunSessions(argc, argv, hawser::hostile::Session);
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
  return result;
}
