// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "proto/cuda_api/launch_attribute.h"
#include "server/backends/cuda/backend.h"

namespace hawser::server::cuda_backend {

int32_t CudaBackend::Launch(const cuda::Call& call, const cuda::Launch& message) {
  const Place at = At(message.context, message.stream, Gives::kPlain);
  if (!at.ok()) [[unlikely]]
    return Fail(call, at.status, {}, message.context);
  int32_t status = 0;
  const Function* function = Use<Function>(message.function, &status);
  if (function == nullptr) [[unlikely]]
    return Fail(call, status, {}, message.context);
  size_t size = message.parameters.size();
  if (size < function->parameter_bytes) [[unlikely]] {
    return Fail(call, Explain(CUDA_ERROR_INVALID_VALUE, "the kernel has more parameters than came"), {},
                message.context);
  }
  services_.stats->kernels.Add(1);
  if (unwatched() && !at.stream->open.full() && at.context->gate->BeginOpen()) [[likely]] {
    // The driver copies the parameters before it returns; the frame stays until then.
    void* extra[] = {
        CU_LAUNCH_PARAM_BUFFER_POINTER,
        const_cast<std::byte*>(message.parameters.data()),  // NOLINT(cppcoreguidelines-pro-type-const-cast)
        CU_LAUNCH_PARAM_BUFFER_SIZE, &size, CU_LAUNCH_PARAM_END};
    const CUresult result = driver_.cuLaunchKernel(function->native, message.grid[0], message.grid[1], message.grid[2],
                                                   message.block[0], message.block[1], message.block[2], message.shared,
                                                   at.native(), nullptr, size == 0 ? nullptr : extra);
    at.context->gate->EndOpen();
    NoteOpen(at, function->facts, uint64_t{message.grid[0]} * message.grid[1] * message.grid[2]);
    return Finish(call, result, message.context);
  }
  KernelLaunch launch;
  launch.function = function->native;
  for (size_t i = 0; i < 3; ++i) {
    launch.grid[i] = message.grid[i];
    launch.block[i] = message.block[i];
  }
  launch.shared = message.shared;
  launch.parameters.assign(message.parameters.begin(), message.parameters.end());
  return Submit(call, at, message.context, std::move(launch), function->facts);
}

int32_t CudaBackend::LaunchWith(const cuda::Call& call, const cuda::LaunchWith& message) {
  const Place at = At(message.context, message.stream, Gives::kPlain);
  if (!at.ok()) return Fail(call, at.status, {}, message.context);
  int32_t status = 0;
  const Function* function = Use<Function>(message.function, &status);
  if (function == nullptr) return Fail(call, status, {}, message.context);
  if (driver_.cuLaunchKernelEx == nullptr) return Fail(call, kNotSupported, {}, message.context);
  if (message.parameters.size() < function->parameter_bytes) {
    return Fail(call, Explain(CUDA_ERROR_INVALID_VALUE, "the kernel has more parameters than came"), {},
                message.context);
  }
  KernelLaunch launch;
  std::vector<wire::Id> events;
  message.attributes.ForEach([&](const cuda::LaunchAttribute& attribute) {
    if (status == 0) status = FillAttribute(attribute, &launch.attributes.emplace_back());
    if (status != 0 || !attribute.event) return;
    events.push_back(attribute.event);
    if (const Event* event = Use<Event>(attribute.event, &status); event != nullptr)
      launch.keeps.push_back(event->state);
  });
  if (status != 0) return Fail(call, status, {}, message.context);
  launch.function = function->native;
  launch.extended = true;
  for (size_t i = 0; i < 3; ++i) {
    launch.grid[i] = message.grid[i];
    launch.block[i] = message.block[i];
  }
  launch.shared = message.shared;
  launch.parameters.assign(message.parameters.begin(), message.parameters.end());
  services_.stats->kernels.Add(1);
  if (unwatched() && !at.stream->open.full() && at.context->gate->BeginOpen()) {
    const CUresult result = launch.Run(driver_, at.native());
    at.context->gate->EndOpen();
    NoteOpen(at, function->facts, launch.blocks());
    return Finish(call, result, message.context);
  }
  return Submit(call, at, message.context, std::move(launch), function->facts, std::move(events));
}

int32_t CudaBackend::AskClusters(const cuda::Call& call, const cuda::AskClusters& message) {
  cuda::Value reply;
  const auto answer = [&](int32_t status) {
    reply.status = status;
    reason_.clear();
    Reply(call, reply);
    return 0;
  };
  const Place at = At(message.context, message.stream, Gives::kPlain);
  if (!at.ok()) return answer(at.status);
  int32_t status = 0;
  const Function* function = Use<Function>(message.function, &status);
  if (function == nullptr) return answer(status);
  std::vector<CUlaunchAttribute> attributes;
  message.attributes.ForEach([&](const cuda::LaunchAttribute& attribute) {
    if (status == 0) status = FillAttribute(attribute, &attributes.emplace_back());
  });
  if (status != 0) return answer(status);
  CUlaunchConfig config{};
  config.gridDimX = message.grid[0];
  config.gridDimY = message.grid[1];
  config.gridDimZ = message.grid[2];
  config.blockDimX = message.block[0];
  config.blockDimY = message.block[1];
  config.blockDimZ = message.block[2];
  config.sharedMemBytes = message.shared;
  config.hStream = at.native();
  config.attrs = attributes.data();
  config.numAttrs = static_cast<unsigned>(attributes.size());
  const auto ask =
      message.largest != 0 ? driver_.cuOccupancyMaxPotentialClusterSize : driver_.cuOccupancyMaxActiveClusters;
  if (ask == nullptr) return answer(kNotSupported);
  int count = 0;
  status = ask(&count, function->native, &config);
  reply.value = static_cast<uint64_t>(std::max(count, 0));
  return answer(status);
}

int32_t CudaBackend::FillAttribute(const cuda::LaunchAttribute& from, CUlaunchAttribute* to) {
  std::memset(to, 0, sizeof(*to));
  to->id = static_cast<CUlaunchAttributeID>(from.id);
  CUlaunchAttributeValue& value = to->value;
  const auto event = [&](CUevent* native) {
    int32_t status = 0;
    const Event* object = Use<Event>(from.event, &status);
    if (object != nullptr) *native = object->native();
    return status;
  };
  if (to->id == CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW && !Owns(from.address, from.number)) {
    return Explain(CUDA_ERROR_INVALID_VALUE, "the memory is not the session's");
  }
  if (cuda_api::PlainFromWire(from, &value)) return 0;
  switch (to->id) {
    case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT:
      value.programmaticEvent.flags = static_cast<int>(from.x);
      value.programmaticEvent.triggerAtBlockStart = static_cast<int>(from.number);
      return event(&value.programmaticEvent.event);
    case CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT:
      value.launchCompletionEvent.flags = static_cast<int>(from.x);
      return event(&value.launchCompletionEvent.event);
    default:
      return Explain(cuda_api::WhyRefused(to->id), "the launch attribute is not known");
  }
}

}  // namespace hawser::server::cuda_backend
