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

/// A kernel that a program launched, and all below it.
class Tree {
 public:
  Tree(Context* context, exec::ConditionSink* conditions) : context_(context), conditions_(conditions) {}

  void Run(const KernelWork& work, int depth);

 private:
  /// Without what it leaves for its end, which is put behind `tails` in reverse order.
  void RunOne(const KernelWork& work, int depth, std::vector<Work>* tails);

  Context* const context_;
  exec::ConditionSink* const conditions_;
  PendingWork pending_;
};

void Tree::RunOne(const KernelWork& work, int depth, std::vector<Work>* tails) {
  GridRuntime runtime(work, context_, &pending_, depth);
  RunGrid(work, context_, conditions_, &runtime);
  if (IsOver(*context_)) return;
  for (const Work& child : runtime.TakeChildren()) {
    if (IsOver(*context_)) return;
    if (const auto* const kernel = std::get_if<KernelWork>(&child)) {
      Run(*kernel, depth + 1);
    } else {
      Execute(child, context_, conditions_);
    }
    pending_.Remove(child);
  }
  std::vector<Work> more = runtime.TakeTails();
  tails->insert(tails->end(), std::make_move_iterator(more.rbegin()), std::make_move_iterator(more.rend()));
}

void Tree::Run(const KernelWork& work, int depth) {
  // What is left for the end; the last goes first. A grid of it is over when what it left for its own end is. Chains of
  // these have any length, so they are no recursion.
  std::vector<Work> tails;
  RunOne(work, depth, &tails);
  while (!tails.empty() && !IsOver(*context_)) {
    const Work next = std::move(tails.back());
    tails.pop_back();
    if (const auto* const kernel = std::get_if<KernelWork>(&next)) {
      RunOne(*kernel, depth, &tails);
    } else {
      Execute(next, context_, conditions_);
    }
    pending_.Remove(next);
  }
}

}  // namespace

void RunKernel(const KernelWork& work, Context* context, exec::ConditionSink* conditions) {
  Tree(context, conditions).Run(work, 0);
}

}  // namespace hawser::soft
