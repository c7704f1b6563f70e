// SPDX-License-Identifier: Apache-2.0
// For small programs that check themselves: each failed expectation is printed, and the program ends with 1.
#ifndef HAWSER_TESTS_INTEGRATION_CUDART_CHECK_H_
#define HAWSER_TESTS_INTEGRATION_CUDART_CHECK_H_

#include <cstdio>

inline int g_failures = 0;

#define EXPECT(condition)                                                 \
  do {                                                                    \
    if (!(condition)) {                                                   \
      std::printf("%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
      ++g_failures;                                                       \
    }                                                                     \
  } while (0)

#define EXPECT_ERROR(expected, call)                                                                 \
  do {                                                                                               \
    const cudaError_t got = (call);                                                                  \
    if (got != (expected)) {                                                                         \
      std::printf("%s:%d: %s: %s instead of %s\n", __FILE__, __LINE__, #call, cudaGetErrorName(got), \
                  cudaGetErrorName(expected));                                                       \
      ++g_failures;                                                                                  \
    }                                                                                                \
  } while (0)

#define OK(call) EXPECT_ERROR(cudaSuccess, call)

inline int Done() {
  std::printf(g_failures == 0 ? "passed\n" : "%d failed\n", g_failures);
  return g_failures == 0 ? 0 : 1;
}

#endif  // HAWSER_TESTS_INTEGRATION_CUDART_CHECK_H_
