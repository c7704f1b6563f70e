// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sched.h>
#include <stdlib.h>

#include <cstdlib>
#include <string>
#include <thread>

#include "server/backends/opencl/device_threads.h"
#include "server/backends/opencl/info_parameters.h"
#include "tests/unit/backend_opencl/session.h"

namespace hawser::server::ocl {
namespace {

const opencl::InfoValue* FindValue(const std::vector<opencl::InfoValue>& values, uint32_t param) {
  for (const opencl::InfoValue& value : values) {
    if (value.param == param) return &value;
  }
  return nullptr;
}

std::vector<opencl::InfoValue> Values(const wire::ListView<opencl::InfoValue>& list) {
  std::vector<opencl::InfoValue> values;
  list.ForEach([&](const opencl::InfoValue& value) { values.push_back(value); });
  return values;
}

TEST(Inventory, TellsWhatTheDriverTells) {
  Session session;
  const uint64_t seq = 77;
  const opencl::Call call{seq, static_cast<uint16_t>(opencl::Opcode::kGetInventory), 0};
  ASSERT_EQ(session.backend().GetInventory(call, {}), CL_SUCCESS);
  const auto inventory = session.AwaitReply<opencl::Inventory>(seq);
  ASSERT_TRUE(inventory.has_value());
  ASSERT_GE(inventory->message.platforms.size(), 1u);

  cl_platform_id native_platforms[16];
  cl_uint native_count = 0;
  ASSERT_EQ(clGetPlatformIDs(16, native_platforms, &native_count), CL_SUCCESS);
  size_t index = 0;
  inventory->message.platforms.ForEach([&](const opencl::PlatformInfo& platform) {
    EXPECT_EQ(platform.platform.type(), static_cast<uint8_t>(opencl::Handle::kPlatform));
    const std::vector<opencl::InfoValue> values = Values(platform.info);
    const opencl::InfoValue* name = FindValue(values, CL_PLATFORM_NAME);
    ASSERT_NE(name, nullptr);
    EXPECT_EQ(std::string_view(reinterpret_cast<const char*>(name->value.data()), name->value.size()).find("Hawser"),
              std::string_view::npos);
    platform.devices.ForEach([&](const opencl::DeviceInfo& device) {
      EXPECT_EQ(device.device, Id(static_cast<uint8_t>(opencl::Handle::kDevice), 1, static_cast<uint32_t>(++index)));
      EXPECT_FALSE(device.parent);
      const std::vector<opencl::InfoValue> answers = Values(device.info);
      EXPECT_EQ(answers.size(), DeviceParameters().size());
      EXPECT_EQ(FindValue(answers, CL_DEVICE_PLATFORM), nullptr) << "a handle of the server";
      for (const uint32_t param : {CL_DEVICE_TYPE, CL_DEVICE_MAX_COMPUTE_UNITS, CL_DEVICE_NAME, CL_DEVICE_VERSION,
                                   CL_DEVICE_EXTENSIONS, CL_DEVICE_GLOBAL_MEM_SIZE}) {
        const opencl::InfoValue* answer = FindValue(answers, param);
        ASSERT_NE(answer, nullptr) << std::hex << param;
        EXPECT_EQ(answer->status, CL_SUCCESS) << std::hex << param;
        EXPECT_FALSE(answer->value.empty()) << std::hex << param;
      }
    });
  });
  ASSERT_GE(index, 1u);

  // Byte for byte, for the first device.
  cl_device_id native = nullptr;
  ASSERT_EQ(clGetDeviceIDs(native_platforms[0], CL_DEVICE_TYPE_ALL, 1, &native, nullptr), CL_SUCCESS);
  bool first = true;
  inventory->message.platforms.ForEach([&](const opencl::PlatformInfo& platform) {
    platform.devices.ForEach([&](const opencl::DeviceInfo& device) {
      if (!std::exchange(first, false)) return;
      for (const opencl::InfoValue& answer : Values(device.info)) {
        size_t size = 0;
        const cl_int status = clGetDeviceInfo(native, answer.param, 0, nullptr, &size);
        EXPECT_EQ(status, answer.status) << std::hex << answer.param;
        if (status != CL_SUCCESS || answer.param == CL_DEVICE_REFERENCE_COUNT) continue;
        std::vector<std::byte> value(size);
        if (size != 0) {
          ASSERT_EQ(clGetDeviceInfo(native, answer.param, size, value.data(), nullptr), CL_SUCCESS);
        }
        EXPECT_EQ(value, std::vector<std::byte>(answer.value.begin(), answer.value.end())) << std::hex << answer.param;
      }
    });
  });
}

TEST(Inventory, ParametersAscendAndHoldNoHandles) {
  for (const std::vector<uint32_t>* list : {&PlatformParameters(), &DeviceParameters()}) {
    for (size_t i = 1; i < list->size(); ++i) EXPECT_LT((*list)[i - 1], (*list)[i]);
    for (const uint32_t param : *list) {
      EXPECT_NE(param, static_cast<uint32_t>(CL_DEVICE_PLATFORM));
      EXPECT_NE(param, static_cast<uint32_t>(CL_DEVICE_PARENT_DEVICE));
    }
  }
}

TEST(Inventory, ACpuDeviceWantsAHeap) {
  Session session;
  cl_platform_id platform = nullptr;
  cl_device_id device = nullptr;
  ASSERT_EQ(clGetPlatformIDs(1, &platform, nullptr), CL_SUCCESS);
  ASSERT_EQ(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, nullptr), CL_SUCCESS);
  cl_device_type type = 0;
  cl_ulong memory = 0;
  ASSERT_EQ(clGetDeviceInfo(device, CL_DEVICE_TYPE, sizeof(type), &type, nullptr), CL_SUCCESS);
  ASSERT_EQ(clGetDeviceInfo(device, CL_DEVICE_GLOBAL_MEM_SIZE, sizeof(memory), &memory, nullptr), CL_SUCCESS);
  if ((type & CL_DEVICE_TYPE_CPU) == 0) {
    EXPECT_FALSE(session.backend().WantsHeap());
    GTEST_SKIP() << "the first device is no CPU device";
  }
  EXPECT_TRUE(session.backend().WantsHeap());
  EXPECT_GE(session.backend().HeapSizeHint(), memory);
}

TEST(Inventory, SubDevices) {
  Session session;
  opencl::CreateSubDevices create;
  create.device = session.Device();
  const int64_t properties[] = {CL_DEVICE_PARTITION_EQUALLY, 1, 0};
  create.properties = wire::ArrayView<int64_t>(properties, 3);
  std::vector<Id> names;
  for (uint32_t i = 0; i < 256; ++i) names.emplace_back(static_cast<uint8_t>(opencl::Handle::kDevice), 1, 1000 + i);
  create.names = wire::ArrayView<Id>(names.data(), names.size());
  const auto reply = session.Ask<opencl::SubDevices>(create);
  ASSERT_TRUE(reply.has_value());
  if (reply->message.status == CL_DEVICE_PARTITION_FAILED || reply->message.status == CL_INVALID_VALUE) {
    GTEST_SKIP() << "the device cannot be divided";
  }
  ASSERT_EQ(reply->message.status, CL_SUCCESS);
  ASSERT_GE(reply->message.devices.size(), 1u);
  Id first;
  reply->message.devices.ForEach([&](const opencl::DeviceInfo& device) {
    if (!first) first = device.device;
    EXPECT_EQ(device.parent, session.Device());
    const std::vector<opencl::InfoValue> values = Values(device.info);
    const opencl::InfoValue* units = FindValue(values, CL_DEVICE_MAX_COMPUTE_UNITS);
    ASSERT_NE(units, nullptr);
    EXPECT_EQ(ValuesOf<cl_uint>(units->value), std::vector<cl_uint>{1});
  });
  EXPECT_EQ(first, names[0]);

  // It works as a device, and stops being one when released.
  opencl::CreateContext context;
  context.context = session.NewId(opencl::Handle::kContext);
  context.devices = wire::ArrayView<Id>(&first, 1);
  EXPECT_EQ(session.Do(context), CL_SUCCESS);
  EXPECT_EQ(session.Release(first), CL_SUCCESS);
  context.context = session.NewId(opencl::Handle::kContext);
  EXPECT_EQ(session.Do(context), CL_INVALID_DEVICE);

  // Too few names, a name that is taken, a device that is not there.
  names.assign(1, Id(static_cast<uint8_t>(opencl::Handle::kDevice), 1, 1));
  create.names = wire::ArrayView<Id>(names.data(), names.size());
  auto refused = session.Ask<opencl::SubDevices>(create);
  ASSERT_TRUE(refused.has_value());
  EXPECT_EQ(refused->message.status, CL_INVALID_VALUE);
  EXPECT_EQ(refused->message.devices.size(), 0u);
  create.device = Id(static_cast<uint8_t>(opencl::Handle::kDevice), 9, 1);
  refused = session.Ask<opencl::SubDevices>(create);
  ASSERT_TRUE(refused.has_value());
  EXPECT_EQ(refused->message.status, CL_INVALID_DEVICE);
}

TEST(Inventory, RootDevicesStay) {
  Session session;
  EXPECT_EQ(session.Release(session.Device()), CL_SUCCESS);
  EXPECT_TRUE(session.Context());
}

TEST(Inventory, Timers) {
  Session session;
  opencl::GetDeviceAndHostTimer get;
  get.device = session.Device();
  const auto reply = session.Ask<opencl::Timers>(get);
  ASSERT_TRUE(reply.has_value());
  if (reply->message.status == CL_SUCCESS) {
    EXPECT_NE(reply->message.device, 0u);
    EXPECT_NE(reply->message.host, 0u);
  } else {
    EXPECT_EQ(reply->message.status, CL_INVALID_OPERATION);
  }
  get.device = Id(static_cast<uint8_t>(opencl::Handle::kDevice), 7, 1);
  const auto refused = session.Ask<opencl::Timers>(get);
  ASSERT_TRUE(refused.has_value());
  EXPECT_EQ(refused->message.status, CL_INVALID_DEVICE);
}

// In a thread of its own: its class is what is changed.
TEST(DeviceThreads, OnProcessorsOfTheirOwnTheyPreemptNobody) {
  const char* const before = std::getenv("POCL_AFFINITY");
  const std::string kept = before != nullptr ? before : "";
  std::thread([] {
    for (const char* affinity : {"1", "0"}) {
      ::setenv("POCL_AFFINITY", affinity, 1);
      const DeviceThreads threads;
      int started = -1;
      std::thread([&started] { started = ::sched_getscheduler(0); }).join();
      EXPECT_EQ(started, std::string(affinity) == "1" ? SCHED_BATCH : SCHED_OTHER) << affinity;
    }
    EXPECT_EQ(::sched_getscheduler(0), SCHED_OTHER);
    ::setenv("POCL_AFFINITY", "1", 1);
    {
      const DeviceThreads threads;
      EXPECT_EQ(::sched_getscheduler(0), SCHED_BATCH);
    }
    EXPECT_EQ(::sched_getscheduler(0), SCHED_OTHER) << "what the worker starts afterwards has it no longer";
  }).join();
  if (before != nullptr) {
    ::setenv("POCL_AFFINITY", kept.c_str(), 1);
  } else {
    ::unsetenv("POCL_AFFINITY");
  }
}

}  // namespace
}  // namespace hawser::server::ocl
