// SPDX-License-Identifier: Apache-2.0
// The runtime's getters do not wait for the server once what they answer has been told. Each getter runs in a process
// of its own, whose guest library counts.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <string>

#include "tests/integration/guest_waits.h"

namespace hawser {
namespace {

constexpr int kRounds = 50;

/// What getters are asked about.
struct Things {
  cudaStream_t stream = nullptr;
  cudaMemPool_t pool = nullptr;
  cudaLibrary_t library = nullptr;
  cudaKernel_t kernel = nullptr;
  void* memory = nullptr;
};

struct Getter {
  const char* name;
  cudaError_t (*call)(const Things& things);
};

const Getter kGetters[] = {
    {"GetDevice",
     [](const Things&) {
       int device = -1;
       return cudaGetDevice(&device);
     }},
    {"GetDeviceCount",
     [](const Things&) {
       int count = 0;
       return cudaGetDeviceCount(&count);
     }},
    {"GetDeviceProperties",
     [](const Things&) {
       cudaDeviceProp properties;
       return cudaGetDeviceProperties(&properties, 0);
     }},
    {"DeviceGetAttribute",
     [](const Things&) {
       int value = 0;
       return cudaDeviceGetAttribute(&value, cudaDevAttrMultiProcessorCount, 0);
     }},
    {"DeviceCanAccessPeer",
     [](const Things&) {
       int can = 0;
       return cudaDeviceCanAccessPeer(&can, 0, 0);
     }},
    {"DeviceGetP2PAttribute",
     [](const Things&) {
       int value = 0;
       return cudaDeviceGetP2PAttribute(&value, cudaDevP2PAttrPerformanceRank, 0, 1);
     }},
    {"GetLastError", [](const Things&) { return cudaGetLastError(); }},
    {"PeekAtLastError", [](const Things&) { return cudaPeekAtLastError(); }},
    {"RuntimeGetVersion",
     [](const Things&) {
       int version = 0;
       return cudaRuntimeGetVersion(&version);
     }},
    {"DriverGetVersion",
     [](const Things&) {
       int version = 0;
       return cudaDriverGetVersion(&version);
     }},
    {"FuncGetAttributes",
     [](const Things& things) {
       cudaFuncAttributes attributes;
       return cudaFuncGetAttributes(&attributes, things.kernel);
     }},
    {"OccupancyMaxActiveBlocksPerMultiprocessor",
     [](const Things& things) {
       int blocks = 0;
       return cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, things.kernel, 128, 0);
     }},
    {"PointerGetAttributes",
     [](const Things& things) {
       cudaPointerAttributes attributes;
       return cudaPointerGetAttributes(&attributes, things.memory);
     }},
    {"StreamGetFlags",
     [](const Things& things) {
       unsigned flags = 0;
       return cudaStreamGetFlags(things.stream, &flags);
     }},
    {"StreamGetPriority",
     [](const Things& things) {
       int priority = 0;
       return cudaStreamGetPriority(things.stream, &priority);
     }},
    {"StreamGetAttribute",
     [](const Things& things) {
       cudaStreamAttrValue value;
       return cudaStreamGetAttribute(things.stream, cudaLaunchAttributePriority, &value);
     }},
    {"DeviceGetStreamPriorityRange",
     [](const Things&) {
       int least = 0, greatest = 0;
       return cudaDeviceGetStreamPriorityRange(&least, &greatest);
     }},
    {"DeviceGetLimit",
     [](const Things&) {
       size_t heap = 0, printf = 0;
       const cudaError_t error = cudaDeviceGetLimit(&heap, cudaLimitMallocHeapSize);
       return error != cudaSuccess ? error : cudaDeviceGetLimit(&printf, cudaLimitPrintfFifoSize);
     }},
    {"DeviceGetCacheConfig",
     [](const Things&) {
       cudaFuncCache config;
       return cudaDeviceGetCacheConfig(&config);
     }},
    {"GetDeviceFlags",
     [](const Things&) {
       unsigned flags = 0;
       return cudaGetDeviceFlags(&flags);
     }},
    {"DeviceGetDefaultMemPool",
     [](const Things&) {
       cudaMemPool_t pool = nullptr;
       return cudaDeviceGetDefaultMemPool(&pool, 0);
     }},
    {"MemPoolGetAttribute",
     [](const Things& things) {
       uint64_t threshold = 0;
       return cudaMemPoolGetAttribute(things.pool, cudaMemPoolAttrReleaseThreshold, &threshold);
     }},
    // The last one waits, because the answer is the server's alone: that the count would show it.
    {"MemGetInfo",
     [](const Things&) {
       size_t free = 0, total = 0;
       return cudaMemGetInfo(&free, &total);
     }},
};

const Getter* Wanted(const std::string& name) {
  for (const Getter& getter : kGetters) {
    if (name == getter.name) return &getter;
  }
  return nullptr;
}

#define HAWSER_CUDA(call) ASSERT_EQ(call, cudaSuccess)

TEST(CudartWaits, DISABLED_AGetter) {
  const char* name = std::getenv("HAWSER_TEST_GETTER");
  const Getter* getter = Wanted(name != nullptr ? name : "");
  ASSERT_NE(getter, nullptr);
  Things things;
  HAWSER_CUDA(cudaStreamCreateWithPriority(&things.stream, cudaStreamNonBlocking, 0));
  HAWSER_CUDA(cudaDeviceGetDefaultMemPool(&things.pool, 0));
  const char* code = ".version 7.0\n.target sm_75\n.address_size 64\n.visible .entry nothing()\n{\n  ret;\n}\n";
  HAWSER_CUDA(cudaLibraryLoadData(&things.library, code, nullptr, nullptr, 0, nullptr, nullptr, 0));
  HAWSER_CUDA(cudaLibraryGetKernel(&things.kernel, things.library, "nothing"));
  HAWSER_CUDA(cudaMalloc(&things.memory, 1 << 20));
  for (int round = 0; round < WantedRounds(); ++round) HAWSER_CUDA(getter->call(things));
}

class CudartGetterTest : public testing::TestWithParam<Getter> {};

TEST_P(CudartGetterTest, WaitsForNothingAfterItsFirstUse) {
  const std::string name = GetParam().name;
  int devices = 0;
  HAWSER_CUDA(cudaGetDeviceCount(&devices));
  if (name == "DeviceGetP2PAttribute" && devices < 2) GTEST_SKIP() << "there is only one device";
  const long waits = WaitsOfRounds("CudartWaits.DISABLED_AGetter", kRounds, {{"HAWSER_TEST_GETTER", name}});
  EXPECT_EQ(waits, name == "MemGetInfo" ? kRounds : 0);
}

INSTANTIATE_TEST_SUITE_P(Getters, CudartGetterTest, testing::ValuesIn(kGetters),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace hawser
