// SPDX-License-Identifier: Apache-2.0
// Beyond the basics: captures with pageable memory, explicit graphs, 2D copies and arrays, pools, virtual memory
// management, managed memory, host functions, queries, the linker, and a process that forks.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <mutex>
#include <numeric>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/integration/cuda_fixture.h"
#include "tests/support/object_file.h"

namespace hawser {
namespace {

constexpr uint32_t kCount = 4096;
constexpr size_t kBytes = kCount * sizeof(uint32_t);

class CudaFeatures : public CudaTest {
 protected:
  void SetUp() override {
    CudaTest::SetUp();
    HAWSER_CU(cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING));
    HAWSER_CU(cuStreamCreate(&other_, CU_STREAM_NON_BLOCKING));
    HAWSER_CU(cuEventCreate(&event_, CU_EVENT_DISABLE_TIMING));
    HAWSER_CU(cuMemAlloc(&memory_, kBytes));
    source_.resize(kCount);
    std::iota(source_.begin(), source_.end(), 1u);
    result_.resize(kCount);
  }
  bool ResultIs(uint32_t times, uint32_t plus) const {
    for (uint32_t i = 0; i < kCount; ++i) {
      if (result_[i] != (i + 1) * times + plus) return false;
    }
    return true;
  }

  CUstream stream_ = nullptr;
  CUstream other_ = nullptr;
  CUevent event_ = nullptr;
  CUdeviceptr memory_ = 0;
  std::vector<uint32_t> source_;
  std::vector<uint32_t> result_;
};

void CUDA_CB Count(void* data) { static_cast<std::atomic<int>*>(data)->fetch_add(1); }

TEST_F(CudaFeatures, HostFunctionsRunInStreamOrder) {
  std::atomic<int> count{0};
  for (int i = 0; i < 10; ++i) HAWSER_CU(cuLaunchHostFunc(stream_, Count, &count));
  HAWSER_CU(cuStreamSynchronize(stream_));
  EXPECT_EQ(count.load(), 10);
}

/// A host function that waits until the test lets it go on.
struct Latch {
  std::mutex mutex;
  std::condition_variable changed;
  bool open = false;

  void Open() {
    const std::lock_guard lock(mutex);
    open = true;
    changed.notify_all();
  }
  static void CUDA_CB Wait(void* data) {
    auto* latch = static_cast<Latch*>(data);
    std::unique_lock lock(latch->mutex);
    latch->changed.wait(lock, [&] { return latch->open; });
  }
};

// What is freed waits for the device, and the device for a function that is still to end: that must be heard of.
TEST_F(CudaFeatures, MemoryIsFreedWhileAHostFunctionRuns) {
  CUdeviceptr memory = 0;
  CUarray array = nullptr;
  CUmodule module = nullptr;
  HAWSER_CU(cuMemAlloc(&memory, kBytes));
  CUDA_ARRAY_DESCRIPTOR shape = {};
  shape.Width = 64;
  shape.Height = 4;
  shape.Format = CU_AD_FORMAT_FLOAT;
  shape.NumChannels = 1;
  HAWSER_CU(cuArrayCreate(&array, &shape));
  HAWSER_CU(cuModuleLoadData(&module, Kernels()));
  Latch latch;
  HAWSER_CU(cuLaunchHostFunc(stream_, Latch::Wait, &latch));
  CUcontext context = nullptr;
  HAWSER_CU(cuCtxGetCurrent(&context));
  std::atomic<int> freed{0};
  std::thread other([&] {
    EXPECT_EQ(cuCtxSetCurrent(context), CUDA_SUCCESS);
    EXPECT_EQ(cuMemFree(memory), CUDA_SUCCESS);
    EXPECT_EQ(cuArrayDestroy(array), CUDA_SUCCESS);
    EXPECT_EQ(cuModuleUnload(module), CUDA_SUCCESS);
    freed = 1;
  });
  // A driver keeps that thread until the function has ended; a remote one need not.
  for (int i = 0; i < 200 && freed.load() == 0; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  latch.Open();
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  CUresult result = CUDA_ERROR_NOT_READY;
  while (result == CUDA_ERROR_NOT_READY && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    result = cuStreamQuery(stream_);
  }
  if (result == CUDA_ERROR_NOT_READY) {
    ADD_FAILURE() << "the device waits for a function that has ended";
    std::_Exit(1);  // Nothing of this would end.
  }
  EXPECT_EQ(result, CUDA_SUCCESS);
  other.join();
}

TEST_F(CudaFeatures, QueriesEndWithSuccess) {
  CUfunction add = Function("add");
  HAWSER_CU(LaunchAdd(add, memory_, kCount, 1, stream_));
  HAWSER_CU(cuEventRecord(event_, stream_));
  CUresult state = CUDA_ERROR_NOT_READY;
  while (state == CUDA_ERROR_NOT_READY) state = cuEventQuery(event_);
  EXPECT_EQ(state, CUDA_SUCCESS);
  state = CUDA_ERROR_NOT_READY;
  while (state == CUDA_ERROR_NOT_READY) state = cuStreamQuery(stream_);
  EXPECT_EQ(state, CUDA_SUCCESS);
}

TEST_F(CudaFeatures, AGraphReadsPageableMemoryWhenItRuns) {
  CUfunction add = Function("add");
  std::atomic<int> count{0};
  HAWSER_CU(cuStreamBeginCapture(stream_, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  CUstreamCaptureStatus status{};
  HAWSER_CU(cuStreamIsCapturing(stream_, &status));
  EXPECT_EQ(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
  HAWSER_CU(cuMemcpyHtoDAsync(memory_, source_.data(), kBytes, stream_));
  HAWSER_CU(LaunchAdd(add, memory_, kCount, 1, stream_));
  // Over to another stream and back.
  HAWSER_CU(cuEventRecord(event_, stream_));
  HAWSER_CU(cuStreamWaitEvent(other_, event_, 0));
  HAWSER_CU(LaunchAdd(add, memory_, kCount, 1, other_));
  HAWSER_CU(cuEventRecord(event_, other_));
  HAWSER_CU(cuStreamWaitEvent(stream_, event_, 0));
  HAWSER_CU(cuMemcpyDtoHAsync(result_.data(), memory_, kBytes, stream_));
  HAWSER_CU(cuLaunchHostFunc(stream_, Count, &count));
  CUgraph graph = nullptr;
  HAWSER_CU(cuStreamEndCapture(stream_, &graph));
  size_t nodes = 0;
  HAWSER_CU(cuGraphGetNodes(graph, nullptr, &nodes));
  EXPECT_EQ(nodes, 5u);
  CUgraphExec exec = nullptr;
  HAWSER_CU(cuGraphInstantiateWithFlags(&exec, graph, 0));
  for (uint32_t round = 1; round <= 3; ++round) {
    for (uint32_t i = 0; i < kCount; ++i) source_[i] = (i + 1) * round;
    std::fill(result_.begin(), result_.end(), 0u);
    HAWSER_CU(cuGraphLaunch(exec, stream_));
    HAWSER_CU(cuStreamSynchronize(stream_));
    EXPECT_TRUE(ResultIs(round, 2)) << "round " << round;
    EXPECT_EQ(count.load(), static_cast<int>(round));
  }
  HAWSER_CU(cuGraphExecDestroy(exec));
  HAWSER_CU(cuGraphDestroy(graph));
}

TEST_F(CudaFeatures, WaitingForACapturedStreamBreaksTheCapture) {
  HAWSER_CU(cuStreamBeginCapture(stream_, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  EXPECT_EQ(cuStreamSynchronize(stream_), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  CUgraph graph = nullptr;
  EXPECT_EQ(cuStreamEndCapture(stream_, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  EXPECT_EQ(graph, nullptr);
  HAWSER_CU(cuStreamSynchronize(stream_));  // The stream goes on as before.
}

TEST_F(CudaFeatures, AStreamThatJoinedACaptureMayEndBeforeIt) {
  for (const bool joined : {true, false}) {
    CUstream side = nullptr;
    HAWSER_CU(cuStreamCreate(&side, CU_STREAM_NON_BLOCKING));
    HAWSER_CU(cuMemsetD32(memory_, 0, kCount));
    HAWSER_CU(cuStreamBeginCapture(stream_, CU_STREAM_CAPTURE_MODE_GLOBAL));
    HAWSER_CU(cuEventRecord(event_, stream_));
    HAWSER_CU(cuStreamWaitEvent(side, event_, 0));
    HAWSER_CU(cuMemsetD32Async(memory_, 7, kCount, side));
    HAWSER_CU(cuEventRecord(event_, side));
    if (joined) HAWSER_CU(cuStreamWaitEvent(stream_, event_, 0));
    HAWSER_CU(cuStreamDestroy(side));
    CUgraph graph = nullptr;
    const CUresult result = cuStreamEndCapture(stream_, &graph);
    if (!joined) {
      EXPECT_EQ(result, CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
      continue;
    }
    HAWSER_CU(result);
    CUgraphExec exec = nullptr;
    HAWSER_CU(cuGraphInstantiate(&exec, graph, 0));
    HAWSER_CU(cuGraphLaunch(exec, stream_));
    HAWSER_CU(cuStreamSynchronize(stream_));
    HAWSER_CU(cuMemcpyDtoH(result_.data(), memory_, kBytes));
    EXPECT_EQ(std::count(result_.begin(), result_.end(), 7u), kCount);
    HAWSER_CU(cuGraphExecDestroy(exec));
    HAWSER_CU(cuGraphDestroy(graph));
  }
}

// What allocation nodes use, and the hints about it.
TEST_F(CudaFeatures, MemoryOfGraphsIsCounted) {
  CUdevice device = 0;
  HAWSER_CU(cuCtxGetDevice(&device));
  uint64_t before = 0, with = 0, high = 1;
  HAWSER_CU(cuDeviceGetGraphMemAttribute(device, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, &before));
  HAWSER_CU(cuStreamBeginCapture(stream_, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  CUdeviceptr memory = 0;
  HAWSER_CU(cuMemAllocAsync(&memory, 1 << 20, stream_));
  HAWSER_CU(cuMemsetD32Async(memory, 1, 1 << 18, stream_));
  CUgraph graph = nullptr;
  HAWSER_CU(cuStreamEndCapture(stream_, &graph));
  CUgraphExec exec = nullptr;
  HAWSER_CU(cuGraphInstantiate(&exec, graph, 0));
  HAWSER_CU(cuGraphLaunch(exec, stream_));
  HAWSER_CU(cuStreamSynchronize(stream_));
  HAWSER_CU(cuDeviceGetGraphMemAttribute(device, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, &with));
  EXPECT_GE(with, before + (1 << 20));
  HAWSER_CU(cuDeviceGetGraphMemAttribute(device, CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH, &high));
  EXPECT_GE(high, with);
  uint64_t reset = 0, wrong = 1;
  HAWSER_CU(cuDeviceSetGraphMemAttribute(device, CU_GRAPH_MEM_ATTR_USED_MEM_HIGH, &reset));
  EXPECT_EQ(cuDeviceSetGraphMemAttribute(device, CU_GRAPH_MEM_ATTR_USED_MEM_HIGH, &wrong), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuDeviceSetGraphMemAttribute(device, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, &reset), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuDeviceGetGraphMemAttribute(99, CU_GRAPH_MEM_ATTR_USED_MEM_HIGH, &high), CUDA_ERROR_INVALID_DEVICE);
  HAWSER_CU(cuDeviceGraphMemTrim(device));
  HAWSER_CU(cuMemFreeAsync(memory, stream_));
  HAWSER_CU(cuStreamSynchronize(stream_));
  HAWSER_CU(cuGraphExecDestroy(exec));
  HAWSER_CU(cuGraphDestroy(graph));
}

TEST_F(CudaFeatures, NodesOneByOne) {
  CUfunction add = Function("add");
  CUgraph graph = nullptr;
  HAWSER_CU(cuGraphCreate(&graph, 0));
  CUDA_MEMSET_NODE_PARAMS fill{};
  fill.dst = memory_;
  fill.elementSize = 4;
  fill.value = 7;
  fill.width = kCount;
  fill.height = 1;
  CUgraphNode first = nullptr;
  HAWSER_CU(cuGraphAddMemsetNode(&first, graph, nullptr, 0, &fill, context_));
  uint32_t count = kCount;
  uint32_t value = 1;
  void* parameters[] = {&memory_, &count, &value};
  CUDA_KERNEL_NODE_PARAMS kernel{};
  kernel.func = add;
  kernel.gridDimX = kCount / 128;
  kernel.gridDimY = kernel.gridDimZ = 1;
  kernel.blockDimX = 128;
  kernel.blockDimY = kernel.blockDimZ = 1;
  kernel.kernelParams = parameters;
  CUgraphNode second = nullptr;
  HAWSER_CU(cuGraphAddKernelNode(&second, graph, &first, 1, &kernel));
  CUDA_MEMCPY3D copy{};
  copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.srcDevice = memory_;
  copy.dstMemoryType = CU_MEMORYTYPE_HOST;
  copy.dstHost = result_.data();
  copy.WidthInBytes = kBytes;
  copy.Height = copy.Depth = 1;
  CUgraphNode third = nullptr;
  HAWSER_CU(cuGraphAddMemcpyNode(&third, graph, &second, 1, &copy, context_));
  size_t edges = 0;
  HAWSER_CU(cuGraphGetEdges(graph, nullptr, nullptr, nullptr, &edges));
  EXPECT_EQ(edges, 2u);
  CUgraphNodeType type{};
  HAWSER_CU(cuGraphNodeGetType(second, &type));
  EXPECT_EQ(type, CU_GRAPH_NODE_TYPE_KERNEL);
  std::string path = testing::TempDir() + "graph_XXXXXX";
  const int file = ::mkstemp(path.data());
  ASSERT_GE(file, 0);
  ::close(file);
  HAWSER_CU(cuGraphDebugDotPrint(graph, path.c_str(), 0));
  std::ostringstream drawing;
  drawing << std::ifstream(path).rdbuf();
  ::unlink(path.c_str());
  EXPECT_EQ(drawing.str().find("digraph"), 0u) << drawing.str();
  EXPECT_NE(drawing.str().find("->"), std::string::npos) << drawing.str();
  EXPECT_EQ(cuGraphDebugDotPrint(graph, "/nowhere/at/all", 0), CUDA_ERROR_OPERATING_SYSTEM);
  EXPECT_EQ(cuGraphDebugDotPrint(graph, nullptr, 0), CUDA_ERROR_INVALID_VALUE);
  CUgraphExec exec = nullptr;
  HAWSER_CU(cuGraphInstantiate(&exec, graph, 0));
  HAWSER_CU(cuGraphLaunch(exec, stream_));
  HAWSER_CU(cuStreamSynchronize(stream_));
  EXPECT_EQ(std::count(result_.begin(), result_.end(), 8u), kCount);
  value = 5;
  HAWSER_CU(cuGraphExecKernelNodeSetParams(exec, second, &kernel));
  HAWSER_CU(cuGraphLaunch(exec, stream_));
  HAWSER_CU(cuStreamSynchronize(stream_));
  EXPECT_EQ(std::count(result_.begin(), result_.end(), 12u), kCount);
  HAWSER_CU(cuGraphExecDestroy(exec));
  HAWSER_CU(cuGraphDestroy(graph));
}

TEST_F(CudaFeatures, TwoDimensionalCopiesTouchTheirRectangleAlone) {
  constexpr size_t kPitch = 120;
  std::vector<unsigned char> from(kPitch * 60);
  std::vector<unsigned char> to(from.size());
  for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<unsigned char>(i * 7 + 1);
  CUdeviceptr rows = 0;
  size_t pitch = 0;
  HAWSER_CU(cuMemAllocPitch(&rows, &pitch, 100, 50, 4));
  CUDA_MEMCPY2D up{};
  up.srcMemoryType = CU_MEMORYTYPE_HOST;
  up.srcHost = from.data();
  up.srcPitch = kPitch;
  up.srcXInBytes = 3;
  up.srcY = 2;
  up.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  up.dstDevice = rows;
  up.dstPitch = pitch;
  up.WidthInBytes = 100;
  up.Height = 50;
  HAWSER_CU(cuMemcpy2D(&up));
  CUDA_MEMCPY2D down{};
  down.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  down.srcDevice = rows;
  down.srcPitch = pitch;
  down.dstMemoryType = CU_MEMORYTYPE_HOST;
  down.dstHost = to.data();
  down.dstPitch = kPitch;
  down.dstXInBytes = 3;
  down.dstY = 2;
  down.WidthInBytes = 100;
  down.Height = 50;
  HAWSER_CU(cuMemcpy2D(&down));
  for (size_t i = 0; i < to.size(); ++i) {
    const size_t x = i % kPitch;
    const size_t y = i / kPitch;
    const bool inside = x >= 3 && x < 103 && y >= 2 && y < 52;
    ASSERT_EQ(to[i], inside ? from[i] : 0) << x << ", " << y;
  }
}

TEST_F(CudaFeatures, ArraysGiveBackWhatTheyWereGiven) {
  CUDA_ARRAY_DESCRIPTOR descriptor{64, 64, CU_AD_FORMAT_UNSIGNED_INT32, 1};
  CUarray array = nullptr;
  HAWSER_CU(cuArrayCreate(&array, &descriptor));
  CUDA_MEMCPY2D up{};
  up.srcMemoryType = CU_MEMORYTYPE_HOST;
  up.srcHost = source_.data();
  up.srcPitch = 256;
  up.dstMemoryType = CU_MEMORYTYPE_ARRAY;
  up.dstArray = array;
  up.WidthInBytes = 256;
  up.Height = 64;
  HAWSER_CU(cuMemcpy2D(&up));
  CUDA_MEMCPY2D down{};
  down.srcMemoryType = CU_MEMORYTYPE_ARRAY;
  down.srcArray = array;
  down.dstMemoryType = CU_MEMORYTYPE_HOST;
  down.dstHost = result_.data();
  down.dstPitch = 256;
  down.WidthInBytes = 256;
  down.Height = 64;
  HAWSER_CU(cuMemcpy2D(&down));
  EXPECT_EQ(result_, source_);
  CUDA_ARRAY_DESCRIPTOR told{};
  HAWSER_CU(cuArrayGetDescriptor(&told, array));
  EXPECT_EQ(told.Width, 64u);
  // It has its memory already.
  CUDA_ARRAY_MEMORY_REQUIREMENTS requirements{};
  CUDA_ARRAY_SPARSE_PROPERTIES tiles{};
  EXPECT_EQ(cuArrayGetMemoryRequirements(&requirements, array, device_), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuArrayGetSparseProperties(&tiles, array), CUDA_ERROR_INVALID_VALUE);
  HAWSER_CU(cuArrayDestroy(array));
  EXPECT_EQ(cuArrayGetMemoryRequirements(&requirements, array, device_), CUDA_ERROR_INVALID_HANDLE);
  // Those that get it later need a device that has them.
  int later = 0;
  HAWSER_CU(cuDeviceGetAttribute(&later, CU_DEVICE_ATTRIBUTE_SPARSE_CUDA_ARRAY_SUPPORTED, device_));
  if (later != 0) return;
  CUDA_ARRAY3D_DESCRIPTOR sparse{64, 64, 0, CU_AD_FORMAT_UNSIGNED_INT32, 1, CUDA_ARRAY3D_SPARSE};
  EXPECT_EQ(cuArray3DCreate(&array, &sparse), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(CudaFeatures, StreamOrderedMemory) {
  CUdeviceptr pooled = 0;
  HAWSER_CU(cuMemAllocAsync(&pooled, kBytes, stream_));
  HAWSER_CU(cuMemsetD32Async(pooled, 9, kCount, stream_));
  HAWSER_CU(cuMemcpyDtoHAsync(result_.data(), pooled, kBytes, stream_));
  HAWSER_CU(cuMemFreeAsync(pooled, stream_));
  HAWSER_CU(cuStreamSynchronize(stream_));
  EXPECT_EQ(std::count(result_.begin(), result_.end(), 9u), kCount);
  EXPECT_EQ(cuMemFreeAsync(pooled, stream_), CUDA_ERROR_INVALID_VALUE);
  CUmemoryPool pool = nullptr;
  HAWSER_CU(cuDeviceGetDefaultMemPool(&pool, device_));
  cuuint64_t threshold = 1 << 20;
  cuuint64_t told = 0;
  HAWSER_CU(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
  HAWSER_CU(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &told));
  EXPECT_EQ(told, threshold);
}

TEST_F(CudaFeatures, VirtualMemory) {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, device_};
  size_t unit = 0;
  HAWSER_CU(cuMemGetAllocationGranularity(&unit, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
  CUdeviceptr range = 0;
  CUmemGenericAllocationHandle physical = 0;
  HAWSER_CU(cuMemAddressReserve(&range, 2 * unit, 0, 0, 0));
  HAWSER_CU(cuMemCreate(&physical, unit, &properties, 0));
  HAWSER_CU(cuMemMap(range, unit, 0, physical, 0));
  const CUmemAccessDesc access{properties.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  HAWSER_CU(cuMemSetAccess(range, unit, &access, 1));
  HAWSER_CU(cuMemsetD32(range, 3, 16));
  HAWSER_CU(cuMemcpyDtoH(result_.data(), range, 64));
  EXPECT_EQ(std::count(result_.begin(), result_.begin() + 16, 3u), 16);
  unsigned kind = 0;
  HAWSER_CU(cuPointerGetAttribute(&kind, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, range + 8));
  EXPECT_EQ(kind, CU_MEMORYTYPE_DEVICE);
  HAWSER_CU(cuMemUnmap(range, unit));
  HAWSER_CU(cuMemRelease(physical));
  HAWSER_CU(cuMemAddressFree(range, 2 * unit));
}

TEST_F(CudaFeatures, ManagedMemoryIsOneForBothSides) {
  CUdeviceptr managed = 0;
  const CUresult made = cuMemAllocManaged(&managed, kBytes, CU_MEM_ATTACH_GLOBAL);
  HAWSER_CU(made);
  auto* numbers = reinterpret_cast<uint32_t*>(managed);
  std::iota(numbers, numbers + kCount, 1u);
  HAWSER_CU(LaunchAdd(Function("add"), managed, kCount, 1, stream_));
  HAWSER_CU(cuStreamSynchronize(stream_));
  std::copy(numbers, numbers + kCount, result_.begin());
  EXPECT_TRUE(ResultIs(1, 1));
  HAWSER_CU(cuMemFree(managed));
}

TEST_F(CudaFeatures, TenThousandLaunchesAllHappen) {
  CUfunction add = Function("add");
  HAWSER_CU(cuMemsetD32(memory_, 0, kCount));
  HAWSER_CU(cuCtxSynchronize());
  for (int i = 0; i < 10000; ++i) HAWSER_CU(LaunchAdd(add, memory_, 32, 1, stream_));
  HAWSER_CU(cuStreamSynchronize(stream_));
  HAWSER_CU(cuMemcpyDtoH(result_.data(), memory_, 4));
  EXPECT_EQ(result_[0], 10000u);
}

TEST_F(CudaFeatures, TheLinkersResultCanBeLoaded) {
  CUlinkState linker = nullptr;
  HAWSER_CU(cuLinkCreate(0, nullptr, nullptr, &linker));
  const std::string text = Kernels();
  std::vector<char> bytes(text.c_str(), text.c_str() + text.size() + 1);
  HAWSER_CU(cuLinkAddData(linker, CU_JIT_INPUT_PTX, bytes.data(), bytes.size(), "kernels.ptx", 0, nullptr, nullptr));
  void* image = nullptr;
  size_t size = 0;
  HAWSER_CU(cuLinkComplete(linker, &image, &size));
  CUmodule module = nullptr;
  HAWSER_CU(cuModuleLoadData(&module, image));
  HAWSER_CU(cuLinkDestroy(linker));
  CUfunction add = nullptr;
  HAWSER_CU(cuModuleGetFunction(&add, module, "add"));
  HAWSER_CU(cuMemcpyHtoD(memory_, source_.data(), kBytes));
  HAWSER_CU(LaunchAdd(add, memory_, kCount, 4, nullptr));
  HAWSER_CU(cuMemcpyDtoH(result_.data(), memory_, kBytes));
  EXPECT_TRUE(ResultIs(1, 4));
}

/// Two units to be linked: a kernel `apply` that stores what a function of the other unit makes of a value.
constexpr char kUnitHead[] = ".version 7.0\n.target sm_75\n.address_size 64\n";
constexpr char kApply[] = R"(
.extern .func (.param .b32 result) change(.param .b32 x);
.visible .entry apply(.param .u64 p, .param .u32 value)
{
  .reg .b32 %r<3>;
  .reg .b64 %d<2>;
  ld.param.u64 %d1, [p];
  ld.param.u32 %r1, [value];
  {
    .param .b32 argument;
    .param .b32 returned;
    st.param.b32 [argument], %r1;
    call.uni (returned), change, (argument);
    ld.param.b32 %r2, [returned];
  }
  st.global.u32 [%d1], %r2;
  ret;
}
)";
/// `change` as this instruction from %r1 to %r2.
std::string Change(const std::string& instruction) {
  return std::string(kUnitHead) + ".visible .func (.param .b32 result) change(.param .b32 x)\n{\n.reg .b32 %r<3>;\n" +
         "ld.param.b32 %r1, [x];\n" + instruction + "\nst.param.b32 [result], %r2;\nret;\n}\n";
}

// Of several units, as numba-cuda links them: its cuda.core then asks the CUkernel for each attribute.
TEST_F(CudaFeatures, KernelsThatTheLinkerMadeAreDescribed) {
  const std::string kernel = std::string(kUnitHead) + kApply;
  const std::string callee = Change("shl.b32 %r2, %r1, 1;");
  CUlinkState linker = nullptr;
  HAWSER_CU(cuLinkCreate(0, nullptr, nullptr, &linker));
  for (const std::string& text : {kernel, callee}) {
    std::vector<char> bytes(text.c_str(), text.c_str() + text.size() + 1);
    HAWSER_CU(cuLinkAddData(linker, CU_JIT_INPUT_PTX, bytes.data(), bytes.size(), "unit", 0, nullptr, nullptr));
  }
  void* image = nullptr;
  size_t size = 0;
  HAWSER_CU(cuLinkComplete(linker, &image, &size));
  CUlibrary library = nullptr;
  HAWSER_CU(cuLibraryLoadData(&library, image, nullptr, nullptr, 0, nullptr, nullptr, 0));
  HAWSER_CU(cuLinkDestroy(linker));
  CUkernel apply = nullptr;
  HAWSER_CU(cuLibraryGetKernel(&apply, library, "apply"));
  for (int attribute = 0; attribute < CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET; ++attribute) {
    int value = -1000;
    HAWSER_CU(cuKernelGetAttribute(&value, static_cast<CUfunction_attribute>(attribute), apply, device_));
    EXPECT_GE(value, -1) << attribute;
  }
  int threads = 0;
  HAWSER_CU(cuKernelGetAttribute(&threads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, apply, device_));
  EXPECT_GT(threads, 0);
  uint32_t value = 21;
  void* parameters[] = {&memory_, &value};
  HAWSER_CU(cuLaunchKernel(reinterpret_cast<CUfunction>(apply), 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr));
  HAWSER_CU(cuMemcpyDtoH(result_.data(), memory_, 4));
  EXPECT_EQ(result_[0], 42u);
  HAWSER_CU(cuLibraryUnload(library));
}

// What nvcc makes with -rdc=true -c, alone and as a library: the device code lies in the host's object file.
TEST_F(CudaFeatures, ObjectFilesAndLibrariesAreLinked) {
  const std::string kernel = std::string(kUnitHead) + kApply;
  const std::string callee = Change("mul.lo.u32 %r2, %r1, 3;");
  hawser::object_file::FileBytes object =
      hawser::object_file::MakeObject("__nv_relfatbin", hawser::object_file::MakeFatbin(kernel));
  hawser::object_file::FileBytes library = hawser::object_file::MakeArchive(
      {hawser::object_file::MakeObject(".text", hawser::object_file::FileBytes(16)),
       hawser::object_file::MakeObject("__nv_relfatbin", hawser::object_file::MakeFatbin(callee))});
  CUlinkState linker = nullptr;
  HAWSER_CU(cuLinkCreate(0, nullptr, nullptr, &linker));
  HAWSER_CU(cuLinkAddData(linker, CU_JIT_INPUT_OBJECT, object.data(), object.size(), "kernel.o", 0, nullptr, nullptr));
  char path[] = "/tmp/hawser-library-XXXXXX";
  const int file = ::mkstemp(path);
  ASSERT_GE(file, 0);
  ASSERT_EQ(::write(file, library.data(), library.size()), static_cast<ssize_t>(library.size()));
  EXPECT_EQ(cuLinkAddFile(linker, CU_JIT_INPUT_LIBRARY, path, 0, nullptr, nullptr), CUDA_SUCCESS);
  ::unlink(path);
  ::close(file);
  void* image = nullptr;
  size_t size = 0;
  HAWSER_CU(cuLinkComplete(linker, &image, &size));
  CUmodule module = nullptr;
  HAWSER_CU(cuModuleLoadData(&module, image));
  HAWSER_CU(cuLinkDestroy(linker));
  CUfunction apply = nullptr;
  HAWSER_CU(cuModuleGetFunction(&apply, module, "apply"));
  uint32_t value = 14;
  void* parameters[] = {&memory_, &value};
  HAWSER_CU(cuLaunchKernel(apply, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr));
  HAWSER_CU(cuMemcpyDtoH(result_.data(), memory_, 4));
  EXPECT_EQ(result_[0], 42u);
}

TEST_F(CudaFeatures, WhatIsNoObjectFileIsNotLinked) {
  CUlinkState linker = nullptr;
  HAWSER_CU(cuLinkCreate(0, nullptr, nullptr, &linker));
  std::vector<std::byte> garbage(100);
  for (const CUjitInputType type : {CU_JIT_INPUT_OBJECT, CU_JIT_INPUT_LIBRARY}) {
    EXPECT_EQ(cuLinkAddData(linker, type, garbage.data(), garbage.size(), "garbage", 0, nullptr, nullptr),
              CUDA_ERROR_INVALID_IMAGE);
  }
  HAWSER_CU(cuLinkDestroy(linker));
}

/// A kernel of blocks of at most `threads`, in which `live` numbers are alive at once.
std::string Crowded(int threads, int live) {
  std::string text =
      ".version 7.0\n.target sm_75\n.address_size 64\n.visible .entry crowded(.param .u64 p)\n.maxntid " +
      std::to_string(threads) + ", 1, 1\n{\n.reg .b64 %d<2>;\n.reg .b32 %r<" + std::to_string(live + 1) +
      ">;\nld.param.u64 %d1, [p];\n";
  for (int i = 0; i < live; ++i) {
    text += "ld.global.u32 %r" + std::to_string(i) + ", [%d1+" + std::to_string(4 * i) + "];\n";
  }
  for (int i = live - 1; i >= 0; --i) {
    text += "st.global.u32 [%d1+" + std::to_string(4 * (live - 1 - i)) + "], %r" + std::to_string(i) + ";\n";
  }
  return text + "ret;\n}\n";
}

// Registers go to warps in units of 256, and each of four schedulers has a quarter of them.
TEST_F(CudaFeatures, OccupancyCountsRegistersByScheduler) {
  CUdevice device = 0;
  HAWSER_CU(cuCtxGetDevice(&device));
  int registers = 0, most_threads = 0, most_blocks = 0;
  HAWSER_CU(cuDeviceGetAttribute(&registers, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, device));
  HAWSER_CU(cuDeviceGetAttribute(&most_threads, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, device));
  HAWSER_CU(cuDeviceGetAttribute(&most_blocks, CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, device));
  for (const int allowed : {1024, 544, 96}) {
    for (const int live : {4, 40, 60, 90, 150}) {
      CUmodule module = nullptr;
      CUfunction function = nullptr;
      HAWSER_CU(cuModuleLoadData(&module, Crowded(allowed, live).c_str()));
      HAWSER_CU(cuModuleGetFunction(&function, module, "crowded"));
      int each = 0;
      HAWSER_CU(cuFuncGetAttribute(&each, CU_FUNC_ATTRIBUTE_NUM_REGS, function));
      const int warps = registers / 4 / ((each * 32 + 255) / 256 * 256) * 4;
      for (int threads = 32; threads <= allowed; threads += 32) {
        const int expected = std::min({most_blocks, most_threads / threads, warps / (threads / 32)});
        int blocks = 0;
        HAWSER_CU(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function, threads, 0));
        EXPECT_EQ(blocks, expected) << each << " registers, " << threads << " threads";
        EXPECT_GT(blocks, 0);
      }
      HAWSER_CU(cuModuleUnload(module));
    }
  }
}

TEST_F(CudaFeatures, AChildOfForkHasNoCuda) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    int count = 0;
    _exit(cuInit(0) == CUDA_ERROR_NOT_INITIALIZED && cuDeviceGetCount(&count) == CUDA_ERROR_NOT_INITIALIZED ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  HAWSER_CU(cuCtxSynchronize());  // The parent does not mind.
}

TEST_F(CudaTest, PoolsAreFoundByPlace) {
  CUmemLocation place{};
  place.type = CU_MEM_LOCATION_TYPE_DEVICE;
  place.id = device_;
  CUmemoryPool first = nullptr, second = nullptr, own = nullptr;
  HAWSER_CU(cuDeviceGetDefaultMemPool(&first, device_));
  HAWSER_CU(cuMemGetDefaultMemPool(&second, &place, CU_MEM_ALLOCATION_TYPE_PINNED));
  EXPECT_EQ(first, second);
  CUmemPoolProps properties{};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = place;
  HAWSER_CU(cuMemPoolCreate(&own, &properties));
  HAWSER_CU(cuMemSetMemPool(&place, CU_MEM_ALLOCATION_TYPE_PINNED, own));
  HAWSER_CU(cuMemGetMemPool(&second, &place, CU_MEM_ALLOCATION_TYPE_PINNED));
  EXPECT_EQ(second, own);
  HAWSER_CU(cuDeviceGetMemPool(&second, device_));
  EXPECT_EQ(second, own);
  HAWSER_CU(cuMemSetMemPool(&place, CU_MEM_ALLOCATION_TYPE_PINNED, first));
  HAWSER_CU(cuMemPoolDestroy(own));
  EXPECT_EQ(cuMemGetMemPool(&second, nullptr, CU_MEM_ALLOCATION_TYPE_PINNED), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemGetDefaultMemPool(&second, &place, CU_MEM_ALLOCATION_TYPE_MANAGED), CUDA_ERROR_NOT_SUPPORTED);
  place.type = CU_MEM_LOCATION_TYPE_HOST;
  EXPECT_EQ(cuMemGetDefaultMemPool(&second, &place, CU_MEM_ALLOCATION_TYPE_PINNED), CUDA_ERROR_NOT_SUPPORTED);
  place.type = CU_MEM_LOCATION_TYPE_DEVICE;
  place.id = 77;
  EXPECT_EQ(cuMemGetMemPool(&second, &place, CU_MEM_ALLOCATION_TYPE_PINNED), CUDA_ERROR_INVALID_DEVICE);
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
// Of CUDA 2: a context ends when it was detached as often as it was attached, and once more.
TEST_F(CudaTest, ContextsEndWhenAllHaveLeft) {
  CUcontext context = nullptr, same = nullptr;
  HAWSER_CU(cuCtxCreate(&context, nullptr, 0, device_));
  EXPECT_EQ(cuCtxAttach(&same, 1), CUDA_ERROR_INVALID_VALUE);
  HAWSER_CU(cuCtxAttach(&same, 0));
  EXPECT_EQ(same, context);
  HAWSER_CU(cuCtxDetach(context));
  CUdeviceptr memory = 0;
  HAWSER_CU(cuMemAlloc(&memory, 64));
  HAWSER_CU(cuCtxDetach(context));
  EXPECT_EQ(cuCtxPushCurrent(context), CUDA_ERROR_INVALID_CONTEXT);
  HAWSER_CU(cuCtxSetCurrent(context_));
  CUexecAffinityParam affinity;
  EXPECT_EQ(cuCtxGetExecAffinity(&affinity, CU_EXEC_AFFINITY_TYPE_SM_COUNT), CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY);
}
#pragma GCC diagnostic pop

}  // namespace
}  // namespace hawser
