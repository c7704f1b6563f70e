// SPDX-License-Identifier: Apache-2.0
// cuLaunch*. The path of cuLaunchKernel: a few checks against what is known here, the parameters packed on the stack,
// one command. Nothing allocates (up to 512 bytes of parameters) and nothing waits.
#include <algorithm>

#include "interposer/cuda/entry.h"
#include "interposer/cuda/host_mirror.h"
#include "interposer/cuda/launch_attributes.h"
#include "interposer/cuda/launch_packer.h"
#include "interposer/cuda/mirror.h"
#include "interposer/cuda/module.h"

using namespace hawser;      // NOLINT(google-build-using-namespace): entry points live outside of namespaces.
using namespace hawser::cu;  // NOLINT(google-build-using-namespace)

namespace {

/// Fills a Launch or a LaunchWith and checks what can be known here.
template <typename Message>
CUresult Prepare(StreamCommand& command, CUfunction handle, const Dim3& grid, const Dim3& block, uint32_t shared,
                 void* const* parameters, void* const* extra, ParameterBlock* packed, Message* message) {
  FunctionBase* function = nullptr;
  if (const CUresult error = CheckFunction(handle, &function); error != CUDA_SUCCESS) [[unlikely]]
    return error;
  if (function->context != nullptr && function->context != command.context()) return CUDA_ERROR_INVALID_HANDLE;
  const Device& device = *Client::Get().device(command.context()->device);
  if (const CUresult error = CheckLaunch(device, *function, grid, block, shared); error != CUDA_SUCCESS) {
    return error;
  }
  if (const CUresult error = packed->Pack(*function, parameters, extra); error != CUDA_SUCCESS) return error;
  if (Client::Get().pointers().HasPinnedElsewhere()) [[unlikely]] {
    if (const CUresult error = TranslateHostAddresses(command.context(), packed); error != CUDA_SUCCESS) return error;
  }
  message->function = function->id;
  message->grid = grid;
  message->block = block;
  message->shared = shared;
  message->parameters = packed->bytes();
  return Mirrors::Get().BeforeWork(command.stream());
}

bool IsCooperative(std::span<const cuda::LaunchAttribute> attributes) {
  return std::any_of(attributes.begin(), attributes.end(), [](const cuda::LaunchAttribute& each) {
    return each.id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE && each.number != 0;
  });
}

CUresult LaunchWithAttributes(CUstream stream, CUfunction function, const Dim3& grid, const Dim3& block,
                              uint32_t shared, void* const* parameters, void* const* extra,
                              std::span<const cuda::LaunchAttribute> attributes) {
  StreamCommand command;
  if (const CUresult error = command.Begin(stream); error != CUDA_SUCCESS) return error;
  ParameterBlock packed;
  cuda::LaunchWith message;
  const CUresult error = Prepare(command, function, grid, block, shared, parameters, extra, &packed, &message);
  if (error != CUDA_SUCCESS) return error;
  if (IsCooperative(attributes)) {
    FunctionBase* called = nullptr;
    (void)CheckFunction(function, &called);
    const Device& device = *Client::Get().device(command.context()->device);
    const CUresult refused = CheckCooperative(device, *called, grid, block, shared);
    if (refused != CUDA_SUCCESS) return refused;
  }
  message.attributes = wire::ListView<cuda::LaunchAttribute>(attributes);
  return command.Send(message);
}

}  // namespace

CUresult CUDAAPI cuLaunchKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
                                unsigned int block_x, unsigned int block_y, unsigned int block_z, unsigned int shared,
                                CUstream stream, void** parameters, void** extra) {
  StreamCommand command;
  if (const CUresult error = command.Begin(stream); error != CUDA_SUCCESS) [[unlikely]]
    return error;
  ParameterBlock packed;
  cuda::Launch message;
  const CUresult error = Prepare(command, function, {grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared,
                                 parameters, extra, &packed, &message);
  return error != CUDA_SUCCESS ? error : command.Send(message);
}

CUresult CUDAAPI cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function, void** parameters, void** extra) {
  if (config == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (config->numAttrs == 0) {
    return cuLaunchKernel(function, config->gridDimX, config->gridDimY, config->gridDimZ, config->blockDimX,
                          config->blockDimY, config->blockDimZ, config->sharedMemBytes, config->hStream, parameters,
                          extra);
  }
  std::vector<cuda::LaunchAttribute> attributes;
  if (const CUresult error = ToWire(config->attrs, config->numAttrs, &attributes); error != CUDA_SUCCESS) return error;
  return LaunchWithAttributes(config->hStream, function, {config->gridDimX, config->gridDimY, config->gridDimZ},
                              {config->blockDimX, config->blockDimY, config->blockDimZ}, config->sharedMemBytes,
                              parameters, extra, attributes);
}

CUresult CUDAAPI cuLaunchCooperativeKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y,
                                           unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                                           unsigned int block_z, unsigned int shared, CUstream stream,
                                           void** parameters) {
  cuda::LaunchAttribute cooperative;
  cooperative.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
  cooperative.number = 1;
  return LaunchWithAttributes(stream, function, {grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared,
                              parameters, nullptr, {&cooperative, 1});
}
