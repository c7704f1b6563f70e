// SPDX-License-Identifier: Apache-2.0
// Copies of kernels that run in parts. Made when a kernel that is long, or may be, is launched while others want the
// device, so a tenant who is alone compiles nothing twice.
//
// Threads: Find() and EndContext() are the executor's; a builder thread, started when first needed, rewrites and
// compiles. Lock: mutex_, a leaf; the driver is called without it.
#ifndef HAWSER_SERVER_BACKENDS_CUDA_SLICED_KERNELS_H_
#define HAWSER_SERVER_BACKENDS_CUDA_SLICED_KERNELS_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "scheduler/core/kernel_history.h"
#include "server/backends/cuda/driver_table.h"
#include "server/backends/cuda/kernel_launch.h"
#include "server/backends/cuda/module_variables.h"
#include "server/backends/cuda/slicing/module_text.h"
#include "server/worker/open_flight.h"

namespace hawser::server::cuda_backend {

/// Options of the compiler that are plain numbers, as the guest gave them.
using JitNumbers = std::vector<std::pair<CUjit_option, uint64_t>>;

/// What is known of a module's code. Shared by the module and its kernels.
struct ModuleCode {
  std::string hash;                                ///< Stands for its images and options.
  std::shared_ptr<cuda_slicing::ModuleText> text;  ///< Null: there is no PTX, or it is linked from several.
  JitNumbers options;
  uint64_t serial = 0;  ///< Of the session's: the same code loaded twice has other variables.
  const std::shared_ptr<ModuleVariables> variables = std::make_shared<ModuleVariables>();
};

/// What is known of a kernel, whatever context it runs in. The members that change are atomic.
struct KernelFacts {
  std::string name;
  scheduler::KernelKey key;
  std::shared_ptr<const ModuleCode> code;
  uint64_t parameter_bytes = 0;       ///< As the driver says; 0: it does not.
  std::vector<uint32_t> offsets;      ///< Of its parameters; likewise.
  std::atomic<bool> whole{false};     ///< It is never split.
  std::atomic<float> empty_ns{0};     ///< What a block costs that ends at once; 0: not measured yet.
  std::atomic<bool> measures{false};  ///< That is being measured.
  bool graph = false;                 ///< A graph: it has no key.
  std::atomic<uint64_t> last_ns{0};   ///< How long it took last; graphs only.
  OpenSpeed open;                     ///< The executor's.
};

class SlicedKernels {
 public:
  using Log = std::function<void(std::string_view level, const std::string& text)>;

  SlicedKernels(const DriverTable* driver, Log log) : driver_(driver), log_(std::move(log)) {}
  ~SlicedKernels();
  SlicedKernels(const SlicedKernels&) = delete;
  SlicedKernels& operator=(const SlicedKernels&) = delete;

  /// The copy of a kernel in this context for launches of one row of blocks, or of more; null when there is none, or
  /// none yet: then it is being made. `wait`: made here and now, in the current context.
  std::shared_ptr<const SlicedKernel> Find(const std::shared_ptr<KernelFacts>& kernel, CUcontext context, bool one_row,
                                           bool wait);
  /// What Find() would give, but nothing is made for it.
  std::shared_ptr<const SlicedKernel> Made(const KernelFacts& kernel, CUcontext context, bool one_row);
  /// The copy is being made.
  bool IsMaking(const KernelFacts& kernel, CUcontext context, bool one_row);
  /// The context is current and about to end: its copies go, when nobody runs them any more.
  void EndContext(CUcontext context);

 private:
  /// More kernels than this run whole.
  static constexpr size_t kMostKernels = 4096;
  /// A session's log is not for guests to fill.
  static constexpr uint32_t kMostTold = 64;

  struct Entry {
    bool over = false;
    std::shared_ptr<const SlicedKernel> sliced;
    std::weak_ptr<const ModuleCode> code;
  };
  struct Order {
    std::shared_ptr<KernelFacts> kernel;
    CUcontext context = nullptr;
    bool one_row = false;
  };
  struct Key {
    CUcontext context = nullptr;
    uint64_t module = 0;
    scheduler::KernelKey kernel;
    bool one_row = false;

    Key(const KernelFacts& facts, CUcontext where, bool row)
        : context(where), module(facts.code != nullptr ? facts.code->serial : 0), kernel(facts.key), one_row(row) {}
    bool operator<(const Key& other) const {
      return std::tie(context, module, kernel, one_row) <
             std::tie(other.context, other.module, other.kernel, other.one_row);
    }
  };

  /// What there is in that context of modules that have ended.
  void TakeEnded(CUcontext context, std::vector<std::shared_ptr<const SlicedKernel>>* gone);
  /// The copy's table of the module's variables. Of the current context. Empty: good.
  std::string FillTable(const KernelFacts& kernel, CUmodule copy, const std::vector<std::string>& names);
  std::shared_ptr<const SlicedKernel> Build(const Order& order);
  void Tell(const std::string& kernel, const std::string& how);
  void Run();

  const DriverTable* const driver_;
  const Log log_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<Key, Entry> entries_;
  std::deque<Order> orders_;
  CUcontext building_ = nullptr;  ///< In which context the builder is at work.
  bool stop_ = false;
  uint32_t told_ = 0;
  std::thread builder_;
};

}  // namespace hawser::server::cuda_backend

#endif  // HAWSER_SERVER_BACKENDS_CUDA_SLICED_KERNELS_H_
