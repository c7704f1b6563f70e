// SPDX-License-Identifier: Apache-2.0
// Sessions with contexts on several devices, each of which has a gate of its own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <thread>

#include "tests/unit/backend_cuda/session.h"

namespace hawser::server::cuda_backend {
namespace {

using cuda::Handle;
using ::testing::ElementsAre;

/// Alone, or shut.
class SimpleGate final : public LaunchGate {
 public:
  bool BeginOpen() override { return alone; }
  void SetDrain(std::function<void()> drain_function) override { drain = std::move(drain_function); }
  uint64_t OpenCapNs() const override { return 10'000'000; }
  uint64_t UnitNs() const override { return alone ? 0 : 1'000'000; }
  uint32_t Tenants() const override { return alone ? 1 : 2; }
  bool TryEnter(uint64_t) override { return false; }
  bool Enter(uint64_t) override {
    cancelled.wait(false);
    return false;
  }
  void Leave(uint64_t, uint64_t) override {}
  void Cancel() override {
    cancelled = true;
    cancelled.notify_all();
  }

  std::atomic<bool> alone{true}, cancelled{false};
  std::function<void()> drain;
};

class NamedGates final : public LaunchGates {
 public:
  LaunchGate& Of(const std::string& device) override {
    std::unique_ptr<SimpleGate>& gate = gates[device];
    if (gate == nullptr) gate = std::make_unique<SimpleGate>();
    return *gate;
  }
  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const auto& [name, gate] : gates) all.push_back(name);
    return all;
  }
  std::map<std::string, std::unique_ptr<SimpleGate>> gates;
};

struct AddParameters {
  uint64_t pointer = 0;
  uint32_t count = 0;
  uint32_t value = 0;
  wire::Bytes bytes() const { return wire::AsBytes(this, sizeof(*this)); }
};

/// Two devices, at 0000:0a:03 and 0001:41:00, if they are asked.
void MakeTwo(DriverTable* driver) {
  driver->cuDeviceGet = [](CUdevice* device, int index) {
    *device = index;
    return CUDA_SUCCESS;
  };
  driver->cuDevicePrimaryCtxRetain = [](CUcontext* context, CUdevice device) {
    *context = reinterpret_cast<CUcontext>(uintptr_t{0x77} + static_cast<uintptr_t>(device));
    return CUDA_SUCCESS;
  };
  driver->cuDeviceGetAttribute = [](int* value, CUdevice_attribute attribute, CUdevice device) {
    switch (attribute) {
      case CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID:
        *value = device;
        break;
      case CU_DEVICE_ATTRIBUTE_PCI_BUS_ID:
        *value = device == 0 ? 0x0a : 0x41;
        break;
      case CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID:
        *value = device == 0 ? 3 : 0;
        break;
      default:
        *value = attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR ? 9 : 1;
    }
    return CUDA_SUCCESS;
  };
}

Session::Options TwoDevices(LaunchGates* gates, bool soft) {
  Session::Options options;
  options.devices = 2;
  options.soft = soft;
  options.gates = gates;
  options.memory_from = CudaMemory::kDriver;
  options.adjust = &MakeTwo;
  return options;
}

/// The software device, whose devices are to be apart.
class CudaDevices : public ::testing::Test {
 protected:
  CudaDevices() { ::setenv("HAWSER_CPU_DEVICES_APART", "1", 1); }
  ~CudaDevices() override { ::unsetenv("HAWSER_CPU_DEVICES_APART"); }
  SimpleGate& Gate(const std::string& device) { return *gates.gates.at(device); }

  NamedGates gates;
};

TEST_F(CudaDevices, AShutGateHoldsNoOtherDevice) {
  Session session(TwoDevices(&gates, true));
  const wire::Id one = session.NewContext(0), two = session.NewContext(1);
  ASSERT_THAT(gates.names(), ElementsAre("cpu:0", "cpu:1"));
  const wire::Id on_one = session.NewFunction(session.NewModule(one), "add");
  const wire::Id on_two = session.NewFunction(session.NewModule(two), "add");
  const AddParameters parameters{session.NewMemory(one, 64), 4, 1};
  Gate("cpu:0").alone = false;
  EXPECT_EQ(session.Launch(one, {}, on_one, parameters.bytes()), 0);
  EXPECT_TRUE(session.last().deferred);
  EXPECT_EQ(session.Launch(two, {}, on_two, parameters.bytes()), 0);
  EXPECT_FALSE(session.last().deferred);
}

TEST_F(CudaDevices, AnotherDeviceIsUsedForTheFirstTimeBesideALaunchThatWaits) {
  Session session(TwoDevices(&gates, true));
  const wire::Id one = session.NewContext(0);
  Gate("cpu:0").alone = false;
  EXPECT_EQ(session.Launch(one, {}, session.NewFunction(session.NewModule(one), "block")), 0);
  EXPECT_TRUE(session.last().deferred);
  const wire::Id two = session.NewContext(1);
  EXPECT_FALSE(session.last().deferred);
  const wire::Id on_two = session.NewFunction(session.NewModule(two), "add");
  const AddParameters parameters{session.NewMemory(two, 64), 4, 1};
  EXPECT_EQ(session.Launch(two, {}, on_two, parameters.bytes()), 0);
  EXPECT_FALSE(session.last().deferred);
  EXPECT_EQ(session.Synchronize(two), 0);
}

TEST_F(CudaDevices, ADrainWaitsForItsDeviceOnly) {
  Session session(TwoDevices(&gates, true));
  const wire::Id one = session.NewContext(0), two = session.NewContext(1);
  const wire::Id first = session.NewStream(one), second = session.NewStream(two);
  ASSERT_EQ(session.Launch(one, first, session.NewFunction(session.NewModule(one), "block")), 0);
  const AddParameters parameters{session.NewMemory(two, 64), 4, 1};
  ASSERT_EQ(session.Launch(two, second, session.NewFunction(session.NewModule(two), "add"), parameters.bytes()), 0);
  std::atomic<int> drained{0};
  std::thread of_two([&] {
    Gate("cpu:1").drain();
    drained = 1;
  });
  // What runs on the first one does not end.
  while (drained == 0) session.backend->Resume();
  of_two.join();
  std::thread of_one([&] {
    Gate("cpu:0").drain();
    drained = 2;
  });
  for (int i = 0; i < 20; ++i) {
    session.backend->Resume();
    std::this_thread::yield();
  }
  EXPECT_EQ(drained, 1);
  session.driver.Unblock();
  while (drained == 1) session.backend->Resume();
  of_one.join();
}

TEST_F(CudaDevices, AllThatComputeOnTheProcessorsAreOneUnlessSaidOtherwise) {
  ::unsetenv("HAWSER_CPU_DEVICES_APART");
  Session session(TwoDevices(&gates, true));
  session.NewContext(0);
  session.NewContext(1);
  EXPECT_THAT(gates.names(), ElementsAre("cpu"));
}

TEST_F(CudaDevices, GpusAreWhereTheyAreOnTheBus) {
  Session session(TwoDevices(&gates, false));
  session.NewContext(1);
  EXPECT_THAT(gates.names(), ElementsAre("pci:0001:41:00"));
  session.NewContext(0);
  EXPECT_THAT(gates.names(), ElementsAre("pci:0000:0a:03", "pci:0001:41:00"));
}

TEST_F(CudaDevices, GpusWhoseDriverDoesNotSayAreCounted) {
  Session::Options options = TwoDevices(&gates, false);
  options.adjust = [](DriverTable* driver) {
    MakeTwo(driver);
    driver->cuDeviceGetAttribute = [](int* value, CUdevice_attribute attribute, CUdevice) {
      *value = attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR ? 9 : 0;
      return CUDA_SUCCESS;
    };
  };
  Session session(options);
  session.NewContext(1);
  EXPECT_THAT(gates.names(), ElementsAre("nvidia:1"));
}

}  // namespace
}  // namespace hawser::server::cuda_backend
