// SPDX-License-Identifier: Apache-2.0
// The thread on which a driver compiles and loads modules: that may take seconds, and other threads of the guest go on
// meanwhile.
//
// Threads: Post() and Drain() on the executor thread. Jobs run one after the other, in order, without the lock.
#ifndef HAWSER_SERVER_BACKENDS_CUDA_MODULE_LOADER_H_
#define HAWSER_SERVER_BACKENDS_CUDA_MODULE_LOADER_H_

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

#include "server/backends/cuda/driver_table.h"

namespace hawser::server::cuda_backend {

class ModuleLoader {
 public:
  explicit ModuleLoader(const DriverTable* driver) : driver_(driver) {}
  /// Finishes the job at work and drops the others.
  ~ModuleLoader();
  ModuleLoader(const ModuleLoader&) = delete;
  ModuleLoader& operator=(const ModuleLoader&) = delete;

  /// Runs `job` with that context current; null: with whichever. The thread begins with the first job.
  void Post(CUcontext context, std::function<void()> job);
  /// Waits until no job is left.
  void Drain();

 private:
  struct Job {
    CUcontext context = nullptr;
    std::function<void()> run;
  };

  void Run();

  const DriverTable* const driver_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> jobs_;
  bool busy_ = false;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace hawser::server::cuda_backend

#endif  // HAWSER_SERVER_BACKENDS_CUDA_MODULE_LOADER_H_
