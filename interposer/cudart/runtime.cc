// SPDX-License-Identifier: Apache-2.0
#include "interposer/cudart/runtime.h"

namespace hawser::cudart {
namespace {

// Tells redirection (redirect/runtime_finder.cc) that this runtime is ours.
[[gnu::section(".hawser_runtime"), gnu::used, gnu::retain]] const char kMark[] = "hawser";

std::atomic<Runtime*> g_runtime = nullptr;

}  // namespace

Runtime& Runtime::Get() {
  Runtime* runtime = g_runtime.load(std::memory_order_acquire);
  if (runtime != nullptr) [[likely]] {
    return *runtime;
  }
  auto* fresh = new Runtime;
  if (g_runtime.compare_exchange_strong(runtime, fresh, std::memory_order_acq_rel)) return *fresh;
  delete fresh;
  return *runtime;
}

void Runtime::ReplaceForTest() {
  // The old one stays, as at a program's end: others may still be in it.
  static auto* const replaced = new std::vector<Runtime*>;
  replaced->push_back(g_runtime.exchange(nullptr, std::memory_order_acq_rel));
  CurrentThread() = ThreadState{};
}

cudaError_t Runtime::Start() {
  if (state_.load(std::memory_order_acquire) == kReady) [[likely]] {
    return cudaSuccess;
  }
  const std::lock_guard lock(start_mutex_);
  if (state_.load(std::memory_order_relaxed) == kNew) {
    start_error_ = StartOnce();
    state_.store(start_error_ == cudaSuccess ? kReady : kFailed, std::memory_order_release);
  }
  return start_error_;
}

cudaError_t Runtime::StartOnce() {
  if (!OpenDriver(driver_)) return cudaErrorInsufficientDriver;
  if (const CUresult result = driver_.cuInit(0); result != CUDA_SUCCESS) return FromDriver(result);
  int count = 0;
  if (const CUresult result = driver_.cuDeviceGetCount(&count); result != CUDA_SUCCESS) return FromDriver(result);
  if (count == 0) return cudaErrorNoDevice;
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    CUdevice handle = 0;
    if (const CUresult result = driver_.cuDeviceGet(&handle, ordinal); result != CUDA_SUCCESS) {
      return FromDriver(result);
    }
    devices_.push_back(std::make_unique<Device>(driver_, ordinal, handle));
  }
  return cudaSuccess;
}

cudaError_t Runtime::Bind(ThreadState& thread) {
  if (const cudaError_t error = Start(); error != cudaSuccess) return error;
  CUcontext current = nullptr;
  const CUresult result = driver_.cuCtxGetCurrent(&current);
  if (result != CUDA_SUCCESS && result != CUDA_ERROR_CONTEXT_IS_DESTROYED) return FromDriver(result);
  if (current != nullptr) {
    // Not ours: the program made it current itself.
    if (current != thread.bound) return cudaSuccess;
    if (!thread.bound_epoch.is_over()) return cudaSuccess;
  }
  return BindPrimary(thread);
}

cudaError_t Runtime::BindPrimary(ThreadState& thread) {
  Device& device = *devices_[static_cast<size_t>(thread.device)];
  const Epoch epoch = device.epoch();
  CUcontext context = nullptr;
  if (const cudaError_t error = device.Primary(&context); error != cudaSuccess) return error;
  if (const CUresult result = driver_.cuCtxSetCurrent(context); result != CUDA_SUCCESS) return FromDriver(result);
  thread.bound = context;
  thread.bound_epoch = epoch;
  return cudaSuccess;
}

cudaError_t Runtime::SetDevice(ThreadState& thread, int ordinal) {
  if (const cudaError_t error = Start(); error != cudaSuccess) return error;
  if (device(ordinal) == nullptr) return cudaErrorInvalidDevice;
  thread.device = ordinal;
  return BindPrimary(thread);
}

int Runtime::CurrentDevice(ThreadState& thread) {
  CUcontext current = nullptr;
  if (!started() || driver_.cuCtxGetCurrent(&current) != CUDA_SUCCESS) return thread.device;
  if (current == nullptr || current == thread.bound) return thread.device;
  CUdevice handle = 0;
  if (driver_.cuCtxGetDevice(&handle) != CUDA_SUCCESS) return thread.device;
  for (const auto& candidate : devices_) {
    if (candidate->handle() == handle) return candidate->ordinal();
  }
  return thread.device;
}

cudaError_t Runtime::ResetDevice(ThreadState& thread) {
  if (const cudaError_t error = Start(); error != cudaSuccess) return error;
  Device& device = *devices_[static_cast<size_t>(CurrentDevice(thread))];
  const cudaError_t error = device.Reset();
  if (thread.bound != nullptr && thread.device == device.ordinal()) {
    driver_.cuCtxSetCurrent(nullptr);
    thread.bound = nullptr;
  }
  if (error == cudaSuccess) thread.last_error.Clear();
  return error;
}

uint64_t Runtime::CurrentEpoch(ThreadState& thread) {
  CUcontext current = nullptr;
  if (driver_.cuCtxGetCurrent(&current) != CUDA_SUCCESS || current != thread.bound) return 0;
  return thread.bound_epoch.then;
}

}  // namespace hawser::cudart
