// SPDX-License-Identifier: Apache-2.0
// runaway_cuda endless|behind|short|queue|beside [DEVICE]: a kernel that never ends, one that gets to the device when a
// function before it ends, which takes half a second, one that ends, or many that take seconds together, all launched
// before the first has ended. "beside" is one that ends, on the second device, beside one on the first that never does.
// All others are on the first device, or on the one with this index. Says "launched", then how it ended, and what a
// callback behind the kernels was told.
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <chrono>
#include <future>
#include <thread>

namespace {

constexpr char kPtx[] = R"(
.version 7.0
.target sm_75
.address_size 64
.visible .entry run(.param .u64 p, .param .u32 endless, .param .u32 rounds)
{
  .reg .pred %q<4>;
  .reg .b32 %r<9>;
  .reg .b64 %d<5>;
  ld.param.u64 %d1, [p];
  cvta.to.global.u64 %d2, %d1;
  ld.param.u32 %r1, [endless];
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  mov.u32 %r4, %tid.x;
  mad.lo.s32 %r5, %r2, %r3, %r4;
  mul.lo.s32 %r6, %r5, 3;
  mul.wide.u32 %d3, %r5, 4;
  add.s64 %d4, %d2, %d3;
  ld.param.u32 %r8, [rounds];
ROUND:
  st.global.u32 [%d4], %r6;
  add.s32 %r8, %r8, -1;
  setp.gt.s32 %q3, %r8, 0;
  @%q3 bra ROUND;
LOOP:
  setp.eq.u32 %q1, %r1, 0;
  @%q1 bra DONE;
  ld.volatile.global.u32 %r7, [%d2];
  setp.ne.u32 %q2, %r7, 1;
  @%q2 bra LOOP;
DONE:
  ret;
}
)";

const char* Name(CUresult result) {
  const char* name = "?";
  (void)cuGetErrorName(result, &name);
  return name;
}

}  // namespace

int main(int argc, char** argv) {
  const auto is = [&](const char* mode) { return argc >= 2 && strcmp(argv[1], mode) == 0; };
  const bool behind = is("behind"), queue = is("queue");
  unsigned endless = behind || is("endless") ? 1 : 0, rounds = 1;
  const int index = argc == 3 ? atoi(argv[2]) : is("beside") ? 1 : 0;
  CUdevice device = 0;
  CUcontext context = nullptr;
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  CUdeviceptr memory = 0;
  constexpr unsigned kBlocks = 32, kThreads = 128, kItems = kBlocks * kThreads;
  CUresult result = cuInit(0);
  const auto prepare = [&](int which) {
    if (result == CUDA_SUCCESS) result = cuDeviceGet(&device, which);
    if (result == CUDA_SUCCESS) result = cuDevicePrimaryCtxRetain(&context, device);
    if (result == CUDA_SUCCESS) result = cuCtxSetCurrent(context);
    if (result == CUDA_SUCCESS) result = cuModuleLoadData(&module, kPtx);
    if (result == CUDA_SUCCESS) result = cuModuleGetFunction(&function, module, "run");
    if (result == CUDA_SUCCESS) result = cuMemAlloc(&memory, kItems * sizeof(unsigned));
  };
  if (is("beside")) {
    prepare(0);
    unsigned never = 1;
    void* arguments[] = {&memory, &never, &rounds};
    if (result == CUDA_SUCCESS)
      result = cuLaunchKernel(function, 1, 1, 1, kThreads, 1, 1, 0, nullptr, arguments, nullptr);
  }
  prepare(index);
  if (result != CUDA_SUCCESS) return printf("no device: %s\n", Name(result)), 3;
  void* arguments[] = {&memory, &endless, &rounds};
  const auto launch = [&] {
    return cuLaunchKernel(function, kBlocks, 1, 1, kThreads, 1, 1, 0, nullptr, arguments, nullptr);
  };
  int launches = 1;
  if (queue) {
    // So many rounds that a kernel takes about a twentieth of a second; a hundred of those.
    double took = 0;
    for (; result == CUDA_SUCCESS && took < 0.05; rounds *= 2) {
      const auto begin = std::chrono::steady_clock::now();
      if ((result = launch()) == CUDA_SUCCESS) result = cuCtxSynchronize();
      took = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    }
    rounds /= 2;
    launches = 100;
  }
  if (behind && result == CUDA_SUCCESS) {
    result = cuLaunchHostFunc(
        nullptr, [](void*) { std::this_thread::sleep_for(std::chrono::milliseconds(500)); }, nullptr);
  }
  for (; result == CUDA_SUCCESS && launches > 0; --launches) result = launch();
  std::promise<CUresult> told;
  if (result == CUDA_SUCCESS) {
    result = cuStreamAddCallback(
        nullptr,
        [](CUstream, CUresult status, void* data) { static_cast<std::promise<CUresult>*>(data)->set_value(status); },
        &told, 0);
  }
  printf("launched: %s\n", Name(result));
  fflush(stdout);
  result = cuCtxSynchronize();
  printf("ended: %s\n", Name(result));
  // Callbacks are told of errors, also of those that leave nobody to ask for them.
  std::future<CUresult> status = told.get_future();
  const bool called = status.wait_for(std::chrono::seconds(60)) == std::future_status::ready;
  printf("callback: %s\n", called ? Name(status.get()) : "not called");
  if (result != CUDA_SUCCESS) return printf("then: %s\n", Name(cuMemFree(memory))), 2;
  static unsigned results[kItems];
  result = cuMemcpyDtoH(results, memory, sizeof(results));
  bool right = result == CUDA_SUCCESS;
  for (unsigned i = 0; i < kItems; ++i) right = right && results[i] == i * 3;
  printf("result: %s\n", right ? "right" : "wrong");
  return right ? 0 : 1;
}
