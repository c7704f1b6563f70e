// SPDX-License-Identifier: Apache-2.0
// What assert() in a kernel says is on the program's stderr.
#include <unistd.h>

#include <cassert>
#include <chrono>
#include <cstdio>
#include <string>
#include <thread>

#include "check.h"

__global__ void Check(const int* value) { assert(*value == 0); }

int main() {
  std::FILE* const file = std::tmpfile();
  const int before = dup(STDERR_FILENO);
  EXPECT(dup2(fileno(file), STDERR_FILENO) == STDERR_FILENO);
  int* value = nullptr;
  OK(cudaMalloc(&value, sizeof(int)));
  OK(cudaMemset(value, 0, sizeof(int)));
  Check<<<1, 1>>>(value);
  OK(cudaDeviceSynchronize());
  OK(cudaMemset(value, 1, sizeof(int)));
  Check<<<1, 1>>>(value);
  EXPECT_ERROR(cudaErrorAssert, cudaDeviceSynchronize());
  const std::string expected = "block: [0,0,0], thread: [0,0,0] Assertion `*value == 0` failed.\n";
  std::string text;
  // Through a server the line may follow the error closely.
  for (int wait = 0; wait < 2000 && text.find(expected) == std::string::npos; ++wait) {
    text.assign(1 << 16, '\0');
    const ssize_t got = pread(fileno(file), &text[0], text.size(), 0);
    text.resize(got > 0 ? static_cast<size_t>(got) : 0);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  dup2(before, STDERR_FILENO);
  EXPECT(text.find(expected) != std::string::npos);
  EXPECT(text.find("asserts.cu:") != std::string::npos);
  return Done();
}
