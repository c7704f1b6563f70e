// SPDX-License-Identifier: Apache-2.0
#include "softcuda/driver/kernel_runner.h"

#include <atomic>
#include <iterator>
#include <utility>
#include <variant>
#include <vector>

#include "softcuda/driver/driver.h"
#include "softcuda/driver/grid_runtime.h"
#include "softcuda/driver/log.h"

namespace hawser::soft {
namespace {

CUresult ErrorOf(exec::Fault::Kind kind) {
  using Kind = exec::Fault::Kind;
  switch (kind) {
    case Kind::kNone:
    case Kind::kCancelled:
      return CUDA_SUCCESS;
    case Kind::kIllegalAddress:
      return CUDA_ERROR_ILLEGAL_ADDRESS;
    case Kind::kMisaligned:
      return CUDA_ERROR_MISALIGNED_ADDRESS;
    case Kind::kInvalidAddressSpace:
      return CUDA_ERROR_INVALID_ADDRESS_SPACE;
    case Kind::kIllegalInstruction:
      return CUDA_ERROR_ILLEGAL_INSTRUCTION;
    case Kind::kInvalidPc:
      return CUDA_ERROR_INVALID_PC;
    case Kind::kAssert:
      return CUDA_ERROR_ASSERT;
    case Kind::kStackOverflow:
      return CUDA_ERROR_HARDWARE_STACK_ERROR;
    case Kind::kOutOfMemory:
      return CUDA_ERROR_OUT_OF_MEMORY;
    case Kind::kBadLaunch:
      return CUDA_ERROR_INVALID_VALUE;
    case Kind::kTrap:
    case Kind::kDeadlock:
      break;
  }
  return CUDA_ERROR_LAUNCH_FAILED;
}

/// Without what it launches.
void RunGrid(const KernelWork& work, Context* context, exec::ConditionSink* conditions, GridRuntime* runtime) {
  static std::atomic<uint64_t> next_grid{1};
  Driver* const driver = GetDriver();
  exec::LaunchConfig config;
  config.kernel = work.function->index;
  config.grid = work.grid;
  config.block = work.block;
  config.dynamic_shared_bytes = work.shared_bytes;
  config.parameters = work.parameters;
  config.cooperative = work.cooperative;
  config.cluster = work.cluster;
  config.explicit_cluster = work.explicit_cluster;
  config.grid_id = next_grid.fetch_add(1, std::memory_order_relaxed);
  config.device = context->device()->properties();
  config.device.stack_bytes = context->stack_bytes();
  config.memory = &driver->memory.access();
  config.print = &context->print;
  config.conditions = conditions;
  config.textures = &driver->textures;
  config.heap = context->heap();
  config.runtime = runtime;
  config.cancel = &context->cancelled();
  const exec::Outcome outcome = driver->engine.Run(*work.function->program, config);
  if (outcome.ok() || outcome.fault.kind == exec::Fault::Kind::kCancelled) return;
  if (outcome.fault.kind == exec::Fault::Kind::kAssert) {
    LogAsIs(outcome.fault.message);  // The line that assert() prints everywhere; programs and people look for it.
  } else {
    Log(outcome.fault.Text());
  }
  context->Fail(ErrorOf(outcome.fault.kind));
}

bool IsOver(const Context& context) {
  return context.error() != CUDA_SUCCESS || context.cancelled().load(std::memory_order_relaxed);
}

void RunTree(const KernelWork& work, Context* context, exec::ConditionSink* conditions, int depth);

void RunChildren(GridRuntime* runtime, Context* context, exec::ConditionSink* conditions, int depth) {
  for (const Work& child : runtime->TakeChildren()) {
    if (IsOver(*context)) return;
    if (const auto* const kernel = std::get_if<KernelWork>(&child)) {
      RunTree(*kernel, context, conditions, depth + 1);
    } else {
      Execute(child, context, conditions);
    }
  }
}

void RunTree(const KernelWork& work, Context* context, exec::ConditionSink* conditions, int depth) {
  // What is left for the end; the last goes first. A grid of it is over when what it left for its own end is. Chains of
  // these have any length, so they are no recursion.
  std::vector<Work> tails;
  const auto run = [&](const KernelWork& kernel) {
    GridRuntime runtime(kernel, context, depth);
    RunGrid(kernel, context, conditions, &runtime);
    if (IsOver(*context)) return;
    RunChildren(&runtime, context, conditions, depth);
    std::vector<Work> more = runtime.TakeTails();
    tails.insert(tails.end(), std::make_move_iterator(more.rbegin()), std::make_move_iterator(more.rend()));
  };
  run(work);
  while (!tails.empty() && !IsOver(*context)) {
    const Work next = std::move(tails.back());
    tails.pop_back();
    if (const auto* const kernel = std::get_if<KernelWork>(&next)) {
      run(*kernel);
    } else {
      Execute(next, context, conditions);
    }
  }
}

}  // namespace

void RunKernel(const KernelWork& work, Context* context, exec::ConditionSink* conditions) {
  RunTree(work, context, conditions, 0);
}

}  // namespace hawser::soft
