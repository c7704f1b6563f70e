// SPDX-License-Identifier: Apache-2.0
// The runtime's entry points on a fake driver: registration, loading, launching, errors, devices, variables.
#include "interposer/cudart/runtime.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <thread>

#include "interposer/cudart/api.h"
#include "tests/unit/interposer_cudart/fake_driver.h"

extern "C" {
void** __cudaRegisterFatBinary(void* wrapper);
void __cudaRegisterFatBinaryEnd(void** handle);
void __cudaUnregisterFatBinary(void** handle);
void __cudaRegisterFunction(void** handle, const char* host, char* device, const char* name, int limit, uint3* thread,
                            uint3* block, dim3* block_dim, dim3* grid_dim, int* warp_size);
void __cudaRegisterVar(void** handle, char* host, char* device, const char* name, int ext, size_t size, int constant,
                       int global);
void __cudaRegisterManagedVar(void** handle, void** pointer, char* device, const char* name, int ext, size_t size,
                              int constant, int global);
char __cudaInitModule(void** handle);
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared_bytes, void* stream);
cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared_bytes, void* stream);
cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* host);
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments, size_t shared_bytes,
                               cudaStream_t stream);
cudaError_t cudaMemcpy_ptds(void* to, const void* from, size_t size, cudaMemcpyKind kind);
cudaError_t cudaMemcpyAsync_ptsz(void* to, const void* from, size_t size, cudaMemcpyKind kind, cudaStream_t stream);
cudaError_t cudaLaunchKernel_ptsz(const void* host, dim3 grid, dim3 block, void** arguments, size_t shared_bytes,
                                  cudaStream_t stream);
cudaError_t cudaGLGetDevices();
}

namespace hawser::cudart::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::StrEq;

// What stands for the host stubs and shadow variables of a compiled program.
char g_stub_a;
char g_stub_b;
int g_shadow[4];
void* g_managed;
int g_wrapper;

class RuntimeTest : public ::testing::Test {
 protected:
  RuntimeTest() : fake_(InstallFakeDriver()) {
    fake_.kernels = {"kernel_a"};
    fake_.globals["shadow"] = std::vector<char>(sizeof(g_shadow));
    fake_.managed["managed"] = std::vector<char>(8);
  }

  void** Register() {
    void** handle = __cudaRegisterFatBinary(&g_wrapper);
    __cudaRegisterFunction(handle, &g_stub_a, nullptr, "kernel_a", -1, nullptr, nullptr, nullptr, nullptr, nullptr);
    __cudaRegisterFunction(handle, &g_stub_b, nullptr, "kernel_b", -1, nullptr, nullptr, nullptr, nullptr, nullptr);
    __cudaRegisterVar(handle, reinterpret_cast<char*>(g_shadow), nullptr, "shadow", 0, sizeof(g_shadow), 0, 0);
    __cudaRegisterFatBinaryEnd(handle);
    return handle;
  }

  cudaError_t LaunchA(dim3 grid = 2, dim3 block = 64) {
    int argument = 42;
    void* arguments[] = {&argument};
    return cudaLaunchKernel(&g_stub_a, grid, block, arguments, 16, nullptr);
  }

  FakeDriver& fake_;
};

TEST_F(RuntimeTest, RegisteringTouchesNoDriver) {
  Register();
  EXPECT_TRUE(fake_.calls.empty());
}

TEST_F(RuntimeTest, TheFirstLaunchLoadsTheImageAndLaterOnesDoNot) {
  Register();
  EXPECT_EQ(LaunchA(), cudaSuccess);
  EXPECT_EQ(LaunchA(), cudaSuccess);
  EXPECT_THAT(fake_.loaded, ElementsAre(&g_wrapper));
  EXPECT_EQ(fake_.calls["cuLibraryGetKernel"], 1);
  ASSERT_EQ(fake_.launches.size(), 2U);
  EXPECT_EQ(fake_.launches[1].kernel, "kernel_a");
  EXPECT_EQ(fake_.launches[1].grid, 2U);
  EXPECT_EQ(fake_.launches[1].block, 64U);
  EXPECT_EQ(fake_.launches[1].shared_bytes, 16U);
  EXPECT_EQ(fake_.launches[1].first_argument, 42);
}

TEST_F(RuntimeTest, Cuda13LaunchesThroughAKernelHandle) {
  Register();
  cudaKernel_t kernel = nullptr;
  EXPECT_EQ(__cudaGetKernel(&kernel, &g_stub_a), cudaSuccess);
  EXPECT_EQ(__cudaPushCallConfiguration(dim3(3), dim3(32), 8, nullptr), 0U);
  dim3 grid;
  dim3 block;
  size_t shared_bytes = 0;
  cudaStream_t stream = nullptr;
  EXPECT_EQ(__cudaPopCallConfiguration(&grid, &block, &shared_bytes, &stream), cudaSuccess);
  int argument = 7;
  void* arguments[] = {&argument};
  EXPECT_EQ(__cudaLaunchKernel(kernel, grid, block, arguments, shared_bytes, stream), cudaSuccess);
  ASSERT_EQ(fake_.launches.size(), 1U);
  EXPECT_EQ(fake_.launches[0].grid, 3U);
  EXPECT_EQ(fake_.launches[0].first_argument, 7);
}

TEST_F(RuntimeTest, AKernelHandleStandsForTheStub) {
  Register();
  cudaKernel_t kernel = nullptr;
  EXPECT_EQ(cudaGetKernel(&kernel, &g_stub_a), cudaSuccess);
  EXPECT_EQ(cudaLaunchKernel(reinterpret_cast<const void*>(kernel), dim3(1), dim3(1), nullptr, 0, nullptr),
            cudaSuccess);
  EXPECT_EQ(fake_.launches.size(), 1U);
}

TEST_F(RuntimeTest, ConfigurationsNest) {
  dim3 grid;
  dim3 block;
  size_t shared_bytes = 0;
  cudaStream_t stream = nullptr;
  EXPECT_EQ(__cudaPushCallConfiguration(dim3(1), dim3(1), 0, nullptr), 0U);
  EXPECT_EQ(__cudaPushCallConfiguration(dim3(2), dim3(1), 0, nullptr), 0U);
  EXPECT_EQ(__cudaPopCallConfiguration(&grid, &block, &shared_bytes, &stream), cudaSuccess);
  EXPECT_EQ(grid.x, 2U);
  EXPECT_EQ(__cudaPopCallConfiguration(&grid, &block, &shared_bytes, &stream), cudaSuccess);
  EXPECT_EQ(grid.x, 1U);
  EXPECT_EQ(__cudaPopCallConfiguration(&grid, &block, &shared_bytes, &stream), cudaErrorMissingConfiguration);
}

TEST_F(RuntimeTest, LaunchErrorsComeFromTheVeryCall) {
  Register();
  EXPECT_EQ(LaunchA(0), cudaErrorInvalidConfiguration);
  EXPECT_EQ(LaunchA(1, 1025), cudaErrorInvalidConfiguration);
  EXPECT_EQ(LaunchA(1, dim3(1, 1, 65)), cudaErrorInvalidConfiguration);
  EXPECT_EQ(LaunchA(1, dim3(64, 32)), cudaErrorInvalidConfiguration);
  EXPECT_EQ(LaunchA(dim3(1, 65536)), cudaErrorInvalidConfiguration);
  EXPECT_EQ(cudaLaunchKernel(nullptr, dim3(1), dim3(1), nullptr, 0, nullptr), cudaErrorInvalidDeviceFunction);
  EXPECT_EQ(cudaLaunchKernel(&fake_, dim3(1), dim3(1), nullptr, 0, nullptr), cudaErrorInvalidDeviceFunction);
  EXPECT_EQ(cudaLaunchKernel(&g_stub_b, dim3(1), dim3(1), nullptr, 0, nullptr), cudaErrorInvalidDeviceFunction);
  EXPECT_TRUE(fake_.launches.empty());
}

TEST_F(RuntimeTest, AnImageThatDoesNotLoadFailsEachLaunchWithTheReason) {
  fake_.load_result = CUDA_ERROR_NO_BINARY_FOR_GPU;
  Register();
  EXPECT_EQ(LaunchA(), cudaErrorNoKernelImageForDevice);
  EXPECT_EQ(LaunchA(), cudaErrorNoKernelImageForDevice);
  EXPECT_EQ(fake_.loaded.size(), 1U);
  cudaKernel_t kernel = nullptr;
  EXPECT_EQ(__cudaGetKernel(&kernel, &g_stub_a), cudaErrorNoKernelImageForDevice);
  EXPECT_EQ(kernel, nullptr);
  EXPECT_EQ(__cudaLaunchKernel(kernel, dim3(1), dim3(1), nullptr, 0, nullptr), cudaErrorNoKernelImageForDevice);
}

TEST_F(RuntimeTest, UnregisteredKernelsAreGone) {
  void** handle = Register();
  EXPECT_EQ(LaunchA(), cudaSuccess);
  __cudaUnregisterFatBinary(handle);
  __cudaUnregisterFatBinary(handle);  // An exit handler may come again.
  EXPECT_EQ(fake_.calls["cuLibraryUnload"], 1);
  EXPECT_EQ(LaunchA(), cudaErrorInvalidDeviceFunction);
  Register();
  EXPECT_EQ(LaunchA(), cudaSuccess);
}

TEST_F(RuntimeTest, VariablesAreCopiedByTheirHostAddress) {
  Register();
  const int values[] = {1, 2, 3, 4};
  int back[4] = {};
  EXPECT_EQ(cudaMemcpyToSymbol(g_shadow, values, sizeof(values), 0, cudaMemcpyHostToDevice), cudaSuccess);
  EXPECT_EQ(cudaMemcpyFromSymbol(back, g_shadow, 8, 8, cudaMemcpyDeviceToHost), cudaSuccess);
  EXPECT_EQ(back[0], 3);
  EXPECT_EQ(fake_.calls["cuLibraryGetGlobal"], 1) << "the address is asked for once";
  EXPECT_EQ(cudaMemcpyToSymbol(g_shadow, values, 16, 4, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpyToSymbol(g_shadow, values, 1, SIZE_MAX, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpyToSymbol(g_shadow, values, 4, 0, cudaMemcpyDeviceToHost), cudaErrorInvalidMemcpyDirection);
  EXPECT_EQ(cudaMemcpyToSymbol(&fake_, values, 4, 0, cudaMemcpyHostToDevice), cudaErrorInvalidSymbol);
  size_t size = 0;
  void* address = nullptr;
  EXPECT_EQ(cudaGetSymbolSize(&size, g_shadow), cudaSuccess);
  EXPECT_EQ(size, sizeof(g_shadow));
  EXPECT_EQ(cudaGetSymbolAddress(&address, g_shadow), cudaSuccess);
  EXPECT_EQ(address, fake_.globals["shadow"].data());
}

TEST_F(RuntimeTest, AResetForgetsAddresses) {
  Register();
  void* address = nullptr;
  EXPECT_EQ(cudaGetSymbolAddress(&address, g_shadow), cudaSuccess);
  EXPECT_EQ(cudaDeviceReset(), cudaSuccess);
  EXPECT_EQ(fake_.calls["cuDevicePrimaryCtxRelease"], 1);
  fake_.globals["shadow"] = std::vector<char>(1 << 16);
  EXPECT_EQ(cudaGetSymbolAddress(&address, g_shadow), cudaSuccess);
  EXPECT_EQ(address, fake_.globals["shadow"].data());
}

TEST_F(RuntimeTest, ManagedVariablesArePlacedBeforeTheirFirstUse) {
  void** handle = Register();
  __cudaRegisterManagedVar(handle, &g_managed, nullptr, "managed", 0, 8, 0, 0);
  g_managed = nullptr;
  EXPECT_EQ(__cudaInitModule(handle), 1);
  EXPECT_EQ(g_managed, fake_.managed["managed"].data());
  void* address = nullptr;
  EXPECT_EQ(cudaGetSymbolAddress(&address, g_managed), cudaSuccess);
  EXPECT_EQ(address, g_managed);
}

TEST_F(RuntimeTest, ManagedVariablesThatTheHostCannotReachAreNotGivenOut) {
  fake_.managed_reachable = false;
  void** handle = Register();
  __cudaRegisterManagedVar(handle, &g_managed, nullptr, "managed", 0, 8, 0, 0);
  g_managed = nullptr;
  EXPECT_EQ(__cudaInitModule(handle), 0);
  EXPECT_EQ(g_managed, nullptr);
  EXPECT_EQ(cudaGetLastError(), cudaErrorNotSupported);
}

TEST_F(RuntimeTest, TheLastErrorIsGivenOnceAndKeptUntilThen) {
  EXPECT_EQ(cudaMalloc(nullptr, 4), cudaErrorInvalidValue);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(cudaPeekAtLastError(), cudaErrorInvalidValue);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidValue);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

TEST_F(RuntimeTest, ErrorsBelongToTheirThread) {
  EXPECT_EQ(cudaMalloc(nullptr, 4), cudaErrorInvalidValue);
  std::thread([] { EXPECT_EQ(cudaGetLastError(), cudaSuccess); }).join();
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidValue);
}

TEST_F(RuntimeTest, NotReadyIsNoError) {
  EXPECT_EQ(cudaStreamQuery(nullptr), cudaErrorNotReady);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

TEST_F(RuntimeTest, AKernelFaultSticksUntilTheReset) {
  fake_.next_sync = CUDA_ERROR_ILLEGAL_ADDRESS;
  EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
  EXPECT_EQ(cudaGetLastError(), cudaErrorIllegalAddress);
  EXPECT_EQ(cudaMalloc(nullptr, 4), cudaErrorInvalidValue);
  EXPECT_EQ(cudaGetLastError(), cudaErrorIllegalAddress);
  fake_.next_sync = CUDA_SUCCESS;
  EXPECT_EQ(cudaDeviceReset(), cudaSuccess);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
}

TEST_F(RuntimeTest, AKernelFaultSticksInEachThreadUntilAnyResets) {
  EXPECT_EQ(cudaFree(nullptr), cudaSuccess);
  fake_.next_sync = CUDA_ERROR_ILLEGAL_ADDRESS;
  EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
  EXPECT_EQ(cudaGetLastError(), cudaErrorIllegalAddress);
  EXPECT_EQ(cudaPeekAtLastError(), cudaErrorIllegalAddress);
  fake_.next_sync = CUDA_SUCCESS;
  std::thread([] { EXPECT_EQ(cudaDeviceReset(), cudaSuccess); }).join();
  EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess) << "it was the context's";
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  EXPECT_EQ(cudaMalloc(nullptr, 4), cudaErrorInvalidValue);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidValue) << "another one takes its place";
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  // The new context has errors of its own.
  fake_.next_sync = CUDA_ERROR_ILLEGAL_ADDRESS;
  EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
  EXPECT_EQ(cudaGetLastError(), cudaErrorIllegalAddress);
  EXPECT_EQ(cudaGetLastError(), cudaErrorIllegalAddress);
}

TEST_F(RuntimeTest, AnOrdinaryErrorIsTheThreadsAndOutlivesAReset) {
  EXPECT_EQ(cudaMalloc(nullptr, 4), cudaErrorInvalidValue);
  std::thread([] { EXPECT_EQ(cudaDeviceReset(), cudaSuccess); }).join();
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidValue);
}

TEST_F(RuntimeTest, AResetIsSeenByOtherThreads) {
  EXPECT_EQ(cudaFree(nullptr), cudaSuccess);
  std::thread other([this] {
    EXPECT_EQ(cudaFree(nullptr), cudaSuccess);
    std::thread([] { EXPECT_EQ(cudaDeviceReset(), cudaSuccess); }).join();
    const int before = fake_.calls["cuCtxSetCurrent"];
    EXPECT_EQ(cudaFree(nullptr), cudaSuccess);
    EXPECT_EQ(fake_.calls["cuCtxSetCurrent"], before + 1);
  });
  other.join();
}

TEST_F(RuntimeTest, GettersAskTheDriverOnce) {
  cudaDeviceProp properties;
  EXPECT_EQ(cudaGetDeviceProperties(&properties, 1), cudaSuccess);
  EXPECT_STREQ(properties.name, "Fake 1");
  EXPECT_EQ(properties.major, 9);
  EXPECT_EQ(properties.totalGlobalMem, size_t{1} << 30);
  EXPECT_EQ(properties.maxThreadsDim[2], 64);
  EXPECT_EQ(properties.mpsEnabled, 0);
  int value = 0;
  EXPECT_EQ(cudaDeviceGetAttribute(&value, cudaDevAttrClockRate, 0), cudaSuccess);
  EXPECT_EQ(value, 1234567);
  const auto total = [this] {
    return std::accumulate(fake_.calls.begin(), fake_.calls.end(), 0,
                           [](int sum, const auto& entry) { return sum + entry.second; });
  };
  const int before = total();
  int ordinal = -1;
  int count = 0;
  EXPECT_EQ(cudaGetDeviceProperties(&properties, 1), cudaSuccess);
  EXPECT_EQ(cudaDeviceGetAttribute(&value, cudaDevAttrClockRate, 0), cudaSuccess);
  EXPECT_EQ(cudaGetDevice(&ordinal), cudaSuccess);
  EXPECT_EQ(cudaGetDeviceCount(&count), cudaSuccess);
  EXPECT_EQ(total(), before);
}

TEST_F(RuntimeTest, RefusesWhatIsNoDevice) {
  cudaDeviceProp properties;
  int value = 0;
  EXPECT_EQ(cudaSetDevice(2), cudaErrorInvalidDevice);
  EXPECT_EQ(cudaSetDevice(-1), cudaErrorInvalidDevice);
  EXPECT_EQ(cudaGetDeviceProperties(&properties, 2), cudaErrorInvalidDevice);
  EXPECT_EQ(cudaGetDeviceProperties(nullptr, 0), cudaErrorInvalidValue);
  EXPECT_EQ(cudaDeviceGetAttribute(&value, static_cast<cudaDeviceAttr>(100000), 0), cudaErrorInvalidValue);
  EXPECT_EQ(cudaGetDevice(&value), cudaSuccess);
  EXPECT_EQ(value, 0);
}

TEST_F(RuntimeTest, TheDeviceIsChosenByThread) {
  int ordinal = -1;
  EXPECT_EQ(cudaSetDevice(1), cudaSuccess);
  EXPECT_EQ(cudaGetDevice(&ordinal), cudaSuccess);
  EXPECT_EQ(ordinal, 1);
  std::thread([] {
    int theirs = -1;
    EXPECT_EQ(cudaGetDevice(&theirs), cudaSuccess);
    EXPECT_EQ(theirs, 0);
  }).join();
}

TEST_F(RuntimeTest, WithoutADriverTheErrorSaysSo) {
  FakeDriver& fake = InstallFakeDriver();
  fake.init_result = CUDA_ERROR_NO_DEVICE;
  int count = 7;
  EXPECT_EQ(cudaGetDeviceCount(&count), cudaErrorNoDevice);
  EXPECT_EQ(count, 0);
  EXPECT_EQ(cudaMalloc(reinterpret_cast<void**>(&count), 4), cudaErrorNoDevice);
}

TEST_F(RuntimeTest, CopiesCheckTheirArguments) {
  char data[8] = "hello";
  char other[8] = {};
  EXPECT_EQ(cudaMemcpy(other, data, 8, cudaMemcpyDefault), cudaSuccess);
  EXPECT_THAT(other, StrEq("hello"));
  EXPECT_EQ(cudaMemcpy(other, data, 8, static_cast<cudaMemcpyKind>(9)), cudaErrorInvalidMemcpyDirection);
  EXPECT_EQ(cudaMemcpy(nullptr, data, 8, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy(nullptr, nullptr, 0, cudaMemcpyHostToDevice), cudaSuccess);
  EXPECT_EQ(cudaMemcpy2D(other, 4, data, 8, 8, 1, cudaMemcpyHostToDevice), cudaErrorInvalidPitchValue);
}

TEST_F(RuntimeTest, AllocationsFollowTheManual) {
  void* pointer = &fake_;
  EXPECT_EQ(cudaMalloc(&pointer, 0), cudaSuccess);
  EXPECT_EQ(pointer, nullptr);
  EXPECT_EQ(cudaMalloc(&pointer, size_t{1} << 40), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaMalloc(&pointer, 16), cudaSuccess);
  EXPECT_NE(pointer, nullptr);
  EXPECT_EQ(cudaFree(pointer), cudaSuccess);
  EXPECT_EQ(cudaFree(nullptr), cudaSuccess);
  EXPECT_EQ(cudaMallocManaged(&pointer, 0), cudaErrorInvalidValue);
}

TEST_F(RuntimeTest, StreamOrderedMemoryHasAnAddress) {
  void* pointer = nullptr;
  EXPECT_EQ(cudaMallocAsync(&pointer, 16, nullptr), cudaSuccess);
  EXPECT_NE(pointer, nullptr);
  EXPECT_EQ(cudaFreeAsync(pointer, nullptr), cudaSuccess);
  EXPECT_EQ(cudaMallocAsync(&pointer, 0, nullptr), cudaSuccess);
  EXPECT_EQ(pointer, nullptr);
}

TEST_F(RuntimeTest, ThePerThreadFlavourUsesTheThreadsStream) {
  Register();
  char data[8] = {};
  char other[8] = {};
  const auto own = reinterpret_cast<cudaStream_t>(uintptr_t{0x5000});
  EXPECT_EQ(cudaMemcpyAsync(other, data, 8, cudaMemcpyHostToDevice, nullptr), cudaSuccess);
  EXPECT_EQ(cudaMemcpyAsync_ptsz(other, data, 8, cudaMemcpyHostToDevice, nullptr), cudaSuccess);
  EXPECT_EQ(cudaMemcpyAsync_ptsz(other, data, 8, cudaMemcpyHostToDevice, own), cudaSuccess);
  EXPECT_EQ(cudaMemcpy_ptds(other, data, 8, cudaMemcpyHostToDevice), cudaSuccess);
  EXPECT_THAT(fake_.async_streams, ElementsAre(nullptr, CU_STREAM_PER_THREAD, own, CU_STREAM_PER_THREAD));
  EXPECT_EQ(fake_.calls["cuStreamSynchronize"], 1) << "the synchronous copy waits";
  EXPECT_EQ(cudaLaunchKernel_ptsz(&g_stub_a, dim3(1), dim3(1), nullptr, 0, nullptr), cudaSuccess);
  EXPECT_EQ(cudaLaunchKernel(&g_stub_a, dim3(1), dim3(1), nullptr, 0, nullptr), cudaSuccess);
  EXPECT_EQ(fake_.launches[0].stream, CU_STREAM_PER_THREAD);
  EXPECT_EQ(fake_.launches[1].stream, nullptr);
}

TEST_F(RuntimeTest, AContextOfTheProgramIsLeftCurrent) {
  const auto theirs = reinterpret_cast<CUcontext>(uintptr_t{0x9001});  // On device 1.
  EXPECT_EQ(cudaFree(nullptr), cudaSuccess);
  Runtime::Get().driver().cuCtxSetCurrent(theirs);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  CUcontext current = nullptr;
  Runtime::Get().driver().cuCtxGetCurrent(&current);
  EXPECT_EQ(current, theirs);
  int ordinal = -1;
  EXPECT_EQ(cudaGetDevice(&ordinal), cudaSuccess);
  EXPECT_EQ(ordinal, 1);
}

TEST_F(RuntimeTest, WhatIsNotThereIsNotSupported) {
  EXPECT_EQ(cudaGLGetDevices(), cudaErrorNotSupported);
  // The fake driver has no such function.
  EXPECT_EQ(cudaCtxResetPersistingL2Cache(), cudaErrorNotSupported);
  const void* table = &fake_;
  EXPECT_NE(cudaGetExportTable(&table, nullptr), cudaSuccess);
}

TEST_F(RuntimeTest, DriverEntryPoints) {
  void* function = nullptr;
  auto status = cudaDriverEntryPointSymbolNotFound;
  EXPECT_EQ(cudaGetDriverEntryPointByVersion("cuInit", &function, 12000, cudaEnableDefault, &status), cudaSuccess);
  EXPECT_EQ(status, cudaDriverEntryPointSuccess);
  EXPECT_EQ(function, reinterpret_cast<void*>(0x4000 + CU_GET_PROC_ADDRESS_LEGACY_STREAM));
  EXPECT_EQ(cudaGetDriverEntryPointByVersion("cuNothing", &function, 12000, cudaEnableDefault, &status), cudaSuccess);
  EXPECT_EQ(status, cudaDriverEntryPointSymbolNotFound);
  EXPECT_EQ(function, nullptr);
  EXPECT_EQ(cudaGetDriverEntryPointByVersion(nullptr, &function, 12000, cudaEnableDefault, &status),
            cudaErrorInvalidValue);
}

TEST(ErrorTexts, NameAndDescribe) {
  EXPECT_STREQ(cudaGetErrorName(cudaErrorIllegalAddress), "cudaErrorIllegalAddress");
  EXPECT_STREQ(cudaGetErrorString(cudaSuccess), "no error");
  EXPECT_STREQ(cudaGetErrorName(static_cast<cudaError_t>(12345)), "unrecognized error code");
  EXPECT_EQ(FromDriver(CUDA_ERROR_NO_BINARY_FOR_GPU), cudaErrorNoKernelImageForDevice);
  EXPECT_EQ(FromDriver(CUDA_ERROR_INVALID_CONTEXT), cudaErrorDeviceUninitialized);
  EXPECT_EQ(FromDriver(CUDA_ERROR_CONTEXT_ALREADY_CURRENT), cudaErrorUnknown);
}

}  // namespace
}  // namespace hawser::cudart::testing
