// SPDX-License-Identifier: Apache-2.0
#include "bench/cuda_measures.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "bench/samples.h"

namespace hawser::bench {
namespace {

using Clock = std::chrono::steady_clock;
using wire::Code;
using wire::Result;
using wire::Status;

constexpr size_t kStepBytes = 4096;
/// Bandwidth: bytes, and copies, between two looks at what has arrived.
constexpr size_t kCopiedBetweenLooks = 2u << 20;
constexpr size_t kMostCopies = 16;
constexpr int kStepLaunches = 50;

// nothing(), tick(p): adds one, fill(p, n, value): p[i] = value + i.
constexpr char kHead[] = ".version 7.0\n.target sm_75\n.address_size 64\n";
constexpr char kKernels[] = R"(
.visible .entry nothing() { ret; }
.visible .entry tick(.param .u64 pp)
{
  .reg .b32 %r<2>;
  .reg .b64 %d<2>;
  ld.param.u64 %d1, [pp];
  ld.global.u32 %r1, [%d1];
  add.u32 %r1, %r1, 1;
  st.global.u32 [%d1], %r1;
  ret;
}
.visible .entry fill(.param .u64 pp, .param .u32 pn, .param .u32 pvalue)
{
  .reg .pred %p<2>;
  .reg .b32 %r<8>;
  .reg .b64 %d<4>;
  ld.param.u64 %d1, [pp];
  ld.param.u32 %r1, [pn];
  ld.param.u32 %r2, [pvalue];
  mov.u32 %r3, %ctaid.x;
  mov.u32 %r4, %ntid.x;
  mov.u32 %r5, %tid.x;
  mad.lo.s32 %r6, %r3, %r4, %r5;
  setp.ge.u32 %p1, %r6, %r1;
  @%p1 bra DONE;
  mul.wide.u32 %d2, %r6, 4;
  add.s64 %d3, %d1, %d2;
  add.u32 %r7, %r6, %r2;
  st.global.u32 [%d3], %r7;
DONE:
  ret;
}
)";

double Microseconds(Clock::duration duration) { return std::chrono::duration<double, std::micro>(duration).count(); }

Status Check(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return {};
  const char* name = nullptr;
  if (cuGetErrorName(result, &name) != CUDA_SUCCESS || name == nullptr) name = "an unknown error";
  return Status(Code::kInvalid, std::string(what) + ": " + name);
}

Status Wrong(const char* measure, uint32_t expected, uint32_t found) {
  return Status(Code::kInvalid, std::string(measure) + ": the device computed " + std::to_string(found) + " where " +
                                    std::to_string(expected) + " is right");
}

/// Returns from the enclosing function when the call fails.
#define HAWSER_TRY(call)                                                                        \
  do {                                                                                          \
    if (Status hawser_status = Check((call), #call); !hawser_status.ok()) return hawser_status; \
  } while (false)

/// Freed with its owner.
struct DeviceMemory {
  CUdeviceptr address = 0;
  ~DeviceMemory() {
    if (address != 0) (void)cuMemFree(address);
  }
};
struct HostMemory {
  void* pinned = nullptr;
  std::vector<uint32_t> pageable;
  ~HostMemory() {
    if (pinned != nullptr) (void)cuMemFreeHost(pinned);
  }
  CUresult Allocate(bool pin, size_t bytes) {
    if (pin) return cuMemHostAlloc(&pinned, bytes, 0);
    pageable.resize(bytes / 4);
    return CUDA_SUCCESS;
  }
  uint32_t* data() { return pinned != nullptr ? static_cast<uint32_t*>(pinned) : pageable.data(); }
};

}  // namespace

Result<std::unique_ptr<CudaMeasures>> CudaMeasures::Create() {
  std::unique_ptr<CudaMeasures> measures(new CudaMeasures);
  if (Status s = measures->Prepare(); !s.ok()) return s;
  return measures;
}

Status CudaMeasures::Prepare() {
  HAWSER_TRY(cuInit(0));
  HAWSER_TRY(cuDriverGetVersion(&driver_version_));
  CUdevice device = 0;
  HAWSER_TRY(cuDeviceGet(&device, 0));
  char name[256] = {};
  HAWSER_TRY(cuDeviceGetName(name, sizeof(name) - 1, device));
  device_name_ = name;
  HAWSER_TRY(cuDevicePrimaryCtxRetain(&context_, device));
  HAWSER_TRY(cuCtxSetCurrent(context_));
  HAWSER_TRY(cuModuleLoadData(&module_, (std::string(kHead) + kKernels).c_str()));
  HAWSER_TRY(cuModuleGetFunction(&nothing_, module_, "nothing"));
  HAWSER_TRY(cuModuleGetFunction(&tick_, module_, "tick"));
  HAWSER_TRY(cuModuleGetFunction(&fill_, module_, "fill"));
  HAWSER_TRY(cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING));
  HAWSER_TRY(cuMemAlloc(&counter_, 1u << 20));
  HAWSER_TRY(cuMemsetD32(counter_, 0, 1u << 18));
  return {};
}

Status CudaMeasures::Launch(CUfunction function, unsigned blocks, void** parameters, CUstream stream) {
  const unsigned threads = function == fill_ ? 128 : 1;
  return Check(cuLaunchKernel(function, blocks, 1, 1, threads, 1, 1, 0, stream, parameters, nullptr), "cuLaunchKernel");
}

Status CudaMeasures::ExpectCounter(uint32_t expected, const char* measure) {
  uint32_t found = 0;
  HAWSER_TRY(cuMemcpyDtoH(&found, counter_, sizeof(found)));
  return found == expected ? Status() : Wrong(measure, expected, found);
}

Result<CudaValues> CudaMeasures::LaunchSync(int iterations) {
  std::vector<double> samples;
  for (int i = 0; i < iterations; ++i) {
    const auto begin = Clock::now();
    if (Status s = Launch(nothing_, 1, nullptr, stream_); !s.ok()) return s;
    HAWSER_TRY(cuStreamSynchronize(stream_));
    samples.push_back(Microseconds(Clock::now() - begin));
  }
  return CudaValues{{"p50_us", Percentile(samples, 0.5)}, {"p99_us", Percentile(samples, 0.99)}};
}

Result<CudaValues> CudaMeasures::LaunchBurst(int count) {
  HAWSER_TRY(cuMemsetD32Async(counter_, 0, 1, stream_));
  HAWSER_TRY(cuStreamSynchronize(stream_));
  void* parameters[] = {&counter_};
  const auto begin = Clock::now();
  for (int i = 0; i < count; ++i) {
    if (Status s = Launch(tick_, 1, parameters, stream_); !s.ok()) return s;
  }
  const auto enqueued = Clock::now();
  HAWSER_TRY(cuStreamSynchronize(stream_));
  const auto end = Clock::now();
  if (Status s = ExpectCounter(static_cast<uint32_t>(count), "burst"); !s.ok()) return s;
  return CudaValues{{"launches_per_s", count * 1e6 / Microseconds(end - begin)},
                    {"enqueue_us", Microseconds(enqueued - begin) / count}};
}

Result<CudaValues> CudaMeasures::Events(int iterations) {
  CUevent event = nullptr;
  HAWSER_TRY(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  const auto begin = Clock::now();
  for (int i = 0; i < iterations; ++i) HAWSER_TRY(cuEventRecord(event, stream_));
  const auto recorded = Clock::now();
  HAWSER_TRY(cuEventSynchronize(event));
  const auto complete = Clock::now();
  for (int i = 0; i < iterations; ++i) HAWSER_TRY(cuEventQuery(event));
  const auto end = Clock::now();
  HAWSER_TRY(cuEventDestroy(event));
  return CudaValues{{"record_us", Microseconds(recorded - begin) / iterations},
                    {"query_us", Microseconds(end - complete) / iterations}};
}

Result<CudaValues> CudaMeasures::ReadSmall(int iterations) {
  std::vector<double> samples;
  for (int i = 0; i < iterations; ++i) {
    const auto value = static_cast<uint32_t>(i);
    HAWSER_TRY(cuMemsetD32Async(counter_, value, 1, nullptr));
    HAWSER_TRY(cuCtxSynchronize());
    uint32_t found = ~value;
    const auto begin = Clock::now();
    HAWSER_TRY(cuMemcpyDtoH(&found, counter_, sizeof(found)));
    samples.push_back(Microseconds(Clock::now() - begin));
    if (found != value) return Wrong("small read", value, found);
  }
  return CudaValues{{"p50_us", Percentile(samples, 0.5)}, {"p99_us", Percentile(samples, 0.99)}};
}

Result<CudaValues> CudaMeasures::Step(int iterations) {
  HostMemory host;
  HAWSER_TRY(host.Allocate(true, 4 * kStepBytes));
  CUevent start = nullptr, end = nullptr;
  HAWSER_TRY(cuEventCreate(&start, CU_EVENT_DEFAULT));
  HAWSER_TRY(cuEventCreate(&end, CU_EVENT_DEFAULT));
  uint32_t* const words = host.data();
  std::vector<double> samples;
  void* parameters[] = {&counter_};
  for (int i = 0; i < iterations; ++i) {
    const auto value = static_cast<uint32_t>(i * 1000);
    words[0] = value;
    const auto begin = Clock::now();
    HAWSER_TRY(cuEventRecord(start, stream_));
    HAWSER_TRY(cuMemcpyHtoDAsync(counter_, words, kStepBytes, stream_));
    HAWSER_TRY(cuMemcpyHtoDAsync(counter_ + kStepBytes, words + 1024, kStepBytes, stream_));
    for (int k = 0; k < kStepLaunches; ++k) {
      if (Status s = Launch(tick_, 1, parameters, stream_); !s.ok()) return s;
    }
    HAWSER_TRY(cuMemcpyDtoHAsync(words + 2048, counter_, kStepBytes, stream_));
    HAWSER_TRY(cuMemcpyDtoHAsync(words + 3072, counter_ + kStepBytes, kStepBytes, stream_));
    HAWSER_TRY(cuEventRecord(end, stream_));
    HAWSER_TRY(cuStreamSynchronize(stream_));
    samples.push_back(Microseconds(Clock::now() - begin));
    if (words[2048] != value + kStepLaunches) return Wrong("step", value + kStepLaunches, words[2048]);
  }
  HAWSER_TRY(cuEventDestroy(start));
  HAWSER_TRY(cuEventDestroy(end));
  return CudaValues{{"p50_us", Percentile(samples, 0.5)}};
}

Result<CudaValues> CudaMeasures::AllocateFree(int iterations) {
  const auto begin = Clock::now();
  for (int i = 0; i < iterations; ++i) {
    CUdeviceptr memory = 0;
    HAWSER_TRY(cuMemAlloc(&memory, 1u << 20));
    HAWSER_TRY(cuMemFree(memory));
  }
  return CudaValues{{"pair_us", Microseconds(Clock::now() - begin) / iterations}};
}

Result<CudaValues> CudaMeasures::ModuleLoad(uint32_t constant) {
  // Some hundred kernels of which none occurs elsewhere.
  std::string text = kHead;
  for (int i = 0; i < 200; ++i) {
    text += ".visible .entry k" + std::to_string(i) + "(.param .u64 pp)\n{\n  .reg .b32 %r<3>;\n  .reg .b64 %d<2>;\n" +
            "  ld.param.u64 %d1, [pp];\n  mov.u32 %r1, " + std::to_string(constant) + ";\n  add.u32 %r2, %r1, " +
            std::to_string(i) + ";\n  st.global.u32 [%d1], %r2;\n  ret;\n}\n";
  }
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  const auto begin = Clock::now();
  HAWSER_TRY(cuModuleLoadData(&module, text.c_str()));
  const auto loaded = Clock::now();
  HAWSER_TRY(cuModuleGetFunction(&function, module, "k77"));
  void* parameters[] = {&counter_};
  HAWSER_TRY(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream_, parameters, nullptr));
  HAWSER_TRY(cuStreamSynchronize(stream_));
  const auto end = Clock::now();
  if (Status s = ExpectCounter(constant + 77, "module load"); !s.ok()) return s;
  HAWSER_TRY(cuModuleUnload(module));
  return CudaValues{{"load_ms", Microseconds(loaded - begin) / 1000},
                    {"first_launch_ms", Microseconds(end - loaded) / 1000}};
}

Result<CudaValues> CudaMeasures::Bandwidth(bool to_device, bool pinned, size_t size, int repetitions) {
  DeviceMemory memory;
  HostMemory host;
  HAWSER_TRY(cuMemAlloc(&memory.address, size));
  HAWSER_TRY(host.Allocate(pinned, size));
  const auto words = static_cast<uint32_t>(size / 4);
  for (uint32_t i = 0; i < words; ++i) host.data()[i] = i * 2654435761u;
  std::vector<uint32_t> check(1024);
  const size_t last = size - check.size() * 4 > size ? 0 : size - check.size() * 4;
  double microseconds = 0;
  // Between two looks at what has arrived, short copies are measured several at a time: a look leaves what the next one
  // copies in another core's cache, and would be what is measured.
  const int copies = static_cast<int>(std::clamp<size_t>(kCopiedBetweenLooks / size, 1, kMostCopies));
  // The first copy is not measured: memory is touched, and pools are filled, for the first time.
  for (int i = -1; i < repetitions; ++i) {
    const auto seed = static_cast<uint32_t>(7 * (i + 2));
    host.data()[0] = seed;
    if (!to_device) {
      void* parameters[] = {&memory.address, nullptr, nullptr};
      uint32_t count = words, value = seed;
      parameters[1] = &count;
      parameters[2] = &value;
      if (Status s = Launch(fill_, (words + 127) / 128, parameters, stream_); !s.ok()) return s;
      HAWSER_TRY(cuStreamSynchronize(stream_));
    }
    const auto begin = Clock::now();
    for (int copy = 0; copy < copies; ++copy) {
      if (to_device) {
        HAWSER_TRY(cuMemcpyHtoDAsync(memory.address, host.data(), size, stream_));
      } else {
        HAWSER_TRY(cuMemcpyDtoHAsync(host.data(), memory.address, size, stream_));
      }
      HAWSER_TRY(cuStreamSynchronize(stream_));
    }
    if (i >= 0) microseconds += Microseconds(Clock::now() - begin);
    if (to_device) {
      uint32_t first = 0;
      HAWSER_TRY(cuMemcpyDtoH(&first, memory.address, 4));
      if (first != seed) return Wrong("bandwidth", seed, first);
      HAWSER_TRY(cuMemcpyDtoH(check.data(), memory.address + last, std::min(size, check.size() * 4)));
      if (check.back() != host.data()[words - 1]) return Wrong("bandwidth", host.data()[words - 1], check.back());
    } else if (host.data()[0] != seed || host.data()[words - 1] != seed + words - 1) {
      return Wrong("bandwidth", seed, host.data()[0]);
    }
  }
  return CudaValues{{"gib_s", static_cast<double>(size) * repetitions * copies / double(1u << 30) /
                                  (std::max(microseconds, 1e-3) * 1e-6)}};
}

Result<CudaValues> CudaMeasures::Streams(int streams, int repetitions) {
  constexpr uint32_t kWords = 4u << 20;
  DeviceMemory memory;
  HostMemory host;
  HAWSER_TRY(cuMemAlloc(&memory.address, kWords * 4));
  HAWSER_TRY(host.Allocate(true, kWords * 4));
  std::vector<CUstream> list(static_cast<size_t>(streams));
  for (CUstream& stream : list) HAWSER_TRY(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  std::vector<double> samples;
  for (int i = 0; i < repetitions; ++i) {
    const auto begin = Clock::now();
    for (int s = 0; s < streams; ++s) {
      uint32_t count = kWords / static_cast<uint32_t>(streams);
      const uint32_t offset = static_cast<uint32_t>(s) * count;
      uint32_t value = offset + static_cast<uint32_t>(i);
      CUdeviceptr part = memory.address + size_t{offset} * 4;
      void* parameters[] = {&part, &count, &value};
      CUstream stream = list[static_cast<size_t>(s)];
      if (Status status = Launch(fill_, (count + 127) / 128, parameters, stream); !status.ok()) return status;
      HAWSER_TRY(cuMemcpyDtoHAsync(host.data() + offset, part, size_t{count} * 4, stream));
    }
    HAWSER_TRY(cuCtxSynchronize());
    samples.push_back(Microseconds(Clock::now() - begin) / 1000);
    for (const uint32_t at : {0u, kWords / 2, kWords - 1}) {
      if (host.data()[at] != at + static_cast<uint32_t>(i)) {
        return Wrong("streams", at + static_cast<uint32_t>(i), host.data()[at]);
      }
    }
  }
  for (CUstream stream : list) HAWSER_TRY(cuStreamDestroy(stream));
  return CudaValues{{"ms", Median(samples)}};
}

}  // namespace hawser::bench
