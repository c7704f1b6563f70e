// SPDX-License-Identifier: Apache-2.0
// The driver API without the runtime: finds the device, compiles PTX that is part of the program, sums numbers.
#include <cuda.h>

#include <cstdio>
#include <cstdlib>

#define CHECK(call)                                  \
  do {                                               \
    const CUresult status = (call);                  \
    if (status != CUDA_SUCCESS) {                    \
      const char* name = nullptr;                    \
      cuGetErrorName(status, &name);                 \
      std::fprintf(stderr, "%s: %s\n", #call, name); \
      std::exit(1);                                  \
    }                                                \
  } while (0)

// Each thread adds its number, times ten, to one sum.
static const char kProgram[] = R"(
.version 7.0
.target sm_70
.address_size 64
.visible .entry add_all(.param .u64 sum, .param .u32 count) {
  .reg .pred %p;
  .reg .b32 %r<8>;
  .reg .b64 %rd<3>;
  ld.param.u64 %rd1, [sum];
  ld.param.u32 %r1, [count];
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  mov.u32 %r4, %tid.x;
  mad.lo.u32 %r5, %r2, %r3, %r4;
  setp.ge.u32 %p, %r5, %r1;
  @%p bra done;
  mul.lo.u32 %r6, %r5, 10;
  cvta.to.global.u64 %rd2, %rd1;
  red.global.add.u32 [%rd2], %r6;
done:
  ret;
}
)";

int main() {
  CHECK(cuInit(0));
  CUdevice device;
  CHECK(cuDeviceGet(&device, 0));
  char device_name[256];
  CHECK(cuDeviceGetName(device_name, sizeof(device_name), device));
  std::fprintf(stderr, "on %s\n", device_name);
  CUcontext context;
  CHECK(cuDevicePrimaryCtxRetain(&context, device));
  CHECK(cuCtxSetCurrent(context));
  CUmodule module;
  CHECK(cuModuleLoadData(&module, kProgram));
  CUfunction function;
  CHECK(cuModuleGetFunction(&function, module, "add_all"));
  CUdeviceptr sum;
  CHECK(cuMemAlloc(&sum, sizeof(unsigned)));
  CHECK(cuMemsetD32(sum, 0, 1));
  unsigned count = 1000;
  void* arguments[] = {&sum, &count};
  CHECK(cuLaunchKernel(function, (count + 127) / 128, 1, 1, 128, 1, 1, 0, nullptr, arguments, nullptr));
  unsigned result = 0;
  CHECK(cuMemcpyDtoH(&result, sum, sizeof(result)));
  CHECK(cuMemFree(sum));
  CHECK(cuModuleUnload(module));
  CHECK(cuDevicePrimaryCtxRelease(device));
  std::printf("the sum is %u\n", result);
  return result == 10 * count * (count - 1) / 2 ? 0 : 1;
}
