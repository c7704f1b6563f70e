// SPDX-License-Identifier: Apache-2.0
// The threads that run blocks.
//
// Every Run is a Job, a source of blocks: numbers not yet started, and blocks put aside. The calling thread takes
// blocks of its own job only; the engine's threads go round over all jobs. A block in progress belongs to the thread
// that took it. Locks: Engine::Impl::mutex_ guards the list of jobs, Job::mutex the blocks put aside and the counts.
// Never both at once.
#include <algorithm>
#include <condition_variable>
#include <deque>
#include <functional>
#include <list>
#include <thread>

#include "softcuda/exec/cluster.h"
#include "softcuda/exec/launch.h"
#include "softcuda/exec/warp.h"

namespace hawser::exec {
namespace {

constexpr int kBlocksPerVisit = 64;  // Of an engine thread to a job, before it looks at the others.

struct Job {
  LaunchState state;
  std::atomic<uint64_t> next{0};
  std::atomic<uint64_t> finished{0};
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::unique_ptr<Cluster>> aside;
  std::vector<std::unique_ptr<Cluster>> spare;
  uint32_t resident = 0;
  uint32_t limit = 1;
  int visitors = 0;  ///< Engine threads at work here. Under the engine's mutex.

  bool Stopped() const {
    return state.stop.load(std::memory_order_relaxed) ||
           (state.config->cancel != nullptr && state.config->cancel->load(std::memory_order_relaxed));
  }
  bool Done() const { return Stopped() || finished.load(std::memory_order_acquire) == state.clusters; }

  void OutOfMemory() {
    const std::lock_guard lock(state.mutex);
    if (state.fault.kind == Fault::Kind::kNone) {
      state.fault.kind = Fault::Kind::kOutOfMemory;
      state.fault.kernel = state.kernel->name;
      state.fault.message = "no host memory for the state of a block";
    }
    state.stop.store(true, std::memory_order_relaxed);
  }

  /// A block to run: a new one while there are any and few enough are alive, else one that was put aside. Null: nothing
  /// here.
  std::unique_ptr<Cluster> Take() {
    std::unique_ptr<Cluster> block;
    {
      const std::lock_guard lock(mutex);
      if (resident < limit && next.load(std::memory_order_relaxed) < state.clusters) {
        ++resident;
        if (!spare.empty()) {
          block = std::move(spare.back());
          spare.pop_back();
        }
      } else if (!aside.empty()) {
        block = std::move(aside.front());
        aside.pop_front();
        return block;
      } else {
        return nullptr;
      }
    }
    if (block == nullptr) {
      block = std::make_unique<Cluster>(&state);
      if (!block->Allocate()) {
        OutOfMemory();
        return nullptr;
      }
    }
    if (!StartNext(*block)) {
      Return(std::move(block));
      return nullptr;
    }
    return block;
  }

  bool StartNext(Cluster& block) {
    const uint64_t number = next.fetch_add(1, std::memory_order_relaxed);
    if (number >= state.clusters) return false;
    block.Start(number);
    return true;
  }

  void Return(std::unique_ptr<Cluster> block) {
    const std::lock_guard lock(mutex);
    --resident;
    spare.push_back(std::move(block));
  }

  /// True: it is the only one, so whoever it waits for runs elsewhere.
  bool PutAside(std::unique_ptr<Cluster> block) {
    bool alone = false;
    {
      const std::lock_guard lock(mutex);
      alone = aside.empty();
      aside.push_back(std::move(block));
    }
    changed.notify_one();
    return alone;
  }

  /// Runs blocks: until there is nothing to take, or `visit` blocks, or one had to be put aside. False: nothing to
  /// take.
  bool Work(int visit) {
    while (!Stopped()) {
      std::unique_ptr<Cluster> block = Take();
      if (block == nullptr) return false;
      while (true) {
        const Turn turn = block->Run();
        if (turn == Turn::kExpired && !Stopped()) {
          if (PutAside(std::move(block))) std::this_thread::yield();
          if (visit > 0) return true;
          break;
        }
        const bool ended = turn == Turn::kDone;
        if (turn == Turn::kFault && !state.stop.load(std::memory_order_relaxed)) OutOfMemory();  // No frame for a warp.
        if (ended) finished.fetch_add(1, std::memory_order_acq_rel);
        if (!ended || Stopped() || (visit > 0 && --visit == 0) || !StartNext(*block)) {
          const bool more = visit != 0;
          Return(std::move(block));
          if (Done()) changed.notify_all();
          if (!more) return true;
          break;
        }
      }
    }
    changed.notify_all();
    return false;
  }
};

std::string CheckLaunch(const Program& program, const LaunchConfig& config) {
  if (!program.bound()) return "the program is not bound";
  if (config.memory == nullptr) return "no address space";
  if (config.kernel < 0 || static_cast<size_t>(config.kernel) >= program.kernels().size()) return "no such kernel";
  const KernelInfo& info = program.kernels()[static_cast<size_t>(config.kernel)];
  const auto& grid = config.grid;
  const auto& block = config.block;
  if (grid[0] == 0 || grid[1] == 0 || grid[2] == 0 || grid[0] > 0x7fffffff || grid[1] > 65535 || grid[2] > 65535) {
    return "a grid of a size that is not allowed";
  }
  const uint64_t threads = uint64_t{block[0]} * block[1] * block[2];
  if (block[0] == 0 || block[1] == 0 || block[2] == 0 || block[0] > 1024 || block[1] > 1024 || block[2] > 64 ||
      threads > std::min(info.max_threads, config.device.max_threads_per_block)) {
    return "a block of " + std::to_string(threads) + " threads is not allowed";
  }
  if (info.required_threads[0] != 0 && info.required_threads != block) return "the kernel requires another block shape";
  const auto& cluster = config.cluster;
  for (size_t i = 0; i < 3; ++i) {
    if (cluster[i] == 0 || cluster[i] > Cluster::kMostBlocks || grid[i] % cluster[i] != 0) {
      return "a grid that is not made of whole clusters";
    }
  }
  const uint32_t together = cluster[0] * cluster[1] * cluster[2];
  if (together > Cluster::kMostBlocks || (info.max_cluster != 0 && together > info.max_cluster)) {
    return "clusters of " + std::to_string(together) + " blocks are too large";
  }
  if (together > 1 && info.blocks_are_clusters) return "a kernel whose launches count clusters does not run here";
  if (info.required_cluster[0] != 0 && info.required_cluster != cluster) return "the kernel requires other clusters";
  const uint64_t shared = uint64_t{info.static_shared_bytes} + config.dynamic_shared_bytes;
  if (shared > config.device.max_shared_bytes) return std::to_string(shared) + " bytes of shared memory are too many";
  if (together > 1 && shared > Cluster::kOffsetMask) return "too much shared memory for blocks of a cluster";
  if (config.parameters.size() < info.parameter_bytes) return "the parameters are shorter than the kernel's";
  const uint64_t blocks = uint64_t{grid[0]} * grid[1] * grid[2];
  if (config.cooperative && blocks > config.device.resident_blocks) {
    return "a cooperative launch of " + std::to_string(blocks) + " blocks does not fit";
  }
  if (config.device.multiprocessors == 0) return "a device without multiprocessors";
  return {};
}

void Fill(LaunchState* state, const Program& program, const LaunchConfig& config) {
  state->program = &program;
  state->image = &program.image();
  state->config = &config;
  state->info = &program.kernels()[static_cast<size_t>(config.kernel)];
  const auto code = static_cast<size_t>(state->image->kernel_codes[static_cast<size_t>(config.kernel)]);
  state->kernel = &state->image->codes[code];
  state->parameters.assign(config.parameters.begin(), config.parameters.begin() + state->info->parameter_bytes);
  // Never empty, so that its address is one; readable a little beyond for vector loads of padded parameters.
  state->parameters.resize((state->parameters.size() + 31) / 16 * 16);
  state->threads = config.block[0] * config.block[1] * config.block[2];
  state->warps = (state->threads + kLanes - 1) / kLanes;
  const uint32_t align = state->image->dynamic_alignment;
  state->dynamic_base = (state->info->static_shared_bytes + align - 1) / align * align;
  state->shared_bytes = config.dynamic_shared_bytes > 0 ? state->dynamic_base + config.dynamic_shared_bytes
                                                        : state->info->static_shared_bytes;
  state->local_bytes = (state->info->local_bytes + 15) / 16 * 16;
  const bool calls = !state->kernel->callees.empty() || state->kernel->calls_indirect || state->kernel->uses_stack;
  if (calls) state->local_bytes += config.device.stack_bytes;
  const auto& cluster = config.cluster;
  state->clusters =
      uint64_t{config.grid[0] / cluster[0]} * (config.grid[1] / cluster[1]) * (config.grid[2] / cluster[2]);
}

}  // namespace

class Engine::Impl {
 public:
  Impl(unsigned threads, const std::function<void()>& begin) {
    for (unsigned i = 0; i < threads; ++i) {
      threads_.emplace_back([this, begin] {
        if (begin) begin();
        Serve();
      });
    }
  }

  ~Impl() {
    {
      const std::lock_guard lock(mutex_);
      leaving_ = true;
    }
    wake_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  Outcome Run(const Program& program, const LaunchConfig& config) {
    Outcome outcome;
    const std::string bad = CheckLaunch(program, config);
    if (!bad.empty()) {
      outcome.fault.kind = Fault::Kind::kBadLaunch;
      outcome.fault.message = bad;
      return outcome;
    }
    Job job;
    Fill(&job.state, program, config);
    const auto& cluster = config.cluster;
    job.limit = std::max(1u, config.device.resident_blocks / (cluster[0] * cluster[1] * cluster[2]));
    const bool shared = job.state.clusters > 1 && !threads_.empty();
    if (shared) Publish(&job);
    while (!job.Done()) {
      job.Work(-1);
      std::unique_lock lock(job.mutex);
      job.changed.wait_for(lock, std::chrono::milliseconds(20), [&] { return job.Done() || !job.aside.empty(); });
    }
    if (shared) Withdraw(&job);
    outcome.fault = std::move(job.state.fault);
    if (outcome.ok() && job.finished.load() != job.state.clusters) {
      outcome.fault.kind = Fault::Kind::kCancelled;
      outcome.fault.kernel = job.state.kernel->name;
    }
    return outcome;
  }

 private:
  void Publish(Job* job) {
    {
      const std::lock_guard lock(mutex_);
      jobs_.push_back(job);
    }
    if (job->state.clusters > 2) {
      wake_.notify_all();
    } else {
      wake_.notify_one();
    }
  }

  void Withdraw(Job* job) {
    std::unique_lock lock(mutex_);
    jobs_.remove(job);
    idle_.wait(lock, [&] { return job->visitors == 0; });
  }

  void Serve() {
    std::unique_lock lock(mutex_);
    size_t misses = 0;
    while (!leaving_) {
      if (jobs_.empty()) {
        wake_.wait(lock, [&] { return leaving_ || !jobs_.empty(); });
        misses = 0;
        continue;
      }
      if (misses >= jobs_.size()) {  // Nobody has anything to take: their blocks are in other hands.
        wake_.wait_for(lock, std::chrono::milliseconds(2));
        misses = 0;
        continue;
      }
      Job* job = jobs_.front();
      jobs_.splice(jobs_.end(), jobs_, jobs_.begin());
      ++job->visitors;
      lock.unlock();
      const bool worked = job->Work(kBlocksPerVisit);
      lock.lock();
      if (--job->visitors == 0) idle_.notify_all();
      misses = worked ? 0 : misses + 1;
    }
  }

  std::mutex mutex_;
  std::condition_variable wake_;
  std::condition_variable idle_;
  std::list<Job*> jobs_;
  bool leaving_ = false;
  std::vector<std::thread> threads_;
};

Engine::Engine(unsigned threads, std::function<void()> begin) : impl_(std::make_unique<Impl>(threads, begin)) {}
Engine::~Engine() = default;
Outcome Engine::Run(const Program& program, const LaunchConfig& config) { return impl_->Run(program, config); }

}  // namespace hawser::exec
