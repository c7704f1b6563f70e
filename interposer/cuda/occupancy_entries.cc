// SPDX-License-Identifier: Apache-2.0
// cuOccupancy*: computed here, but for clusters, of which the driver knows where there is room.
#include "interposer/cuda/entry.h"
#include "interposer/cuda/launch_attributes.h"
#include "interposer/cuda/launch_packer.h"
#include "interposer/cuda/module.h"
#include "interposer/cuda/occupancy.h"

using namespace hawser;      // NOLINT(google-build-using-namespace): entry points live outside of namespaces.
using namespace hawser::cu;  // NOLINT(google-build-using-namespace)

namespace {

CUresult Begin(CUfunction handle, OccupancyDevice* on, OccupancyKernel* of) {
  CUctx_st* context = nullptr;
  if (const CUresult error = CurrentContext(&context, /*earlier=*/false); error != CUDA_SUCCESS) return error;
  FunctionBase* function = nullptr;
  if (const CUresult error = CheckFunction(handle, &function); error != CUDA_SUCCESS) return error;
  const Device& device = *Client::Get().device(context->device);
  *on = OccupancyOf(device);
  *of = OccupancyOf(*function);
  return CUDA_SUCCESS;
}

CUresult AskClusters(CUfunction handle, const CUlaunchConfig* config, bool largest, int* count) {
  if (count == nullptr || config == nullptr) return CUDA_ERROR_INVALID_VALUE;
  StreamCommand command;
  if (const CUresult error = command.BeginQuestion(config->hStream, /*earlier=*/false); error != CUDA_SUCCESS)
    return error;
  FunctionBase* function = nullptr;
  if (const CUresult error = CheckFunction(handle, &function); error != CUDA_SUCCESS) return error;
  std::vector<cuda::LaunchAttribute> attributes;
  if (const CUresult error = ToWire(config->attrs, config->numAttrs, &attributes); error != CUDA_SUCCESS) return error;
  cuda::AskClusters message;
  command.Address(message);
  message.function = function->id;
  message.grid = {config->gridDimX, config->gridDimY, config->gridDimZ};
  message.block = {config->blockDimX, config->blockDimY, config->blockDimZ};
  message.shared = config->sharedMemBytes;
  message.largest = largest ? 1 : 0;
  message.attributes = wire::ListView<cuda::LaunchAttribute>(std::span<const cuda::LaunchAttribute>(attributes));
  Answer<cuda::Value> answer;
  const CUresult error = answer.Ask(command.session(), message);
  if (error == CUDA_SUCCESS) *count = static_cast<int>(answer->value);
  return error;
}

}  // namespace

CUresult CUDAAPI cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, CUfunction function, int threads,
                                                                      size_t shared, unsigned int flags) {
  OccupancyDevice device;
  OccupancyKernel kernel;
  if (const CUresult error = Begin(function, &device, &kernel); error != CUDA_SUCCESS) return error;
  if (blocks == nullptr || threads <= 0 || flags > CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  *blocks = static_cast<int>(BlocksPerMultiprocessor(device, kernel, static_cast<uint32_t>(threads), shared));
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, CUfunction function, int threads,
                                                             size_t shared) {
  return cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, function, threads, shared, 0);
}

CUresult CUDAAPI cuOccupancyMaxPotentialBlockSizeWithFlags(int* grid, int* block, CUfunction function,
                                                           CUoccupancyB2DSize shared_of, size_t shared, int limit,
                                                           unsigned int flags) {
  OccupancyDevice device;
  OccupancyKernel kernel;
  if (const CUresult error = Begin(function, &device, &kernel); error != CUDA_SUCCESS) return error;
  if (grid == nullptr || block == nullptr || limit < 0 || flags > CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const BestBlock best = FindBestBlock(
      device, kernel,
      [&](uint32_t threads) -> uint64_t {
        return shared_of != nullptr ? shared_of(static_cast<int>(threads)) : shared;
      },
      static_cast<uint32_t>(limit));
  if (best.threads == 0) return CUDA_ERROR_INVALID_VALUE;
  *grid = static_cast<int>(best.grid);
  *block = static_cast<int>(best.threads);
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuOccupancyMaxPotentialBlockSize(int* grid, int* block, CUfunction function,
                                                  CUoccupancyB2DSize shared_of, size_t shared, int limit) {
  return cuOccupancyMaxPotentialBlockSizeWithFlags(grid, block, function, shared_of, shared, limit, 0);
}

CUresult CUDAAPI cuOccupancyAvailableDynamicSMemPerBlock(size_t* shared, CUfunction function, int blocks, int threads) {
  OccupancyDevice device;
  OccupancyKernel kernel;
  if (const CUresult error = Begin(function, &device, &kernel); error != CUDA_SUCCESS) return error;
  if (shared == nullptr || blocks <= 0 || threads <= 0) return CUDA_ERROR_INVALID_VALUE;
  *shared = SharedForBlocks(device, kernel, static_cast<uint32_t>(blocks), static_cast<uint32_t>(threads));
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuOccupancyMaxActiveClusters(int* clusters, CUfunction function, const CUlaunchConfig* config) {
  return AskClusters(function, config, /*largest=*/false, clusters);
}

CUresult CUDAAPI cuOccupancyMaxPotentialClusterSize(int* size, CUfunction function, const CUlaunchConfig* config) {
  return AskClusters(function, config, /*largest=*/true, size);
}
