// SPDX-License-Identifier: Apache-2.0
// Functions of the application that run in stream order: the server asks for one, its stream waits, the function runs
// on the session's callback thread, the server hears that it is done.
//
// Threading: thread-safe; one lock, not held while a function runs. It is taken before the callback thread's.
#ifndef HAWSER_INTERPOSER_CUDA_HOST_FUNCTIONS_H_
#define HAWSER_INTERPOSER_CUDA_HOST_FUNCTIONS_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "interposer/core/session.h"
#include "interposer/cuda/driver_api.h"
#include "interposer/cuda/graph_memory.h"
#include "interposer/cuda/landing.h"
#include "proto/cuda/messages.h"

namespace hawser::cu {

class HostFunctions {
 public:
  static HostFunctions& Get();

  enum class Calls {
    kOnce,       ///< At most once: not behind an error.
    kAlways,     ///< Once, with the error if there is one, be it the session's end (cuStreamAddCallback).
    kOften,      ///< Any number of times until Forget(): a graph's node.
    kOurs,       ///< As kAlways, and no function of the application: does not wait for those of other streams.
    kOursOften,  ///< As kOften, likewise.
  };

  /// Puts `function(status)` into the command's stream; it runs when `before` has landed too.
  CUresult Enqueue(StreamCommand& command, std::function<void(CUresult)> function, Landings before, Calls calls);
  /// `before`: what must have landed before `function(status)` runs. Returns its name.
  uint64_t Add(std::function<void(CUresult)> function, Landings before, Calls calls);
  /// The server will be told of it; until then it is the caller's to say that it does not run (Forget()).
  void Sent(uint64_t callback);
  void Forget(uint64_t callback);
  /// Of a graph's node: what is fetched before and filled behind each run from now on, in launches of this executable
  /// graph.
  void SetMemory(uint64_t callback, std::shared_ptr<const FunctionMemory> memory, wire::Id executable);
  /// Whether that is what it does already. If not: for launches of which executable graph it does something else, in
  /// `instead` (null: of none).
  bool HasMemory(uint64_t callback, const FunctionMemory& memory, wire::Id* instead);
  /// Some function that runs once has not: its stream stands still, perhaps for long.
  bool pending() const { return pending_.load(std::memory_order_relaxed) != 0; }

  /// The server asks for it. Within delivery.
  void Run(const cuda::RunHostFunction& notice);
  /// The session is over: whoever is always called is told of it, nothing else runs any more. Within delivery.
  void Abandon();

 private:
  struct Entry {
    std::function<void(CUresult)> function;
    Landings before;
    Calls calls;
    guest::Session* session;
    std::shared_ptr<const FunctionMemory> memory;  // Of a graph's node.
    wire::Id executable;                           // For whose launches.
    bool sent = false;                             // The application knows it to be under way.
    bool asked = false;                            // The server's wish to run it is on its way to the callback thread.
  };

  static bool IsNode(Calls calls) { return calls == Calls::kOften || calls == Calls::kOursOften; }
  static bool MustRun(const Entry& entry) { return entry.calls == Calls::kAlways || entry.calls == Calls::kOurs; }
  static void Post(const Entry& entry, std::function<void()> run);
  static void Tell(const std::shared_ptr<Entry>& entry);

  std::atomic<uint32_t> pending_{0};
  std::mutex mutex_;
  uint64_t next_ = 1;
  std::unordered_map<uint64_t, std::shared_ptr<Entry>> entries_;
};

}  // namespace hawser::cu

#endif  // HAWSER_INTERPOSER_CUDA_HOST_FUNCTIONS_H_
