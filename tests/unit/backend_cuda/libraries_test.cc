// SPDX-License-Identifier: Apache-2.0
// Libraries and their code in contexts, as guests name and release them in whatever order.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <span>
#include <thread>

#include "tests/unit/backend_cuda/session.h"

namespace hawser::server::cuda_backend {
namespace {

std::atomic<int> g_unloaded{0};  ///< Libraries that the driver was told to unload.

class Libraries : public ::testing::Test {
 protected:
  void SetUp() override {
    g_unloaded = 0;
    Session::Options options;
    options.adjust = [](DriverTable* driver) {
      driver->cuLibraryLoadData = [](CUlibrary* library, const void*, CUjit_option*, void**, unsigned, CUlibraryOption*,
                                     void**, unsigned) {
        *library = reinterpret_cast<CUlibrary>(uintptr_t{0x99});
        return CUDA_SUCCESS;
      };
      driver->cuLibraryUnload = [](CUlibrary) {
        ++g_unloaded;
        return CUDA_SUCCESS;
      };
      driver->cuLibraryGetModule = [](CUmodule* module, CUlibrary library) {
        if (library != reinterpret_cast<CUlibrary>(uintptr_t{0x99})) return CUDA_ERROR_INVALID_HANDLE;
        *module = reinterpret_cast<CUmodule>(uintptr_t{0x88});
        return CUDA_SUCCESS;
      };
    };
    session_ = std::make_unique<Session>(options);
    context_ = session_->NewContext();
    library_ = session_->NewModule({});
    ASSERT_TRUE(library_);
  }
  cuda::GetLibraryModule Get(wire::Id library, wire::Id context) {
    cuda::GetLibraryModule get;
    get.module = session_->NewId(cuda::Handle::kModule);
    get.library = library;
    get.context = context;
    status_ = session_->Ask<cuda::Status>(get)->status;
    return get;
  }
  void Release(wire::Id id) {
    cuda::Release release;
    release.object = id;
    EXPECT_EQ(session_->Do(release), 0);
  }
  /// Whether a function of it can be had and launched.
  int32_t Runs(wire::Id module) {
    const wire::Id function = session_->NewFunction(module, "add");
    if (session_->last().status != 0) return session_->last().status;
    struct {
      uint64_t pointer = 0;
      uint32_t count = 0, value = 0;
    } parameters;
    return session_->Launch(context_, {}, function, std::as_bytes(std::span(&parameters, 1)));
  }

  std::unique_ptr<Session> session_;
  wire::Id context_, library_;
  int32_t status_ = 0;
};

TEST_F(Libraries, TheirCodeInAContextIsAModule) {
  const wire::Id module = Get(library_, context_).module;
  EXPECT_EQ(status_, 0);
  EXPECT_EQ(Runs(module), 0);
  cuda::GetGlobal global;
  global.module = module;
  global.name = "counter";
  EXPECT_EQ(session_->Ask<cuda::GlobalReply>(global)->global.size, 64u);
}

TEST_F(Libraries, StayLoadedWhileTheirCodeHasAName) {
  const wire::Id module = Get(library_, context_).module;
  Release(library_);
  EXPECT_EQ(g_unloaded, 0);
  EXPECT_EQ(Runs(module), 0);
  Release(module);
  // Perhaps by another thread than the executor: the launch may still be under way.
  const auto give_up = std::chrono::steady_clock::now() + kPatience;
  while (g_unloaded == 0 && std::chrono::steady_clock::now() < give_up) std::this_thread::yield();
  EXPECT_EQ(g_unloaded, 1);
  EXPECT_EQ(Runs(module), CUDA_ERROR_INVALID_HANDLE);
}

TEST_F(Libraries, OutliveTheContextsOfTheirCode) {
  const wire::Id module = Get(library_, context_).module;
  Release(context_);
  context_ = session_->NewContext();
  EXPECT_EQ(Runs(module), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(g_unloaded, 0);
  (void)Get(library_, context_);
  EXPECT_EQ(status_, 0);
}

TEST_F(Libraries, WhatIsNoLibraryIsRefused) {
  const wire::Id plain = session_->NewModule(context_);
  (void)Get(plain, context_);
  EXPECT_EQ(status_, CUDA_ERROR_INVALID_HANDLE);
  const wire::Id part = Get(library_, context_).module;
  (void)Get(part, context_);
  EXPECT_EQ(status_, CUDA_ERROR_INVALID_HANDLE) << "a library's code in a context is none";
  Release(library_);
  (void)Get(library_, context_);
  EXPECT_EQ(status_, CUDA_ERROR_INVALID_HANDLE);
}

// Devices 0 and 1 of one server: capability 7.0 and 9.0.
TEST(Modules, AreChosenForTheDeviceOfTheirContext) {
  Session::Options options;
  options.devices = 2;
  options.adjust = [](DriverTable* driver) {
    driver->cuDeviceGet = [](CUdevice* device, int index) {
      *device = index;
      return CUDA_SUCCESS;
    };
    driver->cuDeviceGetAttribute = [](int* value, CUdevice_attribute attribute, CUdevice device) {
      *value = attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR ? 7 + 2 * device : 0;
      return CUDA_SUCCESS;
    };
  };
  Session session(options);
  const wire::Id older = session.NewContext(0);
  const wire::Id newer = session.NewContext(1);
  EXPECT_FALSE(session.NewModule(older, "ptx", 80)) << "it is for later devices";
  EXPECT_TRUE(session.NewModule(newer, "ptx", 80));
  EXPECT_TRUE(session.NewModule(older, "ptx", 70));
}

}  // namespace
}  // namespace hawser::server::cuda_backend
