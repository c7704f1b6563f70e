// SPDX-License-Identifier: Apache-2.0
// What kernels.cu computes on the device and cuda_kernels_test.cc on the CPU.
#ifndef HAWSER_TESTS_UNIT_SOFTCUDA_EXEC_KERNELS_H_
#define HAWSER_TESTS_UNIT_SOFTCUDA_EXEC_KERNELS_H_

#include <math.h>

#ifdef __CUDACC__
#define BOTH __host__ __device__ inline
#else
#define BOTH inline
#endif

struct Parameters {
  int values[5];
  double scale;
  char offset;
};

BOTH unsigned collatz(unsigned n) {
  unsigned steps = 0;
  while (n > 1 && steps < 1000) {
    n = n % 2 == 0 ? n / 2 : 3 * n + 1;
    ++steps;
  }
  return steps;
}

constexpr int kMathFunctions = 20;

BOTH void math_functions(double x, double* o) {
  o[0] = sin(x);
  o[1] = cos(x);
  o[2] = tan(x);
  o[3] = exp(x);
  o[4] = log(fabs(x) + 0.1);
  o[5] = pow(fabs(x), 1.37);
  o[6] = erf(x);
  o[7] = tgamma(fabs(x) * 0.3 + 0.5);
  o[8] = atan2(x, 0.7);
  o[9] = cbrt(x);
  o[10] = fmod(x, 0.31);
  o[11] = sqrt(fabs(x));
  o[12] = asin(x / 100);
  o[13] = acos(x / 100);
  o[14] = sinh(x * 0.2);
  o[15] = tanh(x);
  o[16] = log2(fabs(x) + 1e-3);
  o[17] = floor(x) + ceil(x) * 10 + rint(x) * 100;
  o[18] = hypot(x, 3.0);
  o[19] = 1.0 / (x + 0.123);
}

BOTH void math_functions_f(float x, float* o) {
  o[0] = sinf(x);
  o[1] = cosf(x);
  o[2] = tanf(x);
  o[3] = expf(x);
  o[4] = logf(fabsf(x) + 0.1f);
  o[5] = powf(fabsf(x), 1.37f);
  o[6] = erff(x);
  o[7] = tgammaf(fabsf(x) * 0.3f + 0.5f);
  o[8] = atan2f(x, 0.7f);
  o[9] = cbrtf(x);
  o[10] = fmodf(x, 0.31f);
  o[11] = sqrtf(fabsf(x));
  o[12] = asinf(x / 100);
  o[13] = acosf(x / 100);
  o[14] = sinhf(x * 0.2f);
  o[15] = tanhf(x);
  o[16] = log2f(fabsf(x) + 1e-3f);
  o[17] = floorf(x) + ceilf(x) * 10 + rintf(x) * 100;
  o[18] = hypotf(x, 3.0f);
  o[19] = 1.0f / (x + 0.123f);
}

constexpr int kIntegerFunctions = 14;

BOTH void integer_functions(long long a, long long b, long long* o) {
  const int x = static_cast<int>(a);
  const int y = static_cast<int>(b) | 1;
  const unsigned long long ua = static_cast<unsigned long long>(a);
  const unsigned long long ub = static_cast<unsigned long long>(b) | 1;
  o[0] = a / (b | 1);
  o[1] = a % (b | 1);
  o[2] = static_cast<long long>(ua / ub);
  o[3] = static_cast<long long>(ua % ub);
  o[4] = x == -2147483647 - 1 ? 0 : x / y;
  o[5] = x == -2147483647 - 1 ? 0 : x % y;
  o[6] = static_cast<unsigned>(x) / static_cast<unsigned>(y);
  o[7] = static_cast<long long>(ua * ub);
  o[8] = static_cast<long long>(ua >> (ub & 63)) ^ (a >> (ub & 31));
  o[9] = static_cast<short>(x) * static_cast<short>(y) + static_cast<signed char>(x) - static_cast<unsigned char>(y);
  o[10] = static_cast<long long>(static_cast<double>(a) * 1e-3);
  o[11] = static_cast<long long>(static_cast<float>(x));
  const unsigned __int128 wide = static_cast<unsigned __int128>(ua) * ub;
  o[12] = static_cast<long long>(wide >> 64);
  o[13] = static_cast<long long>(wide / (ub | 0x10001));
}

BOTH void insertion_sort(int* data, int n) {
  for (int i = 1; i < n; ++i) {
    const int v = data[i];
    int j = i - 1;
    while (j >= 0 && data[j] > v) {
      data[j + 1] = data[j];
      --j;
    }
    data[j + 1] = v;
  }
}

BOTH int many_ways(int v) {
  switch (v) {
    case 0:
      return 17;
    case 1:
      return v * 3;
    case 2:
      return -5;
    case 3:
      return 1000 / (v + 1);
    case 4:
      return v << 7;
    case 5:
      return 99;
    case 6:
      return 12345;
    case 7:
      return v ^ 0x55;
    case 8:
      return 1;
    default:
      return -v;
  }
}

#endif  // HAWSER_TESTS_UNIT_SOFTCUDA_EXEC_KERNELS_H_
