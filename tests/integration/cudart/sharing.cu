// SPDX-License-Identifier: Apache-2.0
// Two processes share memory and an event by the runtime's calls.
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <vector>

#include "check.h"

extern char** environ;

__global__ void Add(int* data, int value, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) data[i] += value;
}

constexpr int kCount = 5000;
constexpr int kFromParent = 8, kToParent = 9;

struct Handles {
  cudaIpcMemHandle_t memory;
  cudaIpcEventHandle_t event;
};

int Child() {
  Handles handles;
  EXPECT(read(kFromParent, &handles, sizeof(handles)) == sizeof(handles));
  void* memory = nullptr;
  OK(cudaIpcOpenMemHandle(&memory, handles.memory, cudaIpcMemLazyEnablePeerAccess));
  cudaEvent_t event;
  OK(cudaIpcOpenEventHandle(&event, handles.event));
  OK(cudaStreamWaitEvent(nullptr, event, 0));
  Add<<<(kCount + 255) / 256, 256>>>(static_cast<int*>(memory), 10, kCount);
  OK(cudaEventRecord(event, nullptr));
  EXPECT(write(kToParent, "x", 1) == 1);
  OK(cudaDeviceSynchronize());
  OK(cudaIpcCloseMemHandle(memory));
  EXPECT_ERROR(cudaErrorInvalidValue, cudaIpcCloseMemHandle(memory));
  OK(cudaEventDestroy(event));
  // Nonsense is told from a handle.
  std::memset(&handles, 0x5a, sizeof(handles));
  EXPECT_ERROR(cudaErrorInvalidResourceHandle,
               cudaIpcOpenMemHandle(&memory, handles.memory, cudaIpcMemLazyEnablePeerAccess));
  EXPECT_ERROR(cudaErrorInvalidResourceHandle, cudaIpcOpenEventHandle(&event, handles.event));
  return Done();
}

int main(int argc, char** argv) {
  if (argc > 1) return Child();
  cudaDeviceProp properties;
  OK(cudaGetDeviceProperties(&properties, 0));
  EXPECT(properties.ipcEventSupported == 1);
  int* memory = nullptr;
  OK(cudaMalloc(&memory, kCount * sizeof(int)));
  OK(cudaMemset(memory, 0, kCount * sizeof(int)));
  Handles handles;
  OK(cudaIpcGetMemHandle(&handles.memory, memory));
  cudaEvent_t event;
  OK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming | cudaEventInterprocess));
  OK(cudaIpcGetEventHandle(&handles.event, event));
  void* own = nullptr;
  EXPECT_ERROR(cudaErrorDeviceUninitialized,
               cudaIpcOpenMemHandle(&own, handles.memory, cudaIpcMemLazyEnablePeerAccess));

  int there[2], back[2];
  EXPECT(pipe(there) == 0 && pipe(back) == 0);
  // Out of the way of the two numbers that the child knows.
  const int in = fcntl(there[0], F_DUPFD, 20), out = fcntl(back[1], F_DUPFD, 20);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in, kFromParent);
  posix_spawn_file_actions_adddup2(&actions, out, kToParent);
  char as_child[] = "child";
  char* arguments[] = {argv[0], as_child, nullptr};
  pid_t child = -1;
  EXPECT(posix_spawn(&child, "/proc/self/exe", &actions, nullptr, arguments, environ) == 0);
  for (const int end : {there[0], back[1], in, out}) close(end);

  Add<<<(kCount + 255) / 256, 256>>>(memory, 1, kCount);
  OK(cudaEventRecord(event, nullptr));
  EXPECT(write(there[1], &handles, sizeof(handles)) == sizeof(handles));
  char word = 0;
  EXPECT(read(back[0], &word, 1) == 1);
  OK(cudaStreamWaitEvent(nullptr, event, 0));
  Add<<<(kCount + 255) / 256, 256>>>(memory, 100, kCount);
  std::vector<int> all(kCount);
  OK(cudaMemcpy(all.data(), memory, kCount * sizeof(int), cudaMemcpyDeviceToHost));
  int wrong = 0;
  for (const int value : all) wrong += value != 111;
  EXPECT(wrong == 0);
  int status = -1;
  EXPECT(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
  OK(cudaFree(memory));
  OK(cudaEventDestroy(event));
  return Done();
}
