// SPDX-License-Identifier: Apache-2.0
// Libraries and their code in contexts (CUDA driver API, "Library Management"), and options of their compiler.
#include <cuda.h>

#include <cstdint>
#include <iterator>

#include "tests/integration/cuda_fixture.h"

namespace hawser {
namespace {

class CudaLibrary : public CudaTest {
 protected:
  void SetUp() override {
    CudaTest::SetUp();
    HAWSER_CU(cuLibraryLoadData(&library_, Kernels(), nullptr, nullptr, 0, nullptr, nullptr, 0));
  }
  void TearDown() override {
    if (library_ != nullptr) (void)cuLibraryUnload(library_);
    CudaTest::TearDown();
  }
  /// Adds 5 to 7 with the module's kernel.
  static void ItsKernelsRun(CUmodule module) {
    CUfunction add = nullptr;
    HAWSER_CU(cuModuleGetFunction(&add, module, "add"));
    CUdeviceptr memory = 0;
    uint32_t value = 0;
    HAWSER_CU(cuMemAlloc(&memory, 4));
    HAWSER_CU(cuMemsetD32(memory, 7, 1));
    HAWSER_CU(LaunchAdd(add, memory, 1, 5, nullptr));
    HAWSER_CU(cuMemcpyDtoH(&value, memory, 4));
    EXPECT_EQ(value, 12u);
    HAWSER_CU(cuMemFree(memory));
  }
  static uint64_t Counter(CUmodule module) {
    CUdeviceptr address = 0;
    size_t size = 0;
    uint64_t value = 0;
    EXPECT_EQ(cuModuleGetGlobal(&address, &size, module, "counter"), CUDA_SUCCESS);
    EXPECT_EQ(size, 8u);
    EXPECT_EQ(cuMemcpyDtoH(&value, address, 8), CUDA_SUCCESS);
    return value;
  }

  CUlibrary library_ = nullptr;
};

TEST_F(CudaLibrary, ItsModuleIsAModuleOfTheCurrentContext) {
  CUmodule module = nullptr, again = nullptr;
  HAWSER_CU(cuLibraryGetModule(&module, library_));
  HAWSER_CU(cuLibraryGetModule(&again, library_));
  EXPECT_EQ(module, again);
  ItsKernelsRun(module);
  unsigned count = 0;
  HAWSER_CU(cuModuleGetFunctionCount(&count, module));
  EXPECT_EQ(count, 5u);
  std::vector<CUfunction> all(count);
  HAWSER_CU(cuModuleEnumerateFunctions(all.data(), count, module));
  for (CUfunction each : all) {
    CUmodule of = nullptr;
    HAWSER_CU(cuFuncGetModule(&of, each));
    EXPECT_EQ(of, module);
  }
  CUfunction none = nullptr;
  EXPECT_EQ(cuModuleGetFunction(&none, module, "no_such_kernel"), CUDA_ERROR_NOT_FOUND);
  EXPECT_EQ(cuLibraryGetModule(nullptr, library_), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuLibraryGetModule(&again, nullptr), CUDA_ERROR_INVALID_HANDLE);
}

TEST_F(CudaLibrary, ItsModuleHasTheLibrarysVariables) {
  CUmodule module = nullptr;
  HAWSER_CU(cuLibraryGetModule(&module, library_));
  EXPECT_EQ(Counter(module), 7u);
  CUdeviceptr mine = 0, its = 0;
  HAWSER_CU(cuLibraryGetGlobal(&mine, nullptr, library_, "counter"));
  HAWSER_CU(cuModuleGetGlobal(&its, nullptr, module, "counter"));
  EXPECT_EQ(mine, its);
}

TEST_F(CudaLibrary, AKernelsFunctionIsOfItsModule) {
  CUkernel kernel = nullptr;
  CUfunction function = nullptr;
  HAWSER_CU(cuLibraryGetKernel(&kernel, library_, "add"));
  HAWSER_CU(cuKernelGetFunction(&function, kernel));
  CUmodule module = nullptr, of = nullptr;
  HAWSER_CU(cuFuncGetModule(&of, function));
  HAWSER_CU(cuLibraryGetModule(&module, library_));
  EXPECT_EQ(of, module);
}

TEST_F(CudaLibrary, ItsModuleIsNotUnloadedByItself) {
  CUmodule module = nullptr;
  HAWSER_CU(cuLibraryGetModule(&module, library_));
  EXPECT_EQ(cuModuleUnload(module), CUDA_ERROR_NOT_PERMITTED);
  ItsKernelsRun(module);
  HAWSER_CU(cuLibraryUnload(library_));
  EXPECT_EQ(cuLibraryGetModule(&module, library_), CUDA_ERROR_INVALID_HANDLE);
  library_ = nullptr;
  CUfunction add = nullptr;
  EXPECT_EQ(cuModuleGetFunction(&add, module, "add"), CUDA_ERROR_INVALID_HANDLE) << "it ended with the library";
  HAWSER_CU(cuCtxSynchronize());
}

TEST_F(CudaLibrary, EachContextHasOneOfItsOwn) {
  CUmodule here = nullptr, there = nullptr;
  HAWSER_CU(cuLibraryGetModule(&here, library_));
  CUcontext other = nullptr;
  HAWSER_CU(cuCtxCreate(&other, nullptr, 0, device_));
  HAWSER_CU(cuLibraryGetModule(&there, library_));
  EXPECT_NE(here, there);
  ItsKernelsRun(there);
  CUdeviceptr counter = 0;
  HAWSER_CU(cuModuleGetGlobal(&counter, nullptr, there, "counter"));
  HAWSER_CU(cuMemsetD32(counter, 9, 1));
  EXPECT_EQ(Counter(there), 9u);
  HAWSER_CU(cuCtxDestroy(other));
  HAWSER_CU(cuCtxSetCurrent(context_));
  EXPECT_EQ(Counter(here), 7u);
  CUfunction add = nullptr;
  EXPECT_EQ(cuModuleGetFunction(&add, there, "add"), CUDA_ERROR_INVALID_HANDLE) << "it ended with its context";
  ItsKernelsRun(here);
}

TEST_F(CudaLibrary, AResetEndsItsModule) {
  CUmodule before = nullptr, after = nullptr;
  HAWSER_CU(cuLibraryGetModule(&before, library_));
  HAWSER_CU(cuDevicePrimaryCtxReset(device_));
  HAWSER_CU(cuDevicePrimaryCtxRetain(&context_, device_));
  HAWSER_CU(cuCtxSetCurrent(context_));
  HAWSER_CU(cuLibraryGetModule(&after, library_));
  ItsKernelsRun(after);
  CUfunction add = nullptr;
  EXPECT_EQ(cuModuleGetFunction(&add, before, "add"), CUDA_ERROR_INVALID_HANDLE);
  HAWSER_CU(cuDevicePrimaryCtxRelease(device_));
}

TEST_F(CudaLibrary, ThereAreNoUnifiedFunctions) {
  int unified = 1;
  HAWSER_CU(cuDeviceGetAttribute(&unified, CU_DEVICE_ATTRIBUTE_UNIFIED_FUNCTION_POINTERS, device_));
  EXPECT_EQ(unified, 0);
  void* function = nullptr;
  EXPECT_EQ(cuLibraryGetUnifiedFunction(&function, library_, "add"), CUDA_ERROR_NOT_FOUND);
  EXPECT_EQ(cuLibraryGetUnifiedFunction(nullptr, library_, "add"), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuLibraryGetUnifiedFunction(&function, nullptr, "add"), CUDA_ERROR_INVALID_HANDLE);
}

TEST_F(CudaLibrary, OptionsThatAreDeprecatedChangeNothing) {
  CUjit_option options[] = {CU_JIT_NEW_SM3X_OPT,
                            CU_JIT_FAST_COMPILE,
                            CU_JIT_LTO,
                            CU_JIT_FTZ,
                            CU_JIT_PREC_DIV,
                            CU_JIT_PREC_SQRT,
                            CU_JIT_FMA,
                            CU_JIT_REFERENCED_KERNEL_NAMES,
                            CU_JIT_REFERENCED_KERNEL_COUNT,
                            CU_JIT_REFERENCED_VARIABLE_NAMES,
                            CU_JIT_REFERENCED_VARIABLE_COUNT,
                            CU_JIT_OPTIMIZE_UNUSED_DEVICE_VARIABLES,
                            CU_JIT_SPLIT_COMPILE,
                            CU_JIT_GLOBAL_SYMBOL_NAMES,
                            CU_JIT_GLOBAL_SYMBOL_ADDRESSES,
                            CU_JIT_GLOBAL_SYMBOL_COUNT};
  void* values[std::size(options)] = {};
  CUmodule module = nullptr;
  HAWSER_CU(cuModuleLoadDataEx(&module, Kernels(), std::size(options), options, values));
  CUfunction add = nullptr;
  HAWSER_CU(cuModuleGetFunction(&add, module, "add"));
  HAWSER_CU(cuModuleUnload(module));
  CUlinkState linker = nullptr;
  HAWSER_CU(cuLinkCreate(std::size(options), options, values, &linker));
  HAWSER_CU(cuLinkDestroy(linker));
  options[0] = CU_JIT_NUM_OPTIONS;
  EXPECT_EQ(cuModuleLoadDataEx(&module, Kernels(), 1, options, values), CUDA_ERROR_INVALID_VALUE);
}

}  // namespace
}  // namespace hawser
