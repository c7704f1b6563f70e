// SPDX-License-Identifier: Apache-2.0
#include "server/backends/cuda/sliced_kernels.h"

#include <algorithm>

#include "server/backends/cuda/slicing/guard.h"
#include "server/backends/cuda/slicing/scan.h"
#include "server/backends/cuda/slicing/variables.h"
#include "server/worker_settings.h"

namespace hawser::server::cuda_backend {

using cuda_slicing::LayoutOf;
using cuda_slicing::MayOffset;
using cuda_slicing::Rewrite;
using cuda_slicing::Way;
using cuda_slicing::WhyWhole;

SlicedKernels::~SlicedKernels() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  if (builder_.joinable()) builder_.join();
}

void SlicedKernels::Tell(const std::string& kernel, const std::string& how) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (told_ >= kMostTold) return;
    ++told_;
  }
  log_("info", "kernel '" + OneLine(kernel.substr(0, 128)) + "' " + how);
}

std::shared_ptr<const SlicedKernel> SlicedKernels::Find(const std::shared_ptr<KernelFacts>& kernel, CUcontext context,
                                                        bool one_row, bool wait) {
  if (kernel->whole.load(std::memory_order_relaxed)) return nullptr;
  if (kernel->code == nullptr || kernel->code->text == nullptr) {
    // Nobody shall wait for the builder to find that.
    if (!kernel->whole.exchange(true)) Tell(kernel->name, "runs whole: its module was not loaded from one PTX text");
    return nullptr;
  }
  if (!kernel->code->text->IsHere()) return nullptr;
  const Order order{kernel, context, one_row};
  const Key key(*kernel, context, one_row);
  std::vector<std::shared_ptr<const SlicedKernel>> gone;  // They go without the lock, in this context.
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (const auto at = entries_.find(key); at != entries_.end()) {
      if (at->second.over && at->second.sliced == nullptr) kernel->whole.store(true, std::memory_order_relaxed);
      return at->second.sliced;
    }
    TakeEnded(context, &gone);
    if (entries_.size() >= kMostKernels) return nullptr;
    entries_[key].code = kernel->code;
    if (!wait) {
      orders_.push_back(order);
      if (!builder_.joinable()) builder_ = std::thread([this] { Run(); });
    }
  }
  if (!wait) {
    changed_.notify_all();
    return nullptr;
  }
  std::shared_ptr<const SlicedKernel> sliced = Build(order);
  const std::lock_guard<std::mutex> lock(mutex_);
  entries_[key] = {true, sliced, kernel->code};
  return sliced;
}

std::shared_ptr<const SlicedKernel> SlicedKernels::Made(const KernelFacts& kernel, CUcontext context, bool one_row) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto at = entries_.find(Key(kernel, context, one_row));
  return at != entries_.end() ? at->second.sliced : nullptr;
}

bool SlicedKernels::IsMaking(const KernelFacts& kernel, CUcontext context, bool one_row) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto at = entries_.find(Key(kernel, context, one_row));
  return at != entries_.end() && !at->second.over;
}

std::shared_ptr<const SlicedKernel> SlicedKernels::Build(const Order& order) {
  const KernelFacts& kernel = *order.kernel;
  const auto whole = [&](const std::string& why) {
    Tell(kernel.name, "runs whole: " + why);
    return nullptr;
  };
  auto module = kernel.code->text->Parsed();
  if (!module.ok()) return whole("its module's PTX is not understood: " + module.status().text());
  if (const std::string why = WhyWhole(**module, kernel.name); !why.empty()) return whole(why);
  const Way offset = order.one_row ? Way::kRow : Way::kOffset;
  const Way way = MayOffset(**module, kernel.name) ? offset : Way::kGuard;
  auto copy = Rewrite(**module, kernel.name, way);
  if (!copy.ok()) return whole(copy.status().text());
  const auto function = std::find_if((*module)->functions.begin(), (*module)->functions.end(),
                                     [&](const ptx::Function& each) { return each.name == kernel.name; });
  auto layout = LayoutOf(**module, *function);
  if (!layout.ok()) return whole(layout.status().text());
  // Of machine code it is only said that this is its source.
  if (kernel.parameter_bytes != 0 && kernel.parameter_bytes != layout->own_bytes) {
    return whole("its module's PTX gives it other parameters than the module");
  }
  std::vector<CUjit_option> options;
  std::vector<void*> values;
  for (const auto& [option, value] : kernel.code->options) {
    options.push_back(option);
    values.push_back(reinterpret_cast<void*>(value));  // NOLINT(performance-no-int-to-ptr): how the driver wants it.
  }
  auto sliced = std::make_shared<SlicedKernel>();
  sliced->way = way;
  sliced->layout = *layout;
  CUmodule native = nullptr;
  CUresult result = driver_->cuModuleLoadDataEx(&native, copy->text.c_str(), static_cast<unsigned>(options.size()),
                                                options.data(), values.data());
  if (result == CUDA_SUCCESS) {
    sliced->module = OwnedModule(driver_, native);
    result = driver_->cuModuleGetFunction(&sliced->function, native, kernel.name.c_str());
  }
  if (result == CUDA_SUCCESS && !copy->variables.empty()) {
    if (const std::string why = FillTable(kernel, native, copy->variables); !why.empty()) return whole(why);
  }
  if (result != CUDA_SUCCESS) return whole("its copy cannot be compiled: " + ErrorText(*driver_, result));
  Tell(kernel.name, way == Way::kGuard ? "is split, by guards" : "is split, by offsets");
  return sliced;
}

std::string SlicedKernels::FillTable(const KernelFacts& kernel, CUmodule copy, const std::vector<std::string>& names) {
  std::vector<CUdeviceptr> addresses(names.size());
  for (size_t i = 0; i < names.size(); ++i) {
    const CUresult result = kernel.code->variables->Find(*driver_, names[i], &addresses[i]);
    if (result == CUDA_SUCCESS) continue;
    return "its module's variable '" + OneLine(names[i].substr(0, 128)) +
           "' is not to be found: " + ErrorText(*driver_, result);
  }
  CUdeviceptr table = 0;
  size_t size = 0;
  CUresult result = driver_->cuModuleGetGlobal(&table, &size, copy, cuda_slicing::kVariableTable);
  if (result == CUDA_SUCCESS && size != addresses.size() * sizeof(CUdeviceptr)) result = CUDA_ERROR_INVALID_VALUE;
  // In a stream of its own: the default stream may be barred by what the guest captures.
  CUstream stream = nullptr;
  if (result == CUDA_SUCCESS) result = driver_->cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, 0);
  if (result == CUDA_SUCCESS) {
    const OwnedStream owned(driver_, stream);
    result = driver_->cuMemcpyHtoDAsync(table, addresses.data(), size, stream);
    const CUresult over = driver_->cuStreamSynchronize(stream);
    if (result == CUDA_SUCCESS) result = over;
  }
  if (result == CUDA_SUCCESS) return {};
  return "its copy cannot be told of its module's variables: " + ErrorText(*driver_, result);
}

void SlicedKernels::TakeEnded(CUcontext context, std::vector<std::shared_ptr<const SlicedKernel>>* gone) {
  std::erase_if(entries_, [&](auto& entry) {
    if (entry.first.context != context || !entry.second.over || !entry.second.code.expired()) return false;
    gone->push_back(std::move(entry.second.sliced));
    return true;
  });
}

void SlicedKernels::Run() {
  // What is done here is of no concern to a capture that is under way in the guest.
  if (driver_->cuThreadExchangeStreamCaptureMode != nullptr) {
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    (void)driver_->cuThreadExchangeStreamCaptureMode(&mode);
  }
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return stop_ || !orders_.empty(); });
    if (stop_) return;
    const Order order = std::move(orders_.front());
    orders_.pop_front();
    building_ = order.context;
    lock.unlock();
    std::shared_ptr<const SlicedKernel> sliced;
    if (driver_->cuCtxSetCurrent(order.context) == CUDA_SUCCESS) sliced = Build(order);
    lock.lock();
    entries_[Key(*order.kernel, order.context, order.one_row)] = {true, std::move(sliced), order.kernel->code};
    building_ = nullptr;
    changed_.notify_all();
  }
}

void SlicedKernels::EndContext(CUcontext context) {
  std::vector<std::shared_ptr<const SlicedKernel>> gone;
  {
    std::unique_lock<std::mutex> lock(mutex_);
    std::erase_if(orders_, [&](const Order& order) { return order.context == context; });
    changed_.wait(lock, [&] { return building_ != context; });
    std::erase_if(entries_, [&](auto& entry) {
      if (entry.first.context != context) return false;
      gone.push_back(std::move(entry.second.sliced));
      return true;
    });
  }
}

}  // namespace hawser::server::cuda_backend
