// SPDX-License-Identifier: Apache-2.0
#include "bench/experiments/work.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace experiments {
namespace {

// Numbers between 0 and 1 that are the same everywhere.
std::vector<float> Numbers(size_t count, uint32_t seed) {
  std::vector<float> numbers(count);
  uint32_t state = seed;
  for (float& number : numbers) {
    state = state * 1664525u + 1013904223u;
    number = static_cast<float>(state >> 8) / static_cast<float>(1u << 24);
  }
  return numbers;
}

size_t RoundUp(size_t value, size_t to) { return (value + to - 1) / to * to; }

double Pixel(const Work& work, int x, int y) {
  x = std::clamp(x, 0, work.size - 1);
  y = std::clamp(y, 0, work.size - 1);
  return work.a[static_cast<size_t>(y) * static_cast<size_t>(work.size) + static_cast<size_t>(x)];
}

double Sobel(const Work& work, int x, int y, int distance) {
  const auto p = [&](int dx, int dy) { return Pixel(work, x + dx * distance, y + dy * distance); };
  const double gx = p(1, -1) + 2 * p(1, 0) + p(1, 1) - p(-1, -1) - 2 * p(-1, 0) - p(-1, 1);
  const double gy = p(-1, 1) + 2 * p(0, 1) + p(1, 1) - p(-1, -1) - 2 * p(0, -1) - p(1, -1);
  return std::sqrt(gx * gx + gy * gy);
}

double Option(double price, double strike) {
  double value[kNodes];
  for (int node = 0; node < kNodes; ++node) {
    value[node] = std::max(0.0, price * std::pow(static_cast<double>(kUp), 2 * node - kSteps) - strike);
  }
  for (int step = kSteps; step > 0; --step) {
    for (int node = 0; node < step; ++node) {
      value[node] =
          static_cast<double>(kDiscount) * (kProbability * value[node + 1] + (1 - kProbability) * value[node]);
    }
  }
  return value[0];
}

}  // namespace

bool MakeWork(const std::string& name, int size, int rounds, Work* work, int columns) {
  work->name = name;
  work->size = size;
  work->rounds = rounds;
  const size_t n = static_cast<size_t>(size);
  if (name == "binomial") {
    work->dimensions = 1;
    work->group[0] = kNodes;
    work->items[0] = n * kNodes;
    work->results = n;
  } else if (name == "madd") {
    work->dimensions = 1;
    work->group[0] = kGroup;
    work->items[0] = RoundUp(n * n, kGroup);
    work->results = n * n;
  } else if (name == "matmul" || name == "sobel") {
    work->dimensions = 2;
    work->group[0] = static_cast<size_t>(columns);
    work->group[1] = kGroup / work->group[0];
    work->items[0] = RoundUp(n, work->group[0]);
    work->items[1] = RoundUp(n, work->group[1]);
    work->results = n * n;
  } else {
    return false;
  }
  work->a = Numbers(work->results, 1);
  work->b = Numbers(work->results, 2);
  if (name == "binomial") {
    for (float& price : work->a) price = 50 + 100 * price;
    for (float& strike : work->b) strike = 50 + 100 * strike;
  }
  return true;
}

double Work::Expected(size_t index) const {
  const size_t n = static_cast<size_t>(size);
  if (name == "binomial") return Option(a[index], b[index]);
  if (name == "madd") {
    float sum = a[index];
    for (int round = 0; round < rounds; ++round) sum += b[index];
    return sum;
  }
  double sum = 0;
  if (name == "sobel") {
    for (int distance = 1; distance <= rounds; ++distance) {
      sum += Sobel(*this, static_cast<int>(index % n), static_cast<int>(index / n), distance);
    }
    return sum;
  }
  for (size_t k = 0; k < n; ++k) {
    sum += static_cast<double>(a[index / n * n + k]) * static_cast<double>(b[k * n + index % n]);
  }
  return sum * rounds;
}

double Work::WorstError(const std::vector<float>& out) const {
  double worst = out.size() == results ? 0 : 1e9;
  const size_t step = std::max<size_t>(1, results / 61);
  for (size_t index = 0; index < out.size() && index < results; index += step) {
    const double expected = Expected(index);
    const double error = std::fabs(static_cast<double>(out[index]) - expected) / std::max(1.0, std::fabs(expected));
    worst = std::isfinite(error) ? std::max(worst, error) : 1e9;
  }
  return worst;
}

uint64_t Checksum(const std::vector<float>& out) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const float value : out) {
    unsigned char bytes[sizeof(value)];
    std::memcpy(bytes, &value, sizeof(value));
    for (const unsigned char byte : bytes) hash = (hash ^ byte) * 0x100000001b3u;
  }
  return hash;
}

}  // namespace experiments
