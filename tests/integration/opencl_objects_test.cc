// SPDX-License-Identifier: Apache-2.0
// Platforms, devices, contexts, queues, samplers, programs and kernels through a real server: what they answer, the
// codes of wrong calls, and what must not wait for the server.
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#define CL_USE_DEPRECATED_OPENCL_2_0_APIS
#include <CL/cl_ext.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "tests/integration/cl_fixture.h"

namespace {

using hawser::test::ClSetup;

constexpr char kSource[] = R"(
typedef struct { int a; float b; } Pair;
kernel void values(global float* out, float x, uint n, float4 v, Pair pair, float3 w) {
  out[0] = x + n + v.x + v.w + pair.a + pair.b + w.z;
}
kernel void shared(global int* out, local int* scratch, local int* more) {
  local int fixed[4];
  fixed[get_local_id(0) & 3] = 1;
  scratch[get_local_id(0)] = more[0];
  barrier(CLK_LOCAL_MEM_FENCE);
  out[get_global_id(0)] = scratch[get_local_id(0)] + fixed[0];
}
kernel void __attribute__((reqd_work_group_size(4, 1, 1))) fixed_group(global int* out) { out[get_global_id(0)] = 7; }
kernel void filtered(read_only image2d_t image, sampler_t s, global float4* out) {
  out[0] = read_imagef(image, s, (int2)(0, 0));
}
)";

/// Counters of the guest library; false where it is not the implementation under test.
struct Counters {
  uint64_t commands = 0, waits = 0;
};
Counters Count(cl_platform_id platform) {
  using GetStats = void (*)(uint64_t out[6]);
  auto* get = reinterpret_cast<GetStats>(clGetExtensionFunctionAddressForPlatform(platform, "hawserGetStatsHWS"));
  uint64_t values[6] = {};
  if (get == nullptr) {
    ADD_FAILURE() << "this is not Hawser's platform";
  } else {
    get(values);
  }
  return {values[0], values[3]};
}

template <typename T, typename Handle, typename Get, typename... Params>
T Ask(Get get, Handle handle, Params... params) {
  T value{};
  EXPECT_EQ(get(handle, params..., sizeof(value), &value, nullptr), CL_SUCCESS);
  return value;
}

std::string DeviceText(cl_device_id device, cl_device_info param) {
  size_t size = 0;
  EXPECT_EQ(clGetDeviceInfo(device, param, 0, nullptr, &size), CL_SUCCESS);
  std::string text(size, '\0');
  EXPECT_EQ(clGetDeviceInfo(device, param, size, text.data(), nullptr), CL_SUCCESS);
  return text.c_str();
}

TEST(Devices, AreTheServersWithoutWhatCannotWork) {
  ClSetup cl;
  ASSERT_TRUE(cl.ok());
  EXPECT_NE(DeviceText(cl.device, CL_DEVICE_NAME), "");
  EXPECT_EQ(Ask<cl_platform_id>(clGetDeviceInfo, cl.device, CL_DEVICE_PLATFORM), cl.platform);
  EXPECT_EQ(Ask<cl_device_id>(clGetDeviceInfo, cl.device, CL_DEVICE_PARENT_DEVICE), nullptr);
  EXPECT_EQ(Ask<cl_uint>(clGetDeviceInfo, cl.device, CL_DEVICE_REFERENCE_COUNT), 1u);
  const auto execution = Ask<cl_device_exec_capabilities>(clGetDeviceInfo, cl.device, CL_DEVICE_EXECUTION_CAPABILITIES);
  EXPECT_EQ(execution & CL_EXEC_NATIVE_KERNEL, 0u);
  const auto svm = Ask<cl_device_svm_capabilities>(clGetDeviceInfo, cl.device, CL_DEVICE_SVM_CAPABILITIES);
  EXPECT_EQ(svm & ~cl_bitfield{CL_DEVICE_SVM_COARSE_GRAIN_BUFFER}, 0u);
  // The list and the list with versions agree, and nothing is offered that needs functions of the host.
  const std::string list = DeviceText(cl.device, CL_DEVICE_EXTENSIONS);
  EXPECT_EQ(list.find("command_buffer"), std::string::npos) << list;
  size_t size = 0;
  if (clGetDeviceInfo(cl.device, CL_DEVICE_EXTENSIONS_WITH_VERSION, 0, nullptr, &size) == CL_SUCCESS) {
    std::vector<cl_name_version> versions(size / sizeof(cl_name_version));
    ASSERT_EQ(clGetDeviceInfo(cl.device, CL_DEVICE_EXTENSIONS_WITH_VERSION, size, versions.data(), nullptr),
              CL_SUCCESS);
    for (const cl_name_version& each : versions) EXPECT_NE(list.find(each.name), std::string::npos) << each.name;
  }
  EXPECT_EQ(clGetDeviceInfo(cl.device, CL_DEVICE_COMMAND_BUFFER_CAPABILITIES_KHR, 0, nullptr, &size), CL_INVALID_VALUE);
  EXPECT_EQ(clEnqueueNativeKernel(cl.queue, nullptr, nullptr, 0, 0, nullptr, nullptr, 0, nullptr, nullptr),
            CL_INVALID_OPERATION);
}

TEST(Devices, QueriesDoNotWait) {
  ClSetup cl;
  ASSERT_TRUE(cl.ok());
  const Counters before = Count(cl.platform);
  for (cl_device_info param = CL_DEVICE_TYPE; param < 0x1080; ++param) {
    size_t size = 0;
    clGetDeviceInfo(cl.device, param, 0, nullptr, &size);
  }
  EXPECT_EQ(Count(cl.platform).commands, before.commands);
}

TEST(Devices, BadQueries) {
  ClSetup cl;
  ASSERT_TRUE(cl.ok());
  cl_device_id device = nullptr;
  cl_uint count = 0;
  EXPECT_EQ(clGetDeviceIDs(cl.platform, 0, 1, &device, &count), CL_INVALID_DEVICE_TYPE);
  EXPECT_EQ(clGetDeviceIDs(cl.platform, CL_DEVICE_TYPE_ALL, 0, &device, nullptr), CL_INVALID_VALUE);
  EXPECT_EQ(clGetDeviceIDs(cl.platform, CL_DEVICE_TYPE_ALL, 0, nullptr, nullptr), CL_INVALID_VALUE);
  EXPECT_EQ(clGetDeviceIDs(cl.platform, CL_DEVICE_TYPE_CUSTOM, 1, &device, nullptr), CL_DEVICE_NOT_FOUND);
  EXPECT_EQ(clGetDeviceIDs(cl.platform, CL_DEVICE_TYPE_DEFAULT, 1, &device, &count), CL_SUCCESS);
  EXPECT_EQ(count, 1u);
  cl_uint small = 0;
  EXPECT_EQ(clGetDeviceInfo(cl.device, CL_DEVICE_TYPE, sizeof(small), &small, nullptr), CL_INVALID_VALUE);
  EXPECT_EQ(clGetDeviceInfo(cl.device, 0xdead, 0, nullptr, nullptr), CL_INVALID_VALUE);
}

TEST(Devices, CanBePartitioned) {
  ClSetup cl;
  ASSERT_TRUE(cl.ok());
  const auto units = Ask<cl_uint>(clGetDeviceInfo, cl.device, CL_DEVICE_MAX_COMPUTE_UNITS);
  const auto most = Ask<cl_uint>(clGetDeviceInfo, cl.device, CL_DEVICE_PARTITION_MAX_SUB_DEVICES);
  if (units < 2 || most < 2) GTEST_SKIP() << "the device has one compute unit or cannot be partitioned";
  const cl_device_partition_property by_one[] = {CL_DEVICE_PARTITION_EQUALLY, 1, 0};
  cl_uint count = 0;
  ASSERT_EQ(clCreateSubDevices(cl.device, by_one, 0, nullptr, &count), CL_SUCCESS);
  EXPECT_EQ(count, units);
  std::vector<cl_device_id> parts(count);
  EXPECT_EQ(clCreateSubDevices(cl.device, by_one, count - 1, parts.data(), nullptr), CL_INVALID_VALUE);
  ASSERT_EQ(clCreateSubDevices(cl.device, by_one, count, parts.data(), nullptr), CL_SUCCESS);
  EXPECT_EQ(Ask<cl_device_id>(clGetDeviceInfo, parts[0], CL_DEVICE_PARENT_DEVICE), cl.device);
  EXPECT_EQ(Ask<cl_uint>(clGetDeviceInfo, parts[0], CL_DEVICE_MAX_COMPUTE_UNITS), 1u);
  const auto type =
      Ask<std::array<cl_device_partition_property, 3>>(clGetDeviceInfo, parts[0], CL_DEVICE_PARTITION_TYPE);
  EXPECT_EQ(type[0], CL_DEVICE_PARTITION_EQUALLY);

  // A part works as a device.
  cl_int error = CL_SUCCESS;
  cl_context context = clCreateContext(nullptr, 1, &parts[1], nullptr, nullptr, &error);
  ASSERT_EQ(error, CL_SUCCESS);
  cl_command_queue queue = clCreateCommandQueueWithProperties(context, parts[1], nullptr, &error);
  ASSERT_EQ(error, CL_SUCCESS);
  int value = 0;
  const int pattern = 42;
  cl_mem buffer = clCreateBuffer(context, CL_MEM_READ_WRITE, sizeof(value), nullptr, &error);
  EXPECT_EQ(clEnqueueFillBuffer(queue, buffer, &pattern, sizeof(pattern), 0, sizeof(value), 0, nullptr, nullptr),
            CL_SUCCESS);
  EXPECT_EQ(clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, sizeof(value), &value, 0, nullptr, nullptr), CL_SUCCESS);
  EXPECT_EQ(value, 42);
  clReleaseMemObject(buffer);
  clReleaseCommandQueue(queue);
  EXPECT_EQ(clRetainDevice(parts[0]), CL_SUCCESS);
  EXPECT_EQ(Ask<cl_uint>(clGetDeviceInfo, parts[0], CL_DEVICE_REFERENCE_COUNT), 2u);
  EXPECT_EQ(clReleaseDevice(parts[0]), CL_SUCCESS);
  for (cl_device_id part : parts) EXPECT_EQ(clReleaseDevice(part), CL_SUCCESS);  // The context keeps its own.
  EXPECT_EQ(clReleaseContext(context), CL_SUCCESS);
}

TEST(Devices, APartRunsWhatItHasAfterItsRelease) {
  ClSetup cl;
  ASSERT_TRUE(cl.ok());
  if (Ask<cl_uint>(clGetDeviceInfo, cl.device, CL_DEVICE_PARTITION_MAX_SUB_DEVICES) < 2) {
    GTEST_SKIP() << "the device cannot be partitioned";
  }
  const cl_device_partition_property by_one[] = {CL_DEVICE_PARTITION_EQUALLY, 1, 0};
  const char* source =
      "kernel void slow(global uint* a) { uint x = a[0]; for (uint i = 0; i < 3000000; ++i) x = x * 3 + i; a[0] = x; }";
  for (int round = 0; round < 20; ++round) {
    std::array<cl_device_id, 16> parts{};
    cl_uint count = 0;
    ASSERT_EQ(clCreateSubDevices(cl.device, by_one, parts.size(), parts.data(), &count), CL_SUCCESS);
    cl_int error = CL_SUCCESS;
    cl_context context = clCreateContext(nullptr, 1, parts.data(), nullptr, nullptr, &error);
    ASSERT_EQ(error, CL_SUCCESS);
    cl_command_queue queue = clCreateCommandQueueWithProperties(context, parts[0], nullptr, &error);
    ASSERT_EQ(error, CL_SUCCESS);
    cl_program program = clCreateProgramWithSource(context, 1, &source, nullptr, &error);
    ASSERT_EQ(clBuildProgram(program, 1, parts.data(), "", nullptr, nullptr), CL_SUCCESS);
    cl_kernel kernel = clCreateKernel(program, "slow", &error);
    cl_mem buffer = clCreateBuffer(context, CL_MEM_READ_WRITE, sizeof(int), nullptr, &error);
    EXPECT_EQ(clSetKernelArg(kernel, 0, sizeof(buffer), &buffer), CL_SUCCESS);
    const size_t one = 1;
    cl_event ran = nullptr;
    EXPECT_EQ(clEnqueueNDRangeKernel(queue, kernel, 1, nullptr, &one, nullptr, 0, nullptr, &ran), CL_SUCCESS);
    std::atomic<cl_int> ended{1};
    const auto note = [](cl_event, cl_int status, void* to) { *static_cast<std::atomic<cl_int>*>(to) = status; };
    EXPECT_EQ(clSetEventCallback(ran, CL_COMPLETE, note, &ended), CL_SUCCESS);
    EXPECT_EQ(clFlush(queue), CL_SUCCESS);
    clReleaseEvent(ran);
    clReleaseMemObject(buffer);
    clReleaseKernel(kernel);
    clReleaseProgram(program);
    clReleaseCommandQueue(queue);
    clReleaseContext(context);
    for (cl_uint i = 0; i < count; ++i) EXPECT_EQ(clReleaseDevice(parts[i]), CL_SUCCESS);
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (ended > 0 && std::chrono::steady_clock::now() < deadline) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    ASSERT_EQ(ended, CL_COMPLETE);
  }
}

TEST(Contexts, AnswerAndRefuse) {
  ClSetup cl;
  ASSERT_TRUE(cl.ok());
  const cl_device_id twice[] = {cl.device, cl.device};
  cl_int error = CL_SUCCESS;
  const cl_context_properties platform[] = {CL_CONTEXT_PLATFORM, reinterpret_cast<cl_context_properties>(cl.platform),
                                            0};
  cl_context context = clCreateContext(platform, 2, twice, nullptr, nullptr, &error);
  ASSERT_EQ(error, CL_SUCCESS);
  EXPECT_EQ(Ask<cl_uint>(clGetContextInfo, context, CL_CONTEXT_NUM_DEVICES), 1u);
  EXPECT_EQ((Ask<std::array<cl_context_properties, 3>>(clGetContextInfo, context, CL_CONTEXT_PROPERTIES)[1]),
            platform[1]);
  EXPECT_EQ(clRetainContext(context), CL_SUCCESS);
  EXPECT_EQ(Ask<cl_uint>(clGetContextInfo, context, CL_CONTEXT_REFERENCE_COUNT), 2u);
  EXPECT_EQ(clReleaseContext(context), CL_SUCCESS);

  // Destructor callbacks: once, the last registered first.
  std::string order;
  clSetContextDestructorCallback(
      context, [](cl_context, void* to) { *static_cast<std::string*>(to) += "1"; }, &order);
  clSetContextDestructorCallback(
      context, [](cl_context, void* to) { *static_cast<std::string*>(to) += "2"; }, &order);
  EXPECT_EQ(clReleaseContext(context), CL_SUCCESS);
  EXPECT_EQ(order, "21");

  const cl_context_properties unknown[] = {0x1234, 1, 0};
  EXPECT_EQ(clCreateContext(unknown, 1, &cl.device, nullptr, nullptr, &error), nullptr);
  EXPECT_EQ(error, CL_INVALID_PROPERTY);
  int data = 0;
  EXPECT_EQ(clCreateContext(nullptr, 1, &cl.device, nullptr, &data, &error), nullptr);
  EXPECT_EQ(error, CL_INVALID_VALUE);
  context = clCreateContextFromType(platform, CL_DEVICE_TYPE_ALL, nullptr, nullptr, &error);
  EXPECT_EQ(error, CL_SUCCESS);
  EXPECT_EQ(clReleaseContext(context), CL_SUCCESS);
  EXPECT_EQ(clCreateContextFromType(platform, CL_DEVICE_TYPE_CUSTOM, nullptr, nullptr, &error), nullptr);
  EXPECT_EQ(error, CL_DEVICE_NOT_FOUND);
}

TEST(Contexts, ListImageFormatsWithOneQuestion) {
  ClSetup cl;
  ASSERT_TRUE(cl.ok());
  if (Ask<cl_bool>(clGetDeviceInfo, cl.device, CL_DEVICE_IMAGE_SUPPORT) == CL_FALSE) GTEST_SKIP() << "no images";
  cl_uint count = 0;
  ASSERT_EQ(clGetSupportedImageFormats(cl.context, CL_MEM_READ_WRITE, CL_MEM_OBJECT_IMAGE2D, 0, nullptr, &count),
            CL_SUCCESS);
  ASSERT_GT(count, 0u);
  const Counters before = Count(cl.platform);
  std::vector<cl_image_format> formats(count);
  ASSERT_EQ(
      clGetSupportedImageFormats(cl.context, CL_MEM_READ_WRITE, CL_MEM_OBJECT_IMAGE2D, count, formats.data(), nullptr),
      CL_SUCCESS);
  EXPECT_EQ(Count(cl.platform).commands, before.commands);
  EXPECT_NE(formats[0].image_channel_order, 0u);
  EXPECT_EQ(clGetSupportedImageFormats(cl.context, CL_MEM_READ_WRITE, 0x1234, 0, nullptr, &count), CL_INVALID_VALUE);
}

TEST(Queues, AnswerAndRefuse) {
  ClSetup cl;
  ASSERT_TRUE(cl.ok());
  EXPECT_EQ(Ask<cl_context>(clGetCommandQueueInfo, cl.queue, CL_QUEUE_CONTEXT), cl.context);
  EXPECT_EQ(Ask<cl_device_id>(clGetCommandQueueInfo, cl.queue, CL_QUEUE_DEVICE), cl.device);
  EXPECT_EQ((Ask<std::array<cl_queue_properties, 3>>(clGetCommandQueueInfo, cl.queue, CL_QUEUE_PROPERTIES_ARRAY)[0]),
            cl_queue_properties{CL_QUEUE_PROPERTIES});
  cl_uint size = 0;
  EXPECT_EQ(clGetCommandQueueInfo(cl.queue, CL_QUEUE_SIZE, sizeof(size), &size, nullptr), CL_INVALID_COMMAND_QUEUE);
  cl_int error = CL_SUCCESS;
  EXPECT_EQ(clCreateCommandQueue(cl.context, cl.device, 1u << 10, &error), nullptr);
  EXPECT_EQ(error, CL_INVALID_VALUE);
  const cl_queue_properties unknown[] = {0x9999, 1, 0};
  EXPECT_EQ(clCreateCommandQueueWithProperties(cl.context, cl.device, unknown, &error), nullptr);
  EXPECT_EQ(error, CL_INVALID_VALUE);
  EXPECT_EQ(clCreateCommandQueueWithProperties(nullptr, cl.device, nullptr, &error), nullptr);
  EXPECT_EQ(error, CL_INVALID_CONTEXT);
}

TEST(Queues, FinishingAnIdleQueueAsksNobody) {
  ClSetup cl(0, kSource);
  ASSERT_TRUE(cl.ok());
  cl_mem buffer = cl.Buffer(64);
  const int pattern = 1;
  ASSERT_EQ(clEnqueueFillBuffer(cl.queue, buffer, &pattern, sizeof(pattern), 0, 64, 0, nullptr, nullptr), CL_SUCCESS);
  ASSERT_EQ(clFinish(cl.queue), CL_SUCCESS);
  const Counters before = Count(cl.platform);
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(clFinish(cl.queue), CL_SUCCESS);
    EXPECT_EQ(clFlush(cl.queue), CL_SUCCESS);
  }
  const Counters after = Count(cl.platform);
  EXPECT_EQ(after.commands, before.commands);
  EXPECT_EQ(after.waits, before.waits);
  clReleaseMemObject(buffer);
}

TEST(Objects, CreationDoesNotWait) {
  if (getenv("HAWSER_STRICT") != nullptr) GTEST_SKIP() << "strict mode waits for everything";
  ClSetup cl(0, kSource);
  ASSERT_TRUE(cl.ok());
  cl_mem buffer = cl.Buffer(64);
  const Counters before = Count(cl.platform);
  cl_int error = CL_SUCCESS;
  cl_context context = clCreateContext(nullptr, 1, &cl.device, nullptr, nullptr, &error);
  cl_command_queue queue = clCreateCommandQueueWithProperties(context, cl.device, nullptr, &error);
  cl_sampler sampler = clCreateSampler(context, CL_FALSE, CL_ADDRESS_CLAMP, CL_FILTER_NEAREST, &error);
  const char* source = kSource;
  cl_program program = clCreateProgramWithSource(context, 1, &source, nullptr, &error);
  cl_kernel kernel = clCreateKernel(cl.program, "shared", &error);
  EXPECT_EQ(clSetKernelArg(kernel, 0, sizeof(buffer), &buffer), CL_SUCCESS);
  EXPECT_EQ(clSetKernelArg(kernel, 1, 64, nullptr), CL_SUCCESS);
  cl_kernel clone = clCloneKernel(kernel, &error);
  for (cl_kernel each : {kernel, clone}) clReleaseKernel(each);
  clReleaseProgram(program);
  clReleaseSampler(sampler);
  clReleaseCommandQueue(queue);
  clReleaseContext(context);
  clReleaseMemObject(buffer);
  EXPECT_EQ(Count(cl.platform).waits, before.waits);
  // Nothing of it failed late.
  EXPECT_EQ(clFinish(cl.queue), CL_SUCCESS);
}

TEST(Samplers, AnswerAndRefuse) {
  ClSetup cl;
  ASSERT_TRUE(cl.ok());
  if (Ask<cl_bool>(clGetDeviceInfo, cl.device, CL_DEVICE_IMAGE_SUPPORT) == CL_FALSE) GTEST_SKIP() << "no images";
  cl_int error = CL_SUCCESS;
  cl_sampler sampler = clCreateSampler(cl.context, CL_TRUE, CL_ADDRESS_REPEAT, CL_FILTER_LINEAR, &error);
  ASSERT_EQ(error, CL_SUCCESS);
  EXPECT_EQ(Ask<cl_addressing_mode>(clGetSamplerInfo, sampler, CL_SAMPLER_ADDRESSING_MODE),
            cl_addressing_mode{CL_ADDRESS_REPEAT});
  EXPECT_EQ(Ask<cl_bool>(clGetSamplerInfo, sampler, CL_SAMPLER_NORMALIZED_COORDS), cl_bool{CL_TRUE});
  EXPECT_EQ(Ask<cl_context>(clGetSamplerInfo, sampler, CL_SAMPLER_CONTEXT), cl.context);
  EXPECT_EQ(clReleaseSampler(sampler), CL_SUCCESS);
  EXPECT_EQ(clCreateSampler(cl.context, CL_TRUE, 1, CL_FILTER_LINEAR, &error), nullptr);
  EXPECT_EQ(error, CL_INVALID_VALUE);
}

std::string BuildLog(cl_program program, cl_device_id device) {
  size_t size = 0;
  EXPECT_EQ(clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, 0, nullptr, &size), CL_SUCCESS);
  std::string log(size, '\0');
  EXPECT_EQ(clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, size, log.data(), nullptr), CL_SUCCESS);
  return log.c_str();
}

cl_build_status BuildStatus(cl_program program, cl_device_id device) {
  return Ask<cl_build_status>(clGetProgramBuildInfo, program, device, CL_PROGRAM_BUILD_STATUS);
}

TEST(Programs, TellWhatABuildTold) {
  ClSetup cl;
  ASSERT_TRUE(cl.ok());
  cl_int error = CL_SUCCESS;
  const char* parts[] = {kSource, "kernel void last() {} junk that is cut off"};
  const size_t lengths[] = {0, strlen("kernel void last() {}")};
  cl_program program = clCreateProgramWithSource(cl.context, 2, parts, lengths, &error);
  ASSERT_EQ(error, CL_SUCCESS);
  EXPECT_EQ(BuildStatus(program, cl.device), CL_BUILD_NONE);
  EXPECT_EQ(clCreateKernel(program, "values", &error), nullptr);
  EXPECT_EQ(error, CL_INVALID_PROGRAM_EXECUTABLE);
  size_t kernels = 0;
  EXPECT_EQ(clGetProgramInfo(program, CL_PROGRAM_NUM_KERNELS, sizeof(kernels), &kernels, nullptr),
            CL_INVALID_PROGRAM_EXECUTABLE);

  ASSERT_EQ(clBuildProgram(program, 1, &cl.device, "-DX=1", nullptr, nullptr), CL_SUCCESS)
      << BuildLog(program, cl.device);
  EXPECT_EQ(BuildStatus(program, cl.device), CL_BUILD_SUCCESS);
  char options[32] = {};
  EXPECT_EQ(clGetProgramBuildInfo(program, cl.device, CL_PROGRAM_BUILD_OPTIONS, sizeof(options), options, nullptr),
            CL_SUCCESS);
  EXPECT_STREQ(options, "-DX=1");
  EXPECT_EQ(Ask<cl_program_binary_type>(clGetProgramBuildInfo, program, cl.device, CL_PROGRAM_BINARY_TYPE),
            cl_program_binary_type{CL_PROGRAM_BINARY_TYPE_EXECUTABLE});
  const Counters before = Count(cl.platform);
  char names[128] = {};
  EXPECT_EQ(clGetProgramInfo(program, CL_PROGRAM_KERNEL_NAMES, sizeof(names), names, nullptr), CL_SUCCESS);
  std::set<std::string> found;
  for (char* name = strtok(names, ";"); name != nullptr; name = strtok(nullptr, ";")) found.insert(name);
  EXPECT_EQ(found, (std::set<std::string>{"values", "shared", "fixed_group", "filtered", "last"}));
  EXPECT_EQ(Ask<size_t>(clGetProgramInfo, program, CL_PROGRAM_NUM_KERNELS), 5u);
  EXPECT_EQ(Count(cl.platform).commands, before.commands);

  std::array<cl_kernel, 5> all{};
  cl_uint count = 0;
  EXPECT_EQ(clCreateKernelsInProgram(program, 4, all.data(), &count), CL_INVALID_VALUE);
  ASSERT_EQ(clCreateKernelsInProgram(program, 5, all.data(), &count), CL_SUCCESS);
  EXPECT_EQ(count, 5u);
  // A program with kernels cannot be built again.
  EXPECT_EQ(clBuildProgram(program, 1, &cl.device, "", nullptr, nullptr), CL_INVALID_OPERATION);
  for (cl_kernel kernel : all) clReleaseKernel(kernel);
  EXPECT_EQ(clBuildProgram(program, 0, nullptr, nullptr, nullptr, nullptr), CL_SUCCESS);
  clReleaseProgram(program);
}

TEST(Programs, ABrokenSourceHasALog) {
  ClSetup cl;
  ASSERT_TRUE(cl.ok());
  cl_int error = CL_SUCCESS;
  const char* source = "kernel void f(global int* a) { a[0] = undeclared_name; }";
  cl_program program = clCreateProgramWithSource(cl.context, 1, &source, nullptr, &error);
  EXPECT_EQ(clBuildProgram(program, 1, &cl.device, "", nullptr, nullptr), CL_BUILD_PROGRAM_FAILURE);
  EXPECT_EQ(BuildStatus(program, cl.device), CL_BUILD_ERROR);
  EXPECT_NE(BuildLog(program, cl.device).find("undeclared_name"), std::string::npos);
  EXPECT_EQ(clCreateKernel(program, "f", &error), nullptr);
  EXPECT_EQ(error, CL_INVALID_PROGRAM_EXECUTABLE);
  clReleaseProgram(program);
  EXPECT_EQ(clCreateProgramWithSource(cl.context, 0, &source, nullptr, &error), nullptr);
  EXPECT_EQ(error, CL_INVALID_VALUE);
  EXPECT_EQ(clBuildProgram(cl.program, 0, nullptr, nullptr, nullptr, nullptr), CL_INVALID_PROGRAM);
}

TEST(Programs, BuildInTheBackground) {
  ClSetup cl;
  ASSERT_TRUE(cl.ok());
  struct Result {
    cl_device_id device;
    std::atomic<cl_build_status> status{CL_BUILD_NONE};
    std::atomic<bool> called{false};
  } result{cl.device, {}, {}};
  cl_int error = CL_SUCCESS;
  const char* source = "kernel void f(global int* a) { a[0] = 3; }";
  cl_program program = clCreateProgramWithSource(cl.context, 1, &source, nullptr, &error);
  const auto notify = [](cl_program built, void* data) {
    auto* to = static_cast<Result*>(data);
    cl_build_status status = CL_BUILD_NONE;
    clGetProgramBuildInfo(built, to->device, CL_PROGRAM_BUILD_STATUS, sizeof(status), &status, nullptr);
    to->status = status;
    to->called = true;
  };
  ASSERT_EQ(clBuildProgram(program, 1, &cl.device, "", notify, &result), CL_SUCCESS);
  // Nobody of this program waits in OpenCL: the callback must come all the same.
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!result.called && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  ASSERT_TRUE(result.called);
  EXPECT_EQ(result.status, CL_BUILD_SUCCESS);
  cl_kernel kernel = clCreateKernel(program, "f", &error);
  EXPECT_EQ(error, CL_SUCCESS);
  clReleaseKernel(kernel);
  clReleaseProgram(program);
}

TEST(Programs, CompileAndLink) {
  ClSetup cl;
  ASSERT_TRUE(cl.ok());
  cl_int error = CL_SUCCESS;
  const char* header_text = "int three(void);\n#define FOUR 4\n";
  const char* user_text = "#include \"numbers.h\"\nkernel void f(global int* a) { a[0] = three() + FOUR; }";
  const char* library_text = "int three(void) { return 3; }";
  cl_program header = clCreateProgramWithSource(cl.context, 1, &header_text, nullptr, &error);
  cl_program user = clCreateProgramWithSource(cl.context, 1, &user_text, nullptr, &error);
  cl_program library = clCreateProgramWithSource(cl.context, 1, &library_text, nullptr, &error);
  const char* name = "numbers.h";
  ASSERT_EQ(clCompileProgram(user, 1, &cl.device, "", 1, &header, &name, nullptr, nullptr), CL_SUCCESS)
      << BuildLog(user, cl.device);
  EXPECT_EQ(Ask<cl_program_binary_type>(clGetProgramBuildInfo, user, cl.device, CL_PROGRAM_BINARY_TYPE),
            cl_program_binary_type{CL_PROGRAM_BINARY_TYPE_COMPILED_OBJECT});
  EXPECT_EQ(clCreateKernel(user, "f", &error), nullptr);
  EXPECT_EQ(error, CL_INVALID_PROGRAM_EXECUTABLE);
  ASSERT_EQ(clCompileProgram(library, 1, &cl.device, "", 0, nullptr, nullptr, nullptr, nullptr), CL_SUCCESS);
  EXPECT_EQ(clCompileProgram(library, 1, &cl.device, "", 1, nullptr, nullptr, nullptr, nullptr), CL_INVALID_VALUE);
  const cl_program inputs[] = {user, library};
  EXPECT_EQ(clLinkProgram(cl.context, 0, nullptr, "", 0, nullptr, nullptr, nullptr, &error), nullptr);
  EXPECT_EQ(error, CL_INVALID_VALUE);
  cl_program linked = clLinkProgram(cl.context, 0, nullptr, "", 2, inputs, nullptr, nullptr, &error);
  ASSERT_EQ(error, CL_SUCCESS);
  cl_kernel kernel = clCreateKernel(linked, "f", &error);
  ASSERT_EQ(error, CL_SUCCESS);
  cl_mem buffer = cl.Buffer(sizeof(int));
  EXPECT_EQ(clSetKernelArg(kernel, 0, sizeof(buffer), &buffer), CL_SUCCESS);
  const size_t one = 1;
  EXPECT_EQ(clEnqueueNDRangeKernel(cl.queue, kernel, 1, nullptr, &one, nullptr, 0, nullptr, nullptr), CL_SUCCESS);
  int value = 0;
  EXPECT_EQ(clEnqueueReadBuffer(cl.queue, buffer, CL_TRUE, 0, sizeof(value), &value, 0, nullptr, nullptr), CL_SUCCESS);
  EXPECT_EQ(value, 7);
  clReleaseMemObject(buffer);
  clReleaseKernel(kernel);
  for (cl_program program : {header, user, library, linked}) clReleaseProgram(program);
}

TEST(Programs, IncludeFilesOfTheGuest) {
  ClSetup cl;
  ASSERT_TRUE(cl.ok());
  // A directory that goes away before the build's result could have been read from it again.
  char directory[] = "/tmp/hawser-include-XXXXXX";
  ASSERT_NE(mkdtemp(directory), nullptr);
  const std::string path = std::string(directory) + "/answer.h";
  std::ofstream(path) << "#pragma once\n#define ANSWER 42\n";
  const char* source = "#include <answer.h>\n#include \"answer.h\"\nkernel void f(global int* a) { a[0] = ANSWER; }";
  cl_int error = CL_SUCCESS;
  cl_program program = clCreateProgramWithSource(cl.context, 1, &source, nullptr, &error);
  ASSERT_EQ(error, CL_SUCCESS);
  const std::string options = std::string("-I ") + directory;
  EXPECT_EQ(clBuildProgram(program, 1, &cl.device, options.c_str(), nullptr, nullptr), CL_SUCCESS)
      << BuildLog(program, cl.device);
  std::remove(path.c_str());
  rmdir(directory);
  // The program is still what it was created from.
  std::string kept(strlen(source) + 1, '\0');
  EXPECT_EQ(clGetProgramInfo(program, CL_PROGRAM_SOURCE, kept.size(), kept.data(), nullptr), CL_SUCCESS);
  EXPECT_STREQ(kept.c_str(), source);
  cl_kernel kernel = clCreateKernel(program, "f", &error);
  ASSERT_EQ(error, CL_SUCCESS);
  cl_mem buffer = cl.Buffer(sizeof(int));
  EXPECT_EQ(clSetKernelArg(kernel, 0, sizeof(buffer), &buffer), CL_SUCCESS);
  const size_t one = 1;
  EXPECT_EQ(clEnqueueNDRangeKernel(cl.queue, kernel, 1, nullptr, &one, nullptr, 0, nullptr, nullptr), CL_SUCCESS);
  int value = 0;
  EXPECT_EQ(clEnqueueReadBuffer(cl.queue, buffer, CL_TRUE, 0, sizeof(value), &value, 0, nullptr, nullptr), CL_SUCCESS);
  EXPECT_EQ(value, 42);
  clReleaseMemObject(buffer);
  clReleaseKernel(kernel);
  clReleaseProgram(program);
  // Without the file the compiler complains as ever.
  program = clCreateProgramWithSource(cl.context, 1, &source, nullptr, &error);
  EXPECT_EQ(clBuildProgram(program, 1, &cl.device, options.c_str(), nullptr, nullptr), CL_BUILD_PROGRAM_FAILURE);
  EXPECT_NE(BuildLog(program, cl.device).find("answer.h"), std::string::npos);
  clReleaseProgram(program);
}

TEST(Programs, BinariesMakeTheSameProgram) {
  ClSetup cl(0, "kernel void f(global int* a, int x) { a[0] = x * 2; }");
  ASSERT_TRUE(cl.ok());
  const auto size = Ask<size_t>(clGetProgramInfo, cl.program, CL_PROGRAM_BINARY_SIZES);
  ASSERT_GT(size, 0u);
  std::vector<unsigned char> binary(size);
  unsigned char* pointer = binary.data();
  const Counters before = Count(cl.platform);
  ASSERT_EQ(clGetProgramInfo(cl.program, CL_PROGRAM_BINARIES, sizeof(pointer), &pointer, nullptr), CL_SUCCESS);
  EXPECT_EQ(Count(cl.platform).commands, before.commands);  // Asked once, for the sizes.
  cl_int error = CL_SUCCESS, status = CL_INVALID_VALUE;
  const unsigned char* input = binary.data();
  cl_program program = clCreateProgramWithBinary(cl.context, 1, &cl.device, &size, &input, &status, &error);
  ASSERT_EQ(error, CL_SUCCESS);
  EXPECT_EQ(status, CL_SUCCESS);
  ASSERT_EQ(clBuildProgram(program, 1, &cl.device, "", nullptr, nullptr), CL_SUCCESS);
  cl_kernel kernel = clCreateKernel(program, "f", &error);
  ASSERT_EQ(error, CL_SUCCESS);
  cl_mem buffer = cl.Buffer(sizeof(int));
  const int x = 21;
  EXPECT_EQ(clSetKernelArg(kernel, 0, sizeof(buffer), &buffer), CL_SUCCESS);
  EXPECT_EQ(clSetKernelArg(kernel, 1, sizeof(x), &x), CL_SUCCESS);
  const size_t one = 1;
  EXPECT_EQ(clEnqueueNDRangeKernel(cl.queue, kernel, 1, nullptr, &one, nullptr, 0, nullptr, nullptr), CL_SUCCESS);
  int value = 0;
  EXPECT_EQ(clEnqueueReadBuffer(cl.queue, buffer, CL_TRUE, 0, sizeof(value), &value, 0, nullptr, nullptr), CL_SUCCESS);
  EXPECT_EQ(value, 42);
  clReleaseMemObject(buffer);
  clReleaseKernel(kernel);
  clReleaseProgram(program);
  const unsigned char junk[] = {1, 2, 3, 4};
  const unsigned char* bad = junk;
  const size_t junk_size = sizeof(junk);
  EXPECT_EQ(clCreateProgramWithBinary(cl.context, 1, &cl.device, &junk_size, &bad, &status, &error), nullptr);
  EXPECT_EQ(error, CL_INVALID_BINARY);
}

TEST(Kernels, CheckTheirArguments) {
  ClSetup cl(0, kSource);
  ASSERT_TRUE(cl.ok());
  cl_int error = CL_SUCCESS;
  EXPECT_EQ(clCreateKernel(cl.program, "no_such_kernel", &error), nullptr);
  EXPECT_EQ(error, CL_INVALID_KERNEL_NAME);
  EXPECT_EQ(clCreateKernel(cl.program, nullptr, &error), nullptr);
  EXPECT_EQ(error, CL_INVALID_VALUE);

  cl_kernel values = cl.Kernel("values");
  cl_mem buffer = cl.Buffer(64), null = nullptr;
  const float x = 1;
  EXPECT_EQ(clSetKernelArg(values, 99, sizeof(x), &x), CL_INVALID_ARG_INDEX);
  EXPECT_EQ(clSetKernelArg(values, 0, sizeof(null), &null), CL_SUCCESS);
  EXPECT_EQ(clSetKernelArg(values, 0, sizeof(null), nullptr), CL_SUCCESS);
  EXPECT_EQ(clSetKernelArg(values, 0, 4, &buffer), CL_INVALID_ARG_SIZE);
  auto not_a_buffer = reinterpret_cast<cl_mem>(cl.queue);
  EXPECT_EQ(clSetKernelArg(values, 0, sizeof(not_a_buffer), &not_a_buffer), CL_INVALID_MEM_OBJECT);
  EXPECT_EQ(clSetKernelArg(values, 1, sizeof(x), nullptr), CL_INVALID_ARG_VALUE);
  EXPECT_EQ(clSetKernelArg(values, 1, 8, &x), CL_INVALID_ARG_SIZE);
  EXPECT_EQ(clSetKernelArg(values, 3, sizeof(cl_float2), &x), CL_INVALID_ARG_SIZE);
  // All but the buffer are missing.
  const size_t one = 1;
  EXPECT_EQ(clEnqueueNDRangeKernel(cl.queue, values, 1, nullptr, &one, nullptr, 0, nullptr, nullptr),
            CL_INVALID_KERNEL_ARGS);

  struct {
    cl_int a;
    cl_float b;
  } pair = {10, 0.5f};
  const cl_uint n = 2;
  const cl_float4 v = {{4, 0, 0, 8}};
  const cl_float3 w = {{0, 0, 100, 0}};
  EXPECT_EQ(clSetKernelArg(values, 0, sizeof(buffer), &buffer), CL_SUCCESS);
  EXPECT_EQ(clSetKernelArg(values, 1, sizeof(x), &x), CL_SUCCESS);
  EXPECT_EQ(clSetKernelArg(values, 2, sizeof(n), &n), CL_SUCCESS);
  EXPECT_EQ(clSetKernelArg(values, 3, sizeof(v), &v), CL_SUCCESS);
  EXPECT_EQ(clSetKernelArg(values, 4, sizeof(pair), &pair), CL_SUCCESS);
  EXPECT_EQ(clSetKernelArg(values, 5, sizeof(w), &w), CL_SUCCESS);
  // A structure's size was learnt with the first set; this holds for other kernels of the same function too.
  const Counters before = Count(cl.platform);
  cl_kernel again = cl.Kernel("values");
  EXPECT_EQ(clSetKernelArg(values, 4, sizeof(pair), &pair), CL_SUCCESS);
  EXPECT_EQ(clSetKernelArg(again, 4, sizeof(pair), &pair), CL_SUCCESS);
  if (getenv("HAWSER_STRICT") == nullptr) {
    EXPECT_EQ(Count(cl.platform).waits, before.waits);
  }
  ASSERT_EQ(clEnqueueNDRangeKernel(cl.queue, values, 1, nullptr, &one, nullptr, 0, nullptr, nullptr), CL_SUCCESS);
  float out = 0;
  ASSERT_EQ(clEnqueueReadBuffer(cl.queue, buffer, CL_TRUE, 0, sizeof(out), &out, 0, nullptr, nullptr), CL_SUCCESS);
  EXPECT_EQ(out, 1 + 2 + 4 + 8 + 10.5f + 100);
  clReleaseKernel(again);
  clReleaseKernel(values);
  clReleaseMemObject(buffer);
}

TEST(Kernels, LocalArgumentsCount) {
  ClSetup cl(0, kSource);
  ASSERT_TRUE(cl.ok());
  cl_kernel kernel = cl.Kernel("shared");
  const auto declared = Ask<cl_ulong>(clGetKernelWorkGroupInfo, kernel, cl.device, CL_KERNEL_LOCAL_MEM_SIZE);
  const int value = 0;
  EXPECT_EQ(clSetKernelArg(kernel, 1, 0, nullptr), CL_INVALID_ARG_SIZE);
  EXPECT_EQ(clSetKernelArg(kernel, 1, sizeof(value), &value), CL_INVALID_ARG_VALUE);
  EXPECT_EQ(clSetKernelArg(kernel, 1, 100, nullptr), CL_SUCCESS);
  EXPECT_EQ(clSetKernelArg(kernel, 2, 28, nullptr), CL_SUCCESS);
  EXPECT_EQ(Ask<cl_ulong>(clGetKernelWorkGroupInfo, kernel, cl.device, CL_KERNEL_LOCAL_MEM_SIZE), declared + 128);
  EXPECT_EQ(clSetKernelArg(kernel, 2, 4, nullptr), CL_SUCCESS);
  EXPECT_EQ(Ask<cl_ulong>(clGetKernelWorkGroupInfo, kernel, cl.device, CL_KERNEL_LOCAL_MEM_SIZE), declared + 104);
  clReleaseKernel(kernel);
}

TEST(Kernels, AnswerWithoutAsking) {
  ClSetup cl(0, kSource);
  ASSERT_TRUE(cl.ok());
  cl_kernel kernel = cl.Kernel("fixed_group");
  cl_kernel filtered = cl.Kernel("filtered");
  const Counters before = Count(cl.platform);
  EXPECT_EQ(Ask<cl_uint>(clGetKernelInfo, filtered, CL_KERNEL_NUM_ARGS), 3u);
  EXPECT_EQ(Ask<cl_program>(clGetKernelInfo, kernel, CL_KERNEL_PROGRAM), cl.program);
  EXPECT_EQ(Ask<cl_context>(clGetKernelInfo, kernel, CL_KERNEL_CONTEXT), cl.context);
  char name[32] = {};
  EXPECT_EQ(clGetKernelInfo(kernel, CL_KERNEL_FUNCTION_NAME, sizeof(name), name, nullptr), CL_SUCCESS);
  EXPECT_STREQ(name, "fixed_group");
  EXPECT_EQ(clGetKernelArgInfo(filtered, 1, CL_KERNEL_ARG_TYPE_NAME, sizeof(name), name, nullptr), CL_SUCCESS);
  EXPECT_STREQ(name, "sampler_t");
  EXPECT_EQ(clGetKernelArgInfo(filtered, 3, CL_KERNEL_ARG_TYPE_NAME, sizeof(name), name, nullptr),
            CL_INVALID_ARG_INDEX);
  EXPECT_EQ(Ask<cl_kernel_arg_access_qualifier>(clGetKernelArgInfo, filtered, 0u, CL_KERNEL_ARG_ACCESS_QUALIFIER),
            cl_kernel_arg_access_qualifier{CL_KERNEL_ARG_ACCESS_READ_ONLY});
  const auto group =
      Ask<std::array<size_t, 3>>(clGetKernelWorkGroupInfo, kernel, cl.device, CL_KERNEL_COMPILE_WORK_GROUP_SIZE);
  EXPECT_EQ(group[0], 4u);
  EXPECT_GT(Ask<size_t>(clGetKernelWorkGroupInfo, kernel, nullptr, CL_KERNEL_WORK_GROUP_SIZE), 0u);
  size_t sizes[3] = {};
  EXPECT_EQ(clGetKernelWorkGroupInfo(kernel, cl.device, CL_KERNEL_GLOBAL_WORK_SIZE, sizeof(sizes), sizes, nullptr),
            CL_INVALID_VALUE);
  EXPECT_EQ(Count(cl.platform).commands, before.commands);
  clReleaseKernel(kernel);
  clReleaseKernel(filtered);
}

TEST(Kernels, AClonesArgumentsAreItsOwn) {
  ClSetup cl(0, "kernel void f(global int* a, int x) { a[0] = x; }");
  ASSERT_TRUE(cl.ok());
  cl_kernel kernel = cl.Kernel("f");
  cl_mem buffer = cl.Buffer(sizeof(int));
  const int first = 1, second = 2;
  clSetKernelArg(kernel, 0, sizeof(buffer), &buffer);
  clSetKernelArg(kernel, 1, sizeof(first), &first);
  cl_int error = CL_SUCCESS;
  cl_kernel clone = clCloneKernel(kernel, &error);
  ASSERT_EQ(error, CL_SUCCESS);
  clSetKernelArg(kernel, 1, sizeof(second), &second);
  const size_t one = 1;
  int value = 0;
  ASSERT_EQ(clEnqueueNDRangeKernel(cl.queue, clone, 1, nullptr, &one, nullptr, 0, nullptr, nullptr), CL_SUCCESS);
  ASSERT_EQ(clEnqueueReadBuffer(cl.queue, buffer, CL_TRUE, 0, sizeof(value), &value, 0, nullptr, nullptr), CL_SUCCESS);
  EXPECT_EQ(value, 1);
  clReleaseKernel(kernel);
  clReleaseKernel(clone);
  clReleaseMemObject(buffer);
}

}  // namespace
