// SPDX-License-Identifier: Apache-2.0
// Arrays, textures and surfaces.
#include <vector>

#include "check.h"

__global__ void Read2D(cudaTextureObject_t texture, float* out, int width, int height) {
  const int x = threadIdx.x;
  const int y = blockIdx.x;
  if (x < width && y < height) out[y * width + x] = tex2D<float>(texture, x + 0.5f, y + 0.5f);
}
__global__ void ReadBetween(cudaTextureObject_t texture, float* out) {
  out[0] = tex2D<float>(texture, 1.0f, 0.5f);
  out[1] = tex2D<float>(texture, -5.0f, 0.5f);
}
__global__ void ReadLinear(cudaTextureObject_t texture, int* out) {
  out[threadIdx.x] = tex1Dfetch<int>(texture, threadIdx.x);
}
__global__ void WriteSurface(cudaSurfaceObject_t surface, int width) {
  surf2Dwrite(1000.0f * blockIdx.x + threadIdx.x, surface, threadIdx.x * sizeof(float), blockIdx.x);
}

int main() {
  constexpr int kWidth = 16;
  constexpr int kHeight = 8;
  std::vector<float> picture(kWidth * kHeight);
  for (size_t i = 0; i < picture.size(); ++i) picture[i] = static_cast<float>(i * i % 97);
  const cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
  cudaArray_t array;
  OK(cudaMallocArray(&array, &format, kWidth, kHeight, cudaArraySurfaceLoadStore));
  OK(cudaMemcpy2DToArray(array, 0, 0, picture.data(), kWidth * 4, kWidth * 4, kHeight, cudaMemcpyHostToDevice));
  cudaChannelFormatDesc seen;
  cudaExtent extent;
  unsigned flags;
  OK(cudaArrayGetInfo(&seen, &extent, &flags, array));
  EXPECT(seen.x == 32 && seen.y == 0 && seen.f == cudaChannelFormatKindFloat);
  EXPECT(extent.width == kWidth && extent.height == kHeight && flags == cudaArraySurfaceLoadStore);

  cudaResourceDesc resource = {};
  resource.resType = cudaResourceTypeArray;
  resource.res.array.array = array;
  cudaTextureDesc description = {};
  description.addressMode[0] = description.addressMode[1] = cudaAddressModeClamp;
  description.filterMode = cudaFilterModePoint;
  description.readMode = cudaReadModeElementType;
  cudaTextureObject_t texture;
  OK(cudaCreateTextureObject(&texture, &resource, &description, nullptr));
  float* out = nullptr;
  OK(cudaMalloc(&out, picture.size() * 4));
  Read2D<<<kHeight, kWidth>>>(texture, out, kWidth, kHeight);
  std::vector<float> back(picture.size());
  OK(cudaMemcpy(back.data(), out, back.size() * 4, cudaMemcpyDeviceToHost));
  EXPECT(back == picture);
  cudaTextureDesc same;
  OK(cudaGetTextureObjectTextureDesc(&same, texture));
  EXPECT(same.addressMode[1] == cudaAddressModeClamp && same.readMode == cudaReadModeElementType);
  OK(cudaDestroyTextureObject(texture));

  description.filterMode = cudaFilterModeLinear;
  OK(cudaCreateTextureObject(&texture, &resource, &description, nullptr));
  ReadBetween<<<1, 1>>>(texture, out);
  OK(cudaMemcpy(back.data(), out, 8, cudaMemcpyDeviceToHost));
  EXPECT(back[0] == (picture[0] + picture[1]) / 2);
  EXPECT(back[1] == picture[0]);
  OK(cudaDestroyTextureObject(texture));

  cudaSurfaceObject_t surface;
  OK(cudaCreateSurfaceObject(&surface, &resource));
  WriteSurface<<<kHeight, kWidth>>>(surface, kWidth);
  OK(cudaMemcpy2DFromArray(back.data(), kWidth * 4, array, 0, 0, kWidth * 4, kHeight, cudaMemcpyDeviceToHost));
  EXPECT(back[3 * kWidth + 5] == 3005.0f);
  OK(cudaDestroySurfaceObject(surface));

  // Linear memory as a texture of integers.
  int* numbers = nullptr;
  int values[32];
  for (int i = 0; i < 32; ++i) values[i] = 7 * i - 50;
  OK(cudaMalloc(&numbers, sizeof(values)));
  OK(cudaMemcpy(numbers, values, sizeof(values), cudaMemcpyHostToDevice));
  resource = {};
  resource.resType = cudaResourceTypeLinear;
  resource.res.linear.devPtr = numbers;
  resource.res.linear.sizeInBytes = sizeof(values);
  resource.res.linear.desc = cudaCreateChannelDesc<int>();
  description = {};
  description.readMode = cudaReadModeElementType;
  OK(cudaCreateTextureObject(&texture, &resource, &description, nullptr));
  ReadLinear<<<1, 32>>>(texture, reinterpret_cast<int*>(out));
  int read[32];
  OK(cudaMemcpy(read, out, sizeof(read), cudaMemcpyDeviceToHost));
  bool equal = true;
  for (int i = 0; i < 32; ++i) equal &= read[i] == values[i];
  EXPECT(equal);
  OK(cudaDestroyTextureObject(texture));

  EXPECT_ERROR(cudaErrorInvalidChannelDescriptor, [&] {
    const cudaChannelFormatDesc wrong = cudaCreateChannelDesc(8, 8, 8, 0, cudaChannelFormatKindUnsigned);
    return cudaMallocArray(&array, &wrong, 4, 4);
  }());
  (void)cudaGetLastError();
  OK(cudaFree(numbers));
  OK(cudaFree(out));
  OK(cudaFreeArray(array));
  return Done();
}
