// SPDX-License-Identifier: Apache-2.0
// Compiled by nvcc into fatbins of every kind; see image_test.cc.
#ifdef RELOCATABLE_MAIN
extern __device__ int helper(int x);
extern "C" __global__ void main_kernel(int* out) { *out = helper(20); }
#elif defined(RELOCATABLE_HELPER)
__device__ int helper(int x) { return x + 22; }
#elif defined(TEXTURES)
extern "C" __global__ void fetch_linear(cudaTextureObject_t t, float* out) { out[threadIdx.x] = tex1Dfetch<float>(t, static_cast<int>(threadIdx.x)); }
extern "C" __global__ void sample_2d(cudaTextureObject_t t, float* out, float x, float y) { *out = tex2D<float>(t, x, y); }
extern "C" __global__ void sample_bytes(cudaTextureObject_t t, float4* out, float x, float y) { *out = tex2D<float4>(t, x, y); }
extern "C" __global__ void sample_layer(cudaTextureObject_t t, float* out, int layer) { *out = tex2DLayered<float>(t, 0.5F, 0.5F, layer); }
extern "C" __global__ void sample_3d(cudaTextureObject_t t, float* out) { *out = tex3D<float>(t, 1.5F, 1.5F, 1.5F); }
extern "C" __global__ void sample_level(cudaTextureObject_t t, float* out, float level) { *out = tex2DLod<float>(t, 0.25F, 0.25F, level); }
extern "C" __global__ void turn(cudaSurfaceObject_t s, int n) {
  const int x = static_cast<int>(threadIdx.x);
  const int value = surf2Dread<int>(s, x * 4, 0);
  __syncthreads();
  surf2Dwrite(value, s, (n - 1 - x) * 4, 1);
}
#else
__device__ int offset = 100;
extern "C" __global__ void shift(int* out, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) out[i] = i + offset;
}
#endif
