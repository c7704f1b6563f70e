// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <string>

#include "tests/unit/softcuda_driver/driver_test.h"

namespace hawser::soft {
namespace {

TEST(SoftBeforeInit, NothingWorksButTheBasics) {
  int count = 0;
  EXPECT_CUDA(CUDA_ERROR_NOT_INITIALIZED, cuDeviceGetCount(&count));
  int version = 0;
  EXPECT_CUDA(CUDA_SUCCESS, cuDriverGetVersion(&version));
  EXPECT_EQ(version, CUDA_VERSION);
  EXPECT_CUDA(CUDA_ERROR_INVALID_VALUE, cuInit(1));
  CUdeviceptr address = 0;
  EXPECT_CUDA(CUDA_ERROR_NOT_INITIALIZED, cuMemAlloc(&address, 16));
}

class SoftDevice : public DriverTest {};

TEST_F(SoftDevice, SaysWhatItIs) {
  int count = 0;
  ASSERT_CUDA(CUDA_SUCCESS, cuDeviceGetCount(&count));
  EXPECT_EQ(count, 2);
  char name[64];
  EXPECT_CUDA(CUDA_SUCCESS, cuDeviceGetName(name, sizeof(name), 0));
  EXPECT_STREQ(name, "Hawser software device");
  EXPECT_CUDA(CUDA_SUCCESS, cuDeviceGetName(name, 7, 0));
  EXPECT_STREQ(name, "Hawser");
  size_t bytes = 0;
  EXPECT_CUDA(CUDA_SUCCESS, cuDeviceTotalMem(&bytes, 1));
  EXPECT_EQ(bytes, kDeviceBytes);
  int major = 0;
  EXPECT_CUDA(CUDA_SUCCESS, cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0));
  EXPECT_EQ(major, 9);
  CUuuid first;
  CUuuid second;
  EXPECT_CUDA(CUDA_SUCCESS, cuDeviceGetUuid(&first, 0));
  EXPECT_CUDA(CUDA_SUCCESS, cuDeviceGetUuid(&second, 1));
  EXPECT_NE(std::memcmp(&first, &second, sizeof(first)), 0);
}

TEST_F(SoftDevice, RefusesNumbersThatDoNotExist) {
  CUdevice device = 0;
  EXPECT_CUDA(CUDA_ERROR_INVALID_DEVICE, cuDeviceGet(&device, 2));
  EXPECT_CUDA(CUDA_ERROR_INVALID_DEVICE, cuDeviceGet(&device, -1));
  int value = 0;
  EXPECT_CUDA(CUDA_ERROR_INVALID_VALUE, cuDeviceGetAttribute(&value, static_cast<CUdevice_attribute>(100000), 0));
  EXPECT_CUDA(CUDA_ERROR_INVALID_VALUE, cuDeviceGetAttribute(nullptr, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 0));
}

TEST_F(SoftDevice, AnswersEveryAttribute) {
  for (int attribute = 1; attribute < CU_DEVICE_ATTRIBUTE_MAX; ++attribute) {
    int value = -99;
    EXPECT_CUDA(CUDA_SUCCESS, cuDeviceGetAttribute(&value, static_cast<CUdevice_attribute>(attribute), 0));
    EXPECT_GE(value, -1) << attribute;
  }
}

TEST_F(SoftDevice, IsFoundByItsBusAddress) {
  char id[32];
  ASSERT_CUDA(CUDA_SUCCESS, cuDeviceGetPCIBusId(id, sizeof(id), 1));
  CUdevice device = -1;
  EXPECT_CUDA(CUDA_SUCCESS, cuDeviceGetByPCIBusId(&device, id));
  EXPECT_EQ(device, 1);
  EXPECT_CUDA(CUDA_ERROR_INVALID_DEVICE, cuDeviceGetByPCIBusId(&device, "0000:77:00.0"));
}

TEST_F(SoftDevice, GivesEntryPoints) {
  void* address = nullptr;
  CUdriverProcAddressQueryResult status{};
  EXPECT_CUDA(CUDA_SUCCESS, cuGetProcAddress("cuInit", &address, 2000, 0, &status));
  EXPECT_EQ(address, reinterpret_cast<void*>(&cuInit));
  EXPECT_CUDA(CUDA_SUCCESS, cuGetProcAddress("", &address, 0, 0, &status));
  EXPECT_EQ(address, nullptr);
  EXPECT_EQ(status, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
  const void* table = &table;
  CUuuid any{};
  EXPECT_CUDA(CUDA_ERROR_NOT_FOUND, cuGetExportTable(&table, &any));
}

TEST_F(SoftDevice, RefusesWhatItDoesNotImplement) {
  EXPECT_CUDA(CUDA_ERROR_NOT_SUPPORTED, cuGraphicsUnregisterResource(nullptr));
}

class SoftContext : public DriverTest {};

TEST_F(SoftContext, IsNeededAndStacked) {
  CUdeviceptr address = 0;
  EXPECT_CUDA(CUDA_ERROR_INVALID_CONTEXT, cuMemAlloc(&address, 16));
  CUcontext first = nullptr;
  CUcontext second = nullptr;
  CUcontext current = nullptr;
  ASSERT_CUDA(CUDA_SUCCESS, cuCtxCreate(&first, nullptr, 0, 0));
  ASSERT_CUDA(CUDA_SUCCESS, cuCtxCreate(&second, nullptr, 0, 1));
  EXPECT_CUDA(CUDA_SUCCESS, cuCtxGetCurrent(&current));
  EXPECT_EQ(current, second);
  CUdevice device = -1;
  EXPECT_CUDA(CUDA_SUCCESS, cuCtxGetDevice(&device));
  EXPECT_EQ(device, 1);
  EXPECT_CUDA(CUDA_SUCCESS, cuCtxPopCurrent(&current));
  EXPECT_EQ(current, second);
  EXPECT_CUDA(CUDA_SUCCESS, cuCtxGetCurrent(&current));
  EXPECT_EQ(current, first);
  EXPECT_CUDA(CUDA_SUCCESS, cuCtxDestroy(second));
  EXPECT_CUDA(CUDA_ERROR_INVALID_CONTEXT, cuCtxPushCurrent(second));
  EXPECT_CUDA(CUDA_SUCCESS, cuCtxDestroy(first));
  EXPECT_CUDA(CUDA_SUCCESS, cuCtxGetCurrent(&current));
  EXPECT_EQ(current, nullptr);
}

TEST_F(SoftContext, PrimaryIsCountedAndReset) {
  CUcontext first = nullptr;
  CUcontext second = nullptr;
  unsigned flags = 0;
  int active = -1;
  EXPECT_CUDA(CUDA_ERROR_INVALID_CONTEXT, cuDevicePrimaryCtxRelease(0));
  ASSERT_CUDA(CUDA_SUCCESS, cuDevicePrimaryCtxRetain(&first, 0));
  ASSERT_CUDA(CUDA_SUCCESS, cuDevicePrimaryCtxRetain(&second, 0));
  EXPECT_EQ(first, second);
  EXPECT_CUDA(CUDA_ERROR_INVALID_CONTEXT, cuCtxDestroy(first));
  EXPECT_CUDA(CUDA_SUCCESS, cuDevicePrimaryCtxRelease(0));
  EXPECT_CUDA(CUDA_SUCCESS, cuDevicePrimaryCtxGetState(0, &flags, &active));
  EXPECT_EQ(active, 1);
  ASSERT_CUDA(CUDA_SUCCESS, cuCtxSetCurrent(first));
  CUdeviceptr address = 0;
  EXPECT_CUDA(CUDA_SUCCESS, cuMemAlloc(&address, 4096));
  EXPECT_CUDA(CUDA_SUCCESS, cuDevicePrimaryCtxReset(0));
  EXPECT_CUDA(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuMemAlloc(&address, 16));
  EXPECT_CUDA(CUDA_SUCCESS, cuDevicePrimaryCtxGetState(0, &flags, &active));
  EXPECT_EQ(active, 0);
  // A fresh one works, and the memory of the old one is free again.
  ASSERT_CUDA(CUDA_SUCCESS, cuDevicePrimaryCtxRetain(&second, 0));
  ASSERT_CUDA(CUDA_SUCCESS, cuCtxSetCurrent(second));
  size_t free = 0;
  size_t total = 0;
  EXPECT_CUDA(CUDA_SUCCESS, cuMemGetInfo(&free, &total));
  EXPECT_EQ(free, total);
  EXPECT_CUDA(CUDA_SUCCESS, cuDevicePrimaryCtxRelease(0));
  EXPECT_CUDA(CUDA_SUCCESS, cuCtxSetCurrent(nullptr));
}

TEST_F(SoftContext, KeepsLimits) {
  CUcontext context = nullptr;
  ASSERT_CUDA(CUDA_SUCCESS, cuCtxCreate(&context, nullptr, 0, 0));
  size_t value = 0;
  EXPECT_CUDA(CUDA_SUCCESS, cuCtxGetLimit(&value, CU_LIMIT_MALLOC_HEAP_SIZE));
  EXPECT_EQ(value, size_t{8} << 20);
  EXPECT_CUDA(CUDA_SUCCESS, cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 4096));
  EXPECT_CUDA(CUDA_SUCCESS, cuCtxGetLimit(&value, CU_LIMIT_STACK_SIZE));
  EXPECT_EQ(value, 4096U);
  EXPECT_CUDA(CUDA_ERROR_UNSUPPORTED_LIMIT, cuCtxGetLimit(&value, CU_LIMIT_MAX));
  EXPECT_CUDA(CUDA_SUCCESS, cuCtxDestroy(context));
}

TEST_F(SoftContext, PeersAreEnabledOnce) {
  CUcontext first = nullptr;
  CUcontext second = nullptr;
  ASSERT_CUDA(CUDA_SUCCESS, cuCtxCreate(&second, nullptr, 0, 1));
  ASSERT_CUDA(CUDA_SUCCESS, cuCtxCreate(&first, nullptr, 0, 0));
  int can = 0;
  EXPECT_CUDA(CUDA_SUCCESS, cuDeviceCanAccessPeer(&can, 0, 1));
  EXPECT_EQ(can, 1);
  EXPECT_CUDA(CUDA_SUCCESS, cuCtxEnablePeerAccess(second, 0));
  EXPECT_CUDA(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED, cuCtxEnablePeerAccess(second, 0));
  EXPECT_CUDA(CUDA_SUCCESS, cuCtxDisablePeerAccess(second));
  EXPECT_CUDA(CUDA_ERROR_PEER_ACCESS_NOT_ENABLED, cuCtxDisablePeerAccess(second));
  EXPECT_CUDA(CUDA_SUCCESS, cuCtxDestroy(first));
  EXPECT_CUDA(CUDA_SUCCESS, cuCtxDestroy(second));
}

}  // namespace
}  // namespace hawser::soft
