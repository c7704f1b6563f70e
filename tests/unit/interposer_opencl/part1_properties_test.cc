// SPDX-License-Identifier: Apache-2.0
#include <CL/cl_gl.h>
#include <gtest/gtest.h>

#include "interposer/opencl/properties.h"

namespace hawser::ocl {
namespace {

template <typename T>
void Put(InfoMap& info, cl_uint param, T value) {
  const auto* bytes = reinterpret_cast<const std::byte*>(&value);
  info[param] = {CL_SUCCESS, std::vector<std::byte>(bytes, bytes + sizeof(T))};
}

TEST(Properties, CountsWithTheFinalZero) {
  const cl_queue_properties none[] = {0};
  const cl_queue_properties one[] = {CL_QUEUE_PROPERTIES, 0, 0};  // A value of 0 is no end.
  EXPECT_EQ(PropertyCount<cl_queue_properties>(nullptr), 0u);
  EXPECT_EQ(PropertyCount(none), 1u);
  EXPECT_EQ(PropertyCount(one), 3u);
  EXPECT_EQ(CopyProperties(one), (std::vector<cl_queue_properties>{CL_QUEUE_PROPERTIES, 0, 0}));
}

TEST(ContextProperties, TakesThePlatformOut) {
  const cl_context_properties list[] = {CL_CONTEXT_PLATFORM, 0x1000, CL_CONTEXT_INTEROP_USER_SYNC, CL_TRUE, 0};
  ContextProperties properties;
  ASSERT_EQ(ParseContextProperties(list, &properties), CL_SUCCESS);
  EXPECT_TRUE(properties.has_platform);
  EXPECT_EQ(reinterpret_cast<intptr_t>(properties.platform), 0x1000);
  EXPECT_EQ(properties.forwarded, (std::vector<int64_t>{CL_CONTEXT_INTEROP_USER_SYNC, CL_TRUE}));
}

TEST(ContextProperties, RefusesWhatItDoesNotKnow) {
  ContextProperties properties;
  const cl_context_properties unknown[] = {0x1234, 1, 0};
  EXPECT_EQ(ParseContextProperties(unknown, &properties), CL_INVALID_PROPERTY);
  const cl_context_properties twice[] = {CL_CONTEXT_PLATFORM, 1, CL_CONTEXT_PLATFORM, 1, 0};
  EXPECT_EQ(ParseContextProperties(twice, &properties), CL_INVALID_PROPERTY);
  const cl_context_properties graphics[] = {CL_GL_CONTEXT_KHR, 1, 0};
  EXPECT_EQ(ParseContextProperties(graphics, &properties), CL_INVALID_PROPERTY);
  const cl_context_properties value[] = {CL_CONTEXT_INTEROP_USER_SYNC, 2, 0};
  EXPECT_EQ(ParseContextProperties(value, &properties), CL_INVALID_PROPERTY);
  EXPECT_EQ(ParseContextProperties(nullptr, &properties), CL_SUCCESS);
}

class QueuePropertiesTest : public testing::Test {
 protected:
  cl_int Parse(std::vector<cl_queue_properties> list) {
    properties_ = {};
    return ParseQueueProperties(list.data(), device_, &properties_);
  }
  InfoMap device_;
  QueueProperties properties_;
};

TEST_F(QueuePropertiesTest, SupportedFlags) {
  Put<cl_command_queue_properties>(device_, CL_DEVICE_QUEUE_ON_HOST_PROPERTIES, CL_QUEUE_PROFILING_ENABLE);
  EXPECT_EQ(Parse({CL_QUEUE_PROPERTIES, CL_QUEUE_PROFILING_ENABLE, 0}), CL_SUCCESS);
  EXPECT_EQ(properties_.flags, cl_bitfield{CL_QUEUE_PROFILING_ENABLE});
  EXPECT_EQ(properties_.forwarded, (std::vector<uint64_t>{CL_QUEUE_PROPERTIES, CL_QUEUE_PROFILING_ENABLE}));
  EXPECT_EQ(Parse({CL_QUEUE_PROPERTIES, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, 0}), CL_INVALID_QUEUE_PROPERTIES);
  EXPECT_EQ(Parse({0}), CL_SUCCESS);
  EXPECT_EQ(ParseQueueProperties(nullptr, device_, &properties_), CL_SUCCESS);
}

TEST_F(QueuePropertiesTest, IllegalLists) {
  EXPECT_EQ(Parse({CL_QUEUE_PROPERTIES, 1u << 10, 0}), CL_INVALID_VALUE);
  EXPECT_EQ(Parse({0x9999, 1, 0}), CL_INVALID_VALUE);
  EXPECT_EQ(Parse({CL_QUEUE_SIZE, 16, 0}), CL_INVALID_VALUE);  // Only of queues on the device.
  EXPECT_EQ(Parse({CL_QUEUE_PROPERTIES, 0, CL_QUEUE_PROPERTIES, 0, 0}), CL_INVALID_VALUE);
  EXPECT_EQ(Parse({CL_QUEUE_PROPERTIES, CL_QUEUE_ON_DEVICE, 0}), CL_INVALID_VALUE);  // Must be out of order.
  EXPECT_EQ(Parse({CL_QUEUE_PROPERTIES, CL_QUEUE_ON_DEVICE_DEFAULT, 0}), CL_INVALID_VALUE);
}

TEST_F(QueuePropertiesTest, OnTheDevice) {
  const cl_queue_properties flags = CL_QUEUE_ON_DEVICE | CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE;
  EXPECT_EQ(Parse({CL_QUEUE_PROPERTIES, flags, 0}), CL_INVALID_QUEUE_PROPERTIES);
  Put<cl_command_queue_properties>(device_, CL_DEVICE_QUEUE_ON_DEVICE_PROPERTIES,
                                   CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
  Put<cl_uint>(device_, CL_DEVICE_QUEUE_ON_DEVICE_PREFERRED_SIZE, 64);
  Put<cl_uint>(device_, CL_DEVICE_QUEUE_ON_DEVICE_MAX_SIZE, 128);
  EXPECT_EQ(Parse({CL_QUEUE_PROPERTIES, flags, 0}), CL_SUCCESS);
  EXPECT_EQ(properties_.size, 64u);
  EXPECT_EQ(Parse({CL_QUEUE_PROPERTIES, flags, CL_QUEUE_SIZE, 100, 0}), CL_SUCCESS);
  EXPECT_EQ(properties_.size, 100u);
  EXPECT_EQ(Parse({CL_QUEUE_PROPERTIES, flags, CL_QUEUE_SIZE, 129, 0}), CL_INVALID_QUEUE_PROPERTIES);
}

TEST_F(QueuePropertiesTest, HintsNeedTheirExtension) {
  EXPECT_EQ(Parse({CL_QUEUE_PRIORITY_KHR, CL_QUEUE_PRIORITY_LOW_KHR, 0}), CL_INVALID_QUEUE_PROPERTIES);
  const char text[] = "cl_khr_priority_hints";
  const auto* bytes = reinterpret_cast<const std::byte*>(text);
  device_[CL_DEVICE_EXTENSIONS] = {CL_SUCCESS, std::vector<std::byte>(bytes, bytes + sizeof(text))};
  EXPECT_EQ(Parse({CL_QUEUE_PRIORITY_KHR, CL_QUEUE_PRIORITY_LOW_KHR, 0}), CL_SUCCESS);
  EXPECT_EQ(Parse({CL_QUEUE_PRIORITY_KHR, 3, 0}), CL_INVALID_VALUE);
}

TEST(SamplerProperties, DefaultsAndErrors) {
  SamplerProperties properties;
  ASSERT_EQ(ParseSamplerProperties(nullptr, &properties), CL_SUCCESS);
  EXPECT_EQ(properties.normalized, cl_bool{CL_TRUE});
  EXPECT_EQ(properties.addressing, cl_addressing_mode{CL_ADDRESS_CLAMP});
  EXPECT_EQ(properties.filter, cl_filter_mode{CL_FILTER_NEAREST});
  const cl_sampler_properties full[] = {CL_SAMPLER_NORMALIZED_COORDS,
                                        CL_FALSE,
                                        CL_SAMPLER_ADDRESSING_MODE,
                                        CL_ADDRESS_NONE,
                                        CL_SAMPLER_FILTER_MODE,
                                        CL_FILTER_LINEAR,
                                        0};
  ASSERT_EQ(ParseSamplerProperties(full, &properties), CL_SUCCESS);
  EXPECT_EQ(properties.normalized, cl_bool{CL_FALSE});
  EXPECT_EQ(properties.filter, cl_filter_mode{CL_FILTER_LINEAR});
  const cl_sampler_properties unknown[] = {0x99, 1, 0};
  EXPECT_EQ(ParseSamplerProperties(unknown, &properties), CL_INVALID_VALUE);
  const cl_sampler_properties mode[] = {CL_SAMPLER_FILTER_MODE, 0x99, 0};
  EXPECT_EQ(ParseSamplerProperties(mode, &properties), CL_INVALID_VALUE);
  const cl_sampler_properties repeat[] = {CL_SAMPLER_NORMALIZED_COORDS, CL_FALSE, CL_SAMPLER_ADDRESSING_MODE,
                                          CL_ADDRESS_REPEAT, 0};
  EXPECT_EQ(ParseSamplerProperties(repeat, &properties), CL_INVALID_VALUE);
}

}  // namespace
}  // namespace hawser::ocl
