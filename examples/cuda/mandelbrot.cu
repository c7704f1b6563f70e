// SPDX-License-Identifier: Apache-2.0
// Draws the Mandelbrot set: mandelbrot [FILE.ppm [WIDTH HEIGHT]]. Each pixel iterates z = z^2 + c; the number of rounds
// until |z| > 2 picks a colour from a table in constant memory.
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CHECK(call)                                                              \
  do {                                                                           \
    const cudaError_t error = (call);                                            \
    if (error != cudaSuccess) {                                                  \
      std::fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(error));        \
      std::exit(1);                                                              \
    }                                                                            \
  } while (0)

constexpr int kColours = 16;
constexpr int kRounds = 256;
__constant__ uchar3 g_colours[kColours];

__global__ void Draw(uchar3* picture, int width, int height) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x;
  const int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= width || y >= height) return;
  // In integers of 1/4096, so that every device draws the same picture.
  const long long cx = (3 * 4096LL * x) / width - 2 * 4096 - 512;
  const long long cy = (2 * 4096LL * y) / height - 4096;
  long long zx = 0;
  long long zy = 0;
  int round = 0;
  while (round < kRounds && zx * zx + zy * zy <= 4LL * 4096 * 4096) {
    const long long next = (zx * zx - zy * zy) / 4096 + cx;
    zy = 2 * zx * zy / 4096 + cy;
    zx = next;
    ++round;
  }
  picture[y * width + x] = round == kRounds ? make_uchar3(0, 0, 0) : g_colours[round % kColours];
}

int main(int argc, char** argv) {
  const char* path = argc > 1 ? argv[1] : "mandelbrot.ppm";
  const int width = argc > 3 ? std::atoi(argv[2]) : 300;
  const int height = argc > 3 ? std::atoi(argv[3]) : 200;
  if (width <= 0 || height <= 0 || width > 16384 || height > 16384) {
    std::fprintf(stderr, "usage: %s [FILE.ppm [WIDTH HEIGHT]]\n", argv[0]);
    return 2;
  }
  uchar3 colours[kColours];
  for (int i = 0; i < kColours; ++i) colours[i] = make_uchar3(16 * i, 255 - 12 * i, 128 + 7 * i);
  CHECK(cudaMemcpyToSymbol(g_colours, colours, sizeof(colours)));

  uchar3* device_picture = nullptr;
  CHECK(cudaMalloc(&device_picture, sizeof(uchar3) * width * height));
  const dim3 block(16, 16);
  const dim3 grid((width + block.x - 1) / block.x, (height + block.y - 1) / block.y);
  Draw<<<grid, block>>>(device_picture, width, height);
  CHECK(cudaGetLastError());
  std::vector<uchar3> picture(static_cast<size_t>(width) * height);
  CHECK(cudaMemcpy(picture.data(), device_picture, sizeof(uchar3) * picture.size(), cudaMemcpyDeviceToHost));
  CHECK(cudaFree(device_picture));

  std::FILE* file = std::fopen(path, "wb");
  if (file == nullptr) {
    std::perror(path);
    return 1;
  }
  std::fprintf(file, "P6\n%d %d\n255\n", width, height);
  std::fwrite(picture.data(), sizeof(uchar3), picture.size(), file);
  if (std::fclose(file) != 0) {
    std::perror(path);
    return 1;
  }
  unsigned checksum = 2166136261u;  // FNV-1a
  for (const uchar3& pixel : picture) {
    for (const unsigned char byte : {pixel.x, pixel.y, pixel.z}) checksum = (checksum ^ byte) * 16777619u;
  }
  std::printf("%d x %d pixels drawn, checksum %08x\n", width, height, checksum);
}
