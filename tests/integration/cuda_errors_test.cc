// SPDX-License-Identifier: Apache-2.0
// Errors come where the CUDA manuals say: what can be known at once by the very call, a kernel's fault by the next call
// that may return it, and then for good.
#include <elf.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <future>
#include <string>
#include <thread>

#include "tests/integration/cuda_fixture.h"

namespace hawser {
namespace {

class CudaErrors : public CudaTest {
 protected:
  CUresult Launch(CUfunction function, unsigned grid, unsigned block, unsigned shared) {
    CUdeviceptr memory = 0;
    uint32_t value = 0;
    void* parameters[] = {&memory, &value, &value, &value};
    return cuLaunchKernel(function, grid, 1, 1, block, 1, 1, shared, nullptr, parameters, nullptr);
  }
};

TEST_F(CudaErrors, BadLaunchesAreRefusedByTheVeryCall) {
  CUfunction add = Function("add");
  EXPECT_EQ(Launch(add, 0, 32, 0), CUDA_ERROR_INVALID_VALUE) << "an empty grid";
  EXPECT_EQ(Launch(add, 1, 0, 0), CUDA_ERROR_INVALID_VALUE) << "an empty block";
  EXPECT_EQ(Launch(add, 1, 100000, 0), CUDA_ERROR_INVALID_VALUE) << "more threads than a block has";
  EXPECT_EQ(Launch(add, 1, 32, 64u << 20), CUDA_ERROR_INVALID_VALUE) << "more shared memory than there is";
  EXPECT_EQ(Launch(nullptr, 1, 32, 0), CUDA_ERROR_INVALID_HANDLE) << "no function";
  EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS) << "nothing of that breaks the context";
}

// Blocks that wait for each other must all be on the device at once.
TEST_F(CudaErrors, CooperativeLaunchesThatDoNotFitAreRefusedByTheVeryCall) {
  CUfunction add = Function("add");
  int each = 0, multiprocessors = 0;
  HAWSER_CU(cuOccupancyMaxActiveBlocksPerMultiprocessor(&each, add, 32, 0));
  HAWSER_CU(cuDeviceGetAttribute(&multiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device_));
  const auto most = static_cast<unsigned>(each * multiprocessors);
  CUdeviceptr memory = 0;
  uint32_t count = 0, value = 0;
  void* parameters[] = {&memory, &count, &value};
  EXPECT_EQ(cuLaunchCooperativeKernel(add, most + 1, 1, 1, 32, 1, 1, 0, nullptr, parameters),
            CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
  EXPECT_EQ(cuLaunchCooperativeKernel(add, 1, most + 1, 1, 32, 1, 1, 0, nullptr, parameters),
            CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
  EXPECT_EQ(cuLaunchCooperativeKernel(add, most + 1, 1, 1, 2048, 1, 1, 0, nullptr, parameters),
            CUDA_ERROR_INVALID_VALUE)
      << "no such block";
  CUlaunchAttribute attribute{};
  attribute.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
  attribute.value.cooperative = 1;
  CUlaunchConfig config{};
  config.gridDimX = most + 1;
  config.gridDimY = config.gridDimZ = 1;
  config.blockDimX = 32;
  config.blockDimY = config.blockDimZ = 1;
  config.attrs = &attribute;
  config.numAttrs = 1;
  EXPECT_EQ(cuLaunchKernelEx(&config, add, parameters, nullptr), CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
  EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS) << "nothing of that breaks the context";
  HAWSER_CU(cuLaunchCooperativeKernel(add, most, 1, 1, 32, 1, 1, 0, nullptr, parameters));
  attribute.value.cooperative = 0;
  HAWSER_CU(cuLaunchKernelEx(&config, add, parameters, nullptr));
  HAWSER_CU(cuCtxSynchronize());
}

TEST_F(CudaErrors, WhatIsNotThereIsNotFound) {
  (void)Function("add");
  CUfunction function = nullptr;
  EXPECT_EQ(cuModuleGetFunction(&function, module_, "no_such_kernel"), CUDA_ERROR_NOT_FOUND);
  CUdeviceptr address = 0;
  size_t size = 0;
  EXPECT_EQ(cuModuleGetGlobal(&address, &size, module_, "no_such_variable"), CUDA_ERROR_NOT_FOUND);
  CUdevice device = 0;
  EXPECT_EQ(cuDeviceGet(&device, 1000), CUDA_ERROR_INVALID_DEVICE);
}

TEST_F(CudaErrors, BadImagesAreRefusedByTheLoad) {
  CUmodule module = nullptr;
  EXPECT_EQ(cuModuleLoadData(&module, "this is no PTX"), CUDA_ERROR_INVALID_IMAGE);
  EXPECT_EQ(cuModuleLoadData(&module, ".version 7.0\n.target sm_75\n.address_size 64\n.entry broken( {\n"),
            CUDA_ERROR_INVALID_PTX);
  EXPECT_EQ(cuModuleLoadData(&module, nullptr), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(CudaErrors, DestroyedHandlesAreKnown) {
  CUstream stream = nullptr;
  HAWSER_CU(cuStreamCreate(&stream, CU_STREAM_DEFAULT));
  HAWSER_CU(cuStreamDestroy(stream));
  EXPECT_EQ(cuStreamSynchronize(stream), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(cuStreamQuery(stream), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(cuStreamDestroy(stream), CUDA_ERROR_INVALID_HANDLE);
  CUevent event = nullptr;
  HAWSER_CU(cuEventCreate(&event, CU_EVENT_DEFAULT));
  HAWSER_CU(cuEventDestroy(event));
  EXPECT_EQ(cuEventRecord(event, nullptr), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(cuStreamWaitEvent(nullptr, event, 0), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(cuEventSynchronize(event), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(cuEventDestroy(event), CUDA_ERROR_INVALID_HANDLE);
  CUdeviceptr memory = 0;
  HAWSER_CU(cuMemAlloc(&memory, 64));
  HAWSER_CU(cuMemFree(memory));
  EXPECT_EQ(cuMemFree(memory), CUDA_ERROR_INVALID_VALUE);
  uint32_t value = 0;
  EXPECT_EQ(cuMemcpyDtoH(&value, memory, 4), CUDA_ERROR_INVALID_VALUE);
  const CUfunction add = Function("add");
  HAWSER_CU(cuModuleUnload(module_));
  CUfunction again = nullptr;
  EXPECT_EQ(cuModuleGetFunction(&again, module_, "add"), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(cuModuleUnload(module_), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(Launch(add, 1, 32, 0), CUDA_ERROR_INVALID_HANDLE);
  module_ = nullptr;
  CUDA_ARRAY3D_DESCRIPTOR shape{};
  shape.Width = shape.Height = 4;
  shape.Format = CU_AD_FORMAT_UNSIGNED_INT8;
  shape.NumChannels = 1;
  CUarray array = nullptr;
  HAWSER_CU(cuArray3DCreate(&array, &shape));
  HAWSER_CU(cuArrayDestroy(array));
  EXPECT_EQ(cuArray3DGetDescriptor(&shape, array), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(cuArrayDestroy(array), CUDA_ERROR_INVALID_HANDLE);
  HAWSER_CU(cuCtxSynchronize());
}

TEST_F(CudaErrors, DestroyedContextsAreKnown) {
  CUcontext context = nullptr;
  HAWSER_CU(cuCtxCreate(&context, nullptr, 0, device_));
  CUstream stream = nullptr;
  HAWSER_CU(cuStreamCreate(&stream, CU_STREAM_DEFAULT));
  HAWSER_CU(cuCtxDestroy(context));
  EXPECT_EQ(cuCtxDestroy(context), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_EQ(cuCtxSetCurrent(context), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_EQ(cuCtxPushCurrent(context), CUDA_ERROR_INVALID_CONTEXT);
  HAWSER_CU(cuCtxSetCurrent(context_));
  EXPECT_EQ(cuStreamSynchronize(stream), CUDA_ERROR_INVALID_HANDLE) << "it ended with its context";
  HAWSER_CU(cuCtxSynchronize());
  // Another thread's current one.
  HAWSER_CU(cuCtxCreate(&context, nullptr, 0, device_));
  std::thread other([context] { EXPECT_EQ(cuCtxDestroy(context), CUDA_SUCCESS); });
  other.join();
  EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_CONTEXT_IS_DESTROYED);
  HAWSER_CU(cuCtxSetCurrent(context_));
}

// The manual has no CUDA_ERROR_INVALID_HANDLE for calls about graphs and pools.
TEST_F(CudaErrors, DestroyedGraphsAndPoolsAreKnown) {
  CUgraph graph = nullptr;
  HAWSER_CU(cuGraphCreate(&graph, 0));
  CUgraphNode node = nullptr, other = nullptr;
  HAWSER_CU(cuGraphAddEmptyNode(&node, graph, nullptr, 0));
  CUgraphExec exec = nullptr;
  HAWSER_CU(cuGraphInstantiate(&exec, graph, 0));
  HAWSER_CU(cuGraphExecDestroy(exec));
  EXPECT_EQ(cuGraphLaunch(exec, nullptr), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuGraphExecDestroy(exec), CUDA_ERROR_INVALID_VALUE);
  HAWSER_CU(cuGraphDestroyNode(node));
  CUgraphNodeType type{};
  EXPECT_EQ(cuGraphNodeGetType(node, &type), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuGraphAddEmptyNode(&other, graph, &node, 1), CUDA_ERROR_INVALID_VALUE);
  HAWSER_CU(cuGraphDestroy(graph));
  size_t count = 0;
  EXPECT_EQ(cuGraphGetNodes(graph, nullptr, &count), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuGraphAddEmptyNode(&other, graph, nullptr, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuGraphInstantiate(&exec, graph, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuGraphDestroy(graph), CUDA_ERROR_INVALID_VALUE);
  CUmemPoolProps properties{};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, {device_}};
  CUmemoryPool pool = nullptr;
  HAWSER_CU(cuMemPoolCreate(&pool, &properties));
  HAWSER_CU(cuMemPoolDestroy(pool));
  CUdeviceptr memory = 0;
  EXPECT_EQ(cuMemAllocFromPoolAsync(&memory, 64, pool, nullptr), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemPoolTrimTo(pool, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemPoolDestroy(pool), CUDA_ERROR_INVALID_VALUE);
  HAWSER_CU(cuCtxSynchronize());
}

TEST_F(CudaErrors, TooMuchMemoryIsRefusedByTheVeryCall) {
  size_t free = 0, total = 0;
  HAWSER_CU(cuMemGetInfo(&free, &total));
  CUdeviceptr memory = 0;
  EXPECT_EQ(cuMemAlloc(&memory, total + (1u << 20)), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(cuMemAlloc(&memory, 0), CUDA_ERROR_INVALID_VALUE);
  HAWSER_CU(cuMemAlloc(&memory, 1u << 20));
  HAWSER_CU(cuMemFree(memory));
}

TEST_F(CudaErrors, CopiesOutsideOfAllocationsAreRefused) {
  CUdeviceptr memory = 0;
  HAWSER_CU(cuMemAlloc(&memory, 1024));
  std::vector<char> data(4096);
  EXPECT_EQ(cuMemcpyDtoH(data.data(), memory, 4096), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemcpyDtoH(data.data(), 0x1234, 16), CUDA_ERROR_INVALID_VALUE);
  // Also where much is copied, which takes another way; and a later copy knows nothing of it.
  std::vector<char> large(3u << 20);
  EXPECT_EQ(cuMemcpyDtoH(large.data(), memory, large.size()), CUDA_ERROR_INVALID_VALUE);
  HAWSER_CU(cuMemcpyDtoH(large.data(), memory, 1024));
}

TEST_F(CudaErrors, NodesThatAreWrongAreRefusedByTheVeryCall) {
  CUgraph graph = nullptr, other = nullptr;
  HAWSER_CU(cuGraphCreate(&graph, 0));
  HAWSER_CU(cuGraphCreate(&other, 0));
  CUgraphNode node = nullptr, before = nullptr, strange = nullptr;
  HAWSER_CU(cuGraphAddEmptyNode(&before, graph, nullptr, 0));
  HAWSER_CU(cuGraphAddEmptyNode(&strange, other, nullptr, 0));
  const CUgraphNode twice[] = {before, before};
  EXPECT_EQ(cuGraphAddEmptyNode(&node, graph, twice, 2), CUDA_ERROR_INVALID_VALUE) << "one dependency twice";
  EXPECT_EQ(cuGraphAddEmptyNode(&node, graph, &strange, 1), CUDA_ERROR_INVALID_VALUE) << "a node of another graph";
  CUDA_KERNEL_NODE_PARAMS kernel{};
  CUdeviceptr memory = 0;
  uint32_t value = 0;
  void* parameters[] = {&memory, &value, &value};
  kernel.func = Function("add");
  kernel.gridDimX = kernel.gridDimY = 1;
  kernel.blockDimX = kernel.blockDimY = kernel.blockDimZ = 1;
  kernel.kernelParams = parameters;
  EXPECT_EQ(cuGraphAddKernelNode(&node, graph, nullptr, 0, &kernel), CUDA_ERROR_INVALID_VALUE) << "an empty grid";
  HAWSER_CU(cuMemAlloc(&memory, 4096));
  CUDA_MEMSET_NODE_PARAMS fill{};
  fill.dst = memory;
  fill.elementSize = 4;
  fill.width = 1024;
  fill.height = 1;
  CUDA_MEMCPY3D copy{};
  copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.srcDevice = memory;
  copy.dstDevice = memory + 2048;
  copy.WidthInBytes = 2048;
  copy.Height = copy.Depth = 1;
  HAWSER_CU(cuGraphAddMemsetNode(&node, graph, &before, 1, &fill, context_));
  HAWSER_CU(cuGraphAddMemcpyNode(&node, graph, &before, 1, &copy, context_));
  fill.width = 1025;
  copy.WidthInBytes = 2049;
  EXPECT_EQ(cuGraphAddMemsetNode(&node, graph, &before, 1, &fill, context_), CUDA_ERROR_INVALID_VALUE) << "too far";
  EXPECT_EQ(cuGraphAddMemcpyNode(&node, graph, &before, 1, &copy, context_), CUDA_ERROR_INVALID_VALUE) << "too far";
  fill.width = 16;
  copy.WidthInBytes = 16;
  HAWSER_CU(cuMemFree(memory));
  EXPECT_EQ(cuGraphAddMemsetNode(&node, graph, &before, 1, &fill, context_), CUDA_ERROR_INVALID_VALUE) << "freed";
  EXPECT_EQ(cuGraphAddMemcpyNode(&node, graph, &before, 1, &copy, context_), CUDA_ERROR_INVALID_VALUE) << "freed";
  HAWSER_CU(cuGraphDestroy(other));
  HAWSER_CU(cuGraphDestroy(graph));
}

TEST_F(CudaErrors, NotReadyIsNoError) {
  CUstream stream = nullptr;
  HAWSER_CU(cuStreamCreate(&stream, CU_STREAM_DEFAULT));
  EXPECT_EQ(cuStreamQuery(stream), CUDA_SUCCESS);
  CUevent event = nullptr, other = nullptr;
  HAWSER_CU(cuEventCreate(&event, CU_EVENT_DEFAULT));
  HAWSER_CU(cuEventCreate(&other, CU_EVENT_DEFAULT));
  float milliseconds = 0;
  EXPECT_EQ(cuEventElapsedTime(&milliseconds, event, other), CUDA_ERROR_INVALID_HANDLE) << "never recorded";
}

TEST_F(CudaErrors, AKernelsFaultIsReturnedByTheNextCallAndStays) {
  CUfunction store = Function("store");
  CUdeviceptr wild = 0x123456789000;
  uint32_t value = 1;
  void* parameters[] = {&wild, &value};
  EXPECT_EQ(cuLaunchKernel(store, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS) << "sticky";
  CUdeviceptr memory = 0;
  EXPECT_EQ(cuMemAlloc(&memory, 64), CUDA_ERROR_ILLEGAL_ADDRESS);
  // A reset mends it.
  HAWSER_CU(cuDevicePrimaryCtxReset(device_));
  CUcontext fresh = nullptr;
  HAWSER_CU(cuDevicePrimaryCtxRetain(&fresh, device_));
  HAWSER_CU(cuCtxSetCurrent(fresh));
  module_ = nullptr;
  HAWSER_CU(cuMemAlloc(&memory, 64));
  HAWSER_CU(cuMemsetD32(memory, 5, 16));
  HAWSER_CU(LaunchAdd(Function("add"), memory, 16, 2, nullptr));
  value = 0;
  HAWSER_CU(cuMemcpyDtoH(&value, memory, 4));
  EXPECT_EQ(value, 7u);
  HAWSER_CU(cuDevicePrimaryCtxRelease(device_));
}

/// What this process writes to stderr goes to a file meanwhile.
class StderrToFile {
 public:
  StderrToFile() : before_(::dup(STDERR_FILENO)) { ::dup2(::fileno(file_), STDERR_FILENO); }
  ~StderrToFile() {
    ::dup2(before_, STDERR_FILENO);
    ::close(before_);
    (void)std::fclose(file_);
  }
  std::string Text() const {
    std::string text(1 << 16, '\0');
    const ssize_t got = ::pread(::fileno(file_), text.data(), text.size(), 0);
    text.resize(got > 0 ? static_cast<size_t>(got) : 0);
    return text;
  }

 private:
  std::FILE* const file_ = std::tmpfile();
  const int before_;
};

/// What the load writes to stderr, where it fails for want of code for the device.
std::string LoadWithoutCode(const void* image) {
  const StderrToFile file;
  CUmodule module = nullptr;
  EXPECT_EQ(cuModuleLoadData(&module, image), CUDA_ERROR_NO_BINARY_FOR_GPU);
  return file.Text();
}

TEST_F(CudaErrors, CodeForOtherDevicesIsNamedOnStderr) {
  struct {
    uint32_t magic = 0xba55ed50;
    uint16_t version = 1, header_size = 16;
    uint64_t size = 64 + 8;
    uint16_t kind = 1, flavour = 0x0101;
    uint32_t entry_header = 64;
    uint64_t stored = 8;
    uint32_t unused[3] = {};
    uint32_t sm = 199;
    uint64_t more = 0;
    uint64_t flags = 0x11;
    uint64_t none[2] = {};
    char text[8] = "ptx";
  } ptx;
  static_assert(sizeof(ptx) == 16 + 64 + 8);
  const std::string first = LoadWithoutCode(&ptx);
  EXPECT_NE(first.find("sm_199"), std::string::npos) << first;

  Elf64_Ehdr cubin{};
  std::memcpy(cubin.e_ident, ELFMAG, SELFMAG);
  cubin.e_ident[EI_CLASS] = ELFCLASS64;
  cubin.e_ident[EI_DATA] = ELFDATA2LSB;
  cubin.e_ident[EI_ABIVERSION] = 8;
  cubin.e_machine = 190;
  cubin.e_flags = 0x6005a04;
  const std::string second = LoadWithoutCode(&cubin);
  EXPECT_NE(second.find("cubin for sm_90"), std::string::npos) << second;
}

TEST_F(CudaErrors, WhoAsksForPrivateInterfacesIsNamedOnStderr) {
  const void* table = &table;
  const CUuuid some{};
  testing::internal::CaptureStderr();
  const CUresult first = cuGetExportTable(&table, &some);
  const CUresult second = cuGetExportTable(&table, &some);
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_EQ(first, CUDA_ERROR_NOT_FOUND);
  EXPECT_EQ(second, CUDA_ERROR_NOT_FOUND);
  EXPECT_EQ(table, nullptr);
  const size_t at = said.find("cuda_errors_test asks for private interfaces");
  EXPECT_NE(at, std::string::npos) << said;
  EXPECT_EQ(said.find("private interfaces", at + 40), std::string::npos) << "once is enough: " << said;
}

TEST_F(CudaErrors, AssertionsAreOnStderr) {
  constexpr char kAsserting[] = R"(
.version 7.0
.target sm_75
.address_size 64
.extern .func __assertfail
(
  .param .b64 __assertfail_param_0,
  .param .b64 __assertfail_param_1,
  .param .b32 __assertfail_param_2,
  .param .b64 __assertfail_param_3,
  .param .b64 __assertfail_param_4
)
;
.global .align 1 .b8 message[6] = {120, 32, 62, 32, 48, 0};
.global .align 1 .b8 file[5] = {107, 46, 99, 117, 0};
.global .align 1 .b8 function[6] = {99, 104, 101, 99, 107, 0};

.visible .entry check()
{
  .reg .b32 %r<2>;
  .reg .b64 %rd<8>;
  mov.u64 %rd1, message;
  cvta.global.u64 %rd2, %rd1;
  mov.u64 %rd3, file;
  cvta.global.u64 %rd4, %rd3;
  mov.u64 %rd5, function;
  cvta.global.u64 %rd6, %rd5;
  mov.u32 %r1, 7;
  mov.u64 %rd7, 1;
  {
  .param .b64 param0;
  st.param.b64 [param0+0], %rd2;
  .param .b64 param1;
  st.param.b64 [param1+0], %rd4;
  .param .b32 param2;
  st.param.b32 [param2+0], %r1;
  .param .b64 param3;
  st.param.b64 [param3+0], %rd6;
  .param .b64 param4;
  st.param.b64 [param4+0], %rd7;
  call.uni __assertfail, (param0, param1, param2, param3, param4);
  }
  ret;
}
)";
  CUfunction check = nullptr;
  HAWSER_CU(cuModuleLoadData(&module_, kAsserting));
  HAWSER_CU(cuModuleGetFunction(&check, module_, "check"));
  const std::string expected = "k.cu:7: check: block: [0,0,0], thread: [0,0,0] Assertion `x > 0` failed.\n";
  std::string text;
  {
    const StderrToFile file;
    HAWSER_CU(cuLaunchKernel(check, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr));
    EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_ASSERT);
    // The line may follow the error closely.
    for (int wait = 0; wait < 2000 && text.find(expected) == std::string::npos; ++wait) {
      text = file.Text();
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }
  EXPECT_NE(text.find(expected), std::string::npos) << text;
}

TEST_F(CudaErrors, WhatCannotBeMadeDoesNotSpoilWhatComesNext) {
  CUgraph graph = nullptr, other = nullptr;
  HAWSER_CU(cuGraphCreate(&graph, 0));
  HAWSER_CU(cuGraphCreate(&other, 0));
  CUgraphNode first = nullptr, second = nullptr, foreign = nullptr;
  HAWSER_CU(cuGraphAddEmptyNode(&first, graph, nullptr, 0));
  HAWSER_CU(cuGraphAddEmptyNode(&foreign, other, nullptr, 0));
  EXPECT_EQ(cuGraphAddEmptyNode(&second, graph, &foreign, 1), CUDA_ERROR_INVALID_VALUE);
  HAWSER_CU(cuGraphAddEmptyNode(&second, graph, &first, 1));
  CUgraphExec exec = nullptr;
  HAWSER_CU(cuGraphAddDependencies(graph, &second, &first, nullptr, 1));
  EXPECT_EQ(cuGraphInstantiate(&exec, graph, 0), CUDA_ERROR_INVALID_VALUE) << "a circle";
  HAWSER_CU(cuGraphRemoveDependencies(graph, &second, &first, nullptr, 1));
  HAWSER_CU(cuGraphInstantiate(&exec, graph, 0));

  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, {device_}};
  size_t unit = 0;
  HAWSER_CU(cuMemGetAllocationGranularity(&unit, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
  CUmemGenericAllocationHandle memory = 0;
  EXPECT_EQ(cuMemCreate(&memory, unit << 30, &properties, 0), CUDA_ERROR_OUT_OF_MEMORY);
  HAWSER_CU(cuMemCreate(&memory, unit, &properties, 0));
  HAWSER_CU(cuMemRelease(memory));
}

TEST_F(CudaErrors, GraphsInNodesEndWithThem) {
  for (int round = 0; round < 4; ++round) {
    CUgraph child = nullptr, graph = nullptr, inner = nullptr;
    HAWSER_CU(cuGraphCreate(&child, 0));
    HAWSER_CU(cuGraphCreate(&graph, 0));
    CUgraphNode node = nullptr;
    HAWSER_CU(cuGraphAddEmptyNode(&node, child, nullptr, 0));
    HAWSER_CU(cuGraphAddChildGraphNode(&node, graph, nullptr, 0, child));
    HAWSER_CU(cuGraphChildGraphNodeGetGraph(node, &inner));
    size_t count = 0;
    HAWSER_CU(cuGraphGetNodes(inner, nullptr, &count));
    EXPECT_EQ(count, 1u);
    EXPECT_EQ(cuGraphDestroy(inner), CUDA_ERROR_INVALID_VALUE) << "it is the node's";
    if (round % 2 == 0) HAWSER_CU(cuGraphDestroyNode(node));
    HAWSER_CU(cuGraphDestroy(graph));
    HAWSER_CU(cuGraphDestroy(child));
  }
  HAWSER_CU(cuCtxSynchronize());
}

TEST_F(CudaErrors, MisalignedAccessHasACodeOfItsOwn) {
  CUdeviceptr memory = 0;
  HAWSER_CU(cuMemAlloc(&memory, 64));
  memory += 1;
  uint32_t value = 1;
  void* parameters[] = {&memory, &value};
  HAWSER_CU(cuLaunchKernel(Function("store"), 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr));
  EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_MISALIGNED_ADDRESS);
}

// "The callback may be passed CUDA_SUCCESS or an error code. In the event of a device error, all subsequently executed
// callbacks will receive an appropriate CUresult." (cuStreamAddCallback); functions of cuLaunchHostFunc are not called.
TEST_F(CudaErrors, CallbacksBehindAFaultAreToldOfItAndFunctionsAreNotCalled) {
  struct {
    std::promise<void> go;
    std::promise<CUresult> told;
    std::atomic<bool> called{false};
  } shared;
  CUdeviceptr wild = 0x123456789000;
  uint32_t value = 1;
  void* parameters[] = {&wild, &value};
  CUfunction store = Function("store");
  CUstream stream = nullptr;
  HAWSER_CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  const auto wait = [](void* data) { static_cast<decltype(shared)*>(data)->go.get_future().wait(); };
  const auto note = [](void* data) { static_cast<decltype(shared)*>(data)->called.store(true); };
  const auto tell = [](CUstream, CUresult status, void* data) {
    static_cast<decltype(shared)*>(data)->told.set_value(status);
  };
  HAWSER_CU(cuLaunchHostFunc(stream, wait, &shared));
  HAWSER_CU(cuLaunchKernel(store, 1, 1, 1, 1, 1, 1, 0, stream, parameters, nullptr));
  HAWSER_CU(cuLaunchHostFunc(stream, note, &shared));
  HAWSER_CU(cuStreamAddCallback(stream, tell, &shared, 0));
  shared.go.set_value();
  std::future<CUresult> told = shared.told.get_future();
  ASSERT_EQ(told.wait_for(std::chrono::seconds(60)), std::future_status::ready);
  EXPECT_EQ(told.get(), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(cuStreamSynchronize(stream), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_FALSE(shared.called.load());
}

}  // namespace
}  // namespace hawser
