// SPDX-License-Identifier: Apache-2.0
// Pitched memory and boxes: 2D and 3D copies and fills, also to and from arrays.
#include <vector>

#include "check.h"

void Pitched() {
  // Pitched memory.
  char* pitched = nullptr;
  size_t pitch = 0;
  OK(cudaMallocPitch(&pitched, &pitch, 100, 10));
  EXPECT(pitch >= 100);
  OK(cudaMemset2D(pitched, pitch, 0, 100, 10));
  OK(cudaMemset2D(pitched + pitch + 5, pitch, 7, 20, 3));
  std::vector<char> rows(100 * 10);
  OK(cudaMemcpy2D(rows.data(), 100, pitched, pitch, 100, 10, cudaMemcpyDeviceToHost));
  int sevens = 0;
  for (const char c : rows) sevens += c == 7;
  EXPECT(sevens == 60);
  EXPECT(rows[100 + 5] == 7 && rows[100 + 4] == 0 && rows[3 * 100 + 24] == 7 && rows[4 * 100 + 5] == 0);
  OK(cudaFree(pitched));
}

void Boxes() {
  cudaPitchedPtr box;
  const cudaExtent size = make_cudaExtent(12, 5, 4);
  OK(cudaMalloc3D(&box, size));
  OK(cudaMemset3D(box, 1, size));
  std::vector<char> in(12 * 5 * 4);
  for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<char>(i);
  cudaMemcpy3DParms copy = {};
  copy.srcPtr = make_cudaPitchedPtr(in.data(), 12, 12, 5);
  copy.dstPtr = box;
  copy.extent = make_cudaExtent(6, 5, 2);
  copy.dstPos = make_cudaPos(3, 0, 1);
  copy.kind = cudaMemcpyHostToDevice;
  OK(cudaMemcpy3D(&copy));
  std::vector<char> result(in.size());
  copy = {};
  copy.srcPtr = box;
  copy.dstPtr = make_cudaPitchedPtr(result.data(), 12, 12, 5);
  copy.extent = size;
  copy.kind = cudaMemcpyDeviceToHost;
  OK(cudaMemcpy3D(&copy));
  EXPECT(result[0] == 1);
  EXPECT(result[(1 * 5 + 2) * 12 + 3] == in[2 * 12]);
  EXPECT(result[(2 * 5 + 4) * 12 + 8] == in[(1 * 5 + 4) * 12 + 5]);
  EXPECT(result[(2 * 5 + 4) * 12 + 9] == 1);
  OK(cudaFree(box.ptr));
}

void Arrays() {
  constexpr int kWidth = 10;
  constexpr int kHeight = 6;
  std::vector<short> picture(kWidth * kHeight);
  for (size_t i = 0; i < picture.size(); ++i) picture[i] = static_cast<short>(3 * i);
  const cudaChannelFormatDesc format = cudaCreateChannelDesc<short>();
  cudaArray_t array;
  cudaArray_t other;
  OK(cudaMallocArray(&array, &format, kWidth, kHeight));
  OK(cudaMallocArray(&other, &format, kWidth, kHeight));
  OK(cudaMemcpy2DToArray(array, 0, 0, picture.data(), kWidth * 2, kWidth * 2, kHeight, cudaMemcpyHostToDevice));
  // A part, moved.
  OK(cudaMemcpy2DArrayToArray(other, 4, 1, array, 2, 3, 6, 2, cudaMemcpyDeviceToDevice));
  std::vector<short> back(picture.size());
  OK(cudaMemcpy2DFromArray(back.data(), kWidth * 2, other, 0, 0, kWidth * 2, kHeight, cudaMemcpyDeviceToHost));
  EXPECT(back[1 * kWidth + 2] == picture[3 * kWidth + 1]);
  EXPECT(back[2 * kWidth + 4] == picture[4 * kWidth + 3]);
  // A box of elements.
  cudaMemcpy3DParms copy = {};
  copy.srcArray = array;
  copy.srcPos = make_cudaPos(1, 2, 0);
  copy.dstPtr = make_cudaPitchedPtr(back.data(), kWidth * 2, kWidth, kHeight);
  copy.extent = make_cudaExtent(4, 3, 1);
  copy.kind = cudaMemcpyDeviceToHost;
  OK(cudaMemcpy3D(&copy));
  EXPECT(back[0] == picture[2 * kWidth + 1] && back[2 * kWidth + 3] == picture[4 * kWidth + 4]);
  OK(cudaFreeArray(array));
  OK(cudaFreeArray(other));

  const cudaChannelFormatDesc wrong = cudaCreateChannelDesc(8, 8, 8, 0, cudaChannelFormatKindUnsigned);
  EXPECT_ERROR(cudaErrorInvalidChannelDescriptor, cudaMallocArray(&array, &wrong, 4, 4));
  EXPECT_ERROR(cudaErrorInvalidChannelDescriptor, cudaGetLastError());
}

int main() {
  Pitched();
  Boxes();
  Arrays();
  return Done();
}
