// SPDX-License-Identifier: Apache-2.0
// The state of running warps and blocks. A block belongs to one thread at a time (handed over under the launch's lock),
// so nothing here is locked; what blocks share lies in LaunchState.
#ifndef HAWSER_SOFTCUDA_EXEC_WARP_H_
#define HAWSER_SOFTCUDA_EXEC_WARP_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <vector>

#include "softcuda/exec/image.h"
#include "softcuda/exec/launch.h"
#include "softcuda/exec/placement.h"

namespace hawser::exec {

class Block;
class Cluster;

/// Generic addresses of shared and local memory: two windows in a reserved part of the address space that no
/// allocation can have. Offset in the window = address in the space.
struct Windows {
  static constexpr uint64_t kSize = uint64_t{1} << 28;  // Of each.
  static uint64_t Shared();
  static uint64_t Local();
};

/// Bytes that only grow, aligned to 64.
class Buffer {
 public:
  Buffer() = default;
  ~Buffer();
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  /// Zeroed when it has to be allocated anew. False when the host is out of memory. They begin `offset` bytes into a
  /// page, a multiple of 64 that is the same in each call.
  bool Reserve(size_t bytes, size_t offset = 0);
  char* data() const { return memory_ + offset_; }
  size_t size() const { return size_ - offset_; }

 private:
  char* memory_ = nullptr;
  size_t size_ = 0;
  size_t offset_ = 0;
};

struct SiteCache {
  uint64_t begin = 1;  ///< Empty.
  uint64_t end = 0;
  bool writable = false;
};

/// One launch, shared by all threads that run its blocks.
struct LaunchState {
  const Program* program = nullptr;
  const Image* image = nullptr;
  const Code* kernel = nullptr;
  const KernelInfo* info = nullptr;
  const LaunchConfig* config = nullptr;
  std::vector<uint8_t> parameters;
  uint32_t threads = 0;  ///< Per block.
  uint32_t warps = 0;
  uint32_t shared_bytes = 0;
  uint32_t dynamic_base = 0;  ///< Where dynamic shared memory begins.
  uint32_t local_bytes = 0;   ///< Per thread.
  uint64_t clusters = 0;
  uint32_t workspace[4] = {16, 0, 0, 0};  ///< Of cooperative groups: size, then the grid barrier's word.
  std::atomic<bool> stop{false};
  std::mutex mutex;  ///< Guards fault.
  Fault fault;
};

/// An activation of a function by some lanes of a warp.
struct Frame {
  const Code* code = nullptr;
  Frame* parent = nullptr;
  const Insn* call = nullptr;  ///< In the parent's code.
  uint32_t return_pc = 0;
  uint32_t lanes = 0;  ///< That have not returned.
  uint32_t depth = 0;
  uint32_t local_base = 0;  ///< Offset in each lane's local memory.
  Buffer registers;
};

enum class GroupState : uint8_t { kReady, kBarrier, kWarpSync };

inline constexpr uint8_t kClusterBarrier = 16;

/// Lanes of a warp that are at the same place.
struct Group {
  Frame* frame = nullptr;
  uint32_t pc = 0;
  uint32_t mask = 0;
  GroupState state = GroupState::kReady;
  bool pass = false;    ///< Execute the warp-wide instruction at pc with the lanes that are here.
  uint8_t barrier = 0;  ///< Of the block's 16, or kClusterBarrier.
  uint64_t stamp = 0;   ///< When it last ran.
};

enum class Turn : uint8_t { kDone, kBlocked, kExpired, kFault };

class Warp {
 public:
  Warp() = default;
  Warp(const Warp&) = delete;
  Warp& operator=(const Warp&) = delete;

  void Setup(Block* block, uint32_t index);
  void Start();
  /// Runs until all lanes are done or blocked, a fault, or the turn's budget is used up.
  Turn Run();
  bool Runnable() const;
  bool Done() const { return alive_ == 0; }

  // For handlers.
  // Always inlined: these are compiled once per instruction set, and the linker must not mix the copies.
  template <typename T>
  [[gnu::always_inline]] T* At(const Slot& slot) const {
    return reinterpret_cast<T*>((reinterpret_cast<uint64_t>(regs_) & slot.frame_mask) + slot.value);
  }
  [[gnu::always_inline]] uint32_t& Pred(uint32_t offset) const { return *reinterpret_cast<uint32_t*>(regs_ + offset); }
  /// -1 or 0 per lane.
  [[gnu::always_inline]] const int32_t* On(uint32_t mask) {
    if (mask != on_mask_) Expand(mask);
    return on_.data();
  }
  uint64_t Read(const Slot& slot, uint32_t width, uint32_t lane) const;
  /// The address in a register of `width` bytes, and so far behind it. One of four bytes wraps around.
  uint64_t ReadAddress(const Slot& slot, uint32_t width, uint32_t lane, uint64_t offset) const {
    const uint64_t address = Read(slot, width, lane) + offset;
    return width == 4 ? static_cast<uint32_t>(address) : address;
  }
  void Write(const Slot& slot, uint32_t width, uint32_t lane, uint64_t value) const;

  /// Host address of [address, address + size) of `space` for a lane, or null after raising a fault.
  char* Resolve(const Insn& insn, ptx::Space space, uint64_t address, uint32_t size, bool write, uint32_t lane);
  void Raise(const Insn& insn, Fault::Kind kind, uint32_t lane, uint64_t address = 0, uint32_t size = 0,
             bool write = false, std::string message = {});
  [[gnu::always_inline]] bool faulted() const { return fault_; }

  Block& block() const { return *block_; }
  LaunchState& launch() const;
  uint32_t index() const { return index_; }
  uint32_t alive() const { return alive_; }
  uint32_t active() const { return active_; }
  uint32_t frame_local_base() const { return current_->local_base; }
  Frame& current_frame() const { return *current_; }
  [[gnu::always_inline]] void SawStrong() { weight_ = kStrongWeight; }
  [[gnu::always_inline]] void SawAtomic() {
    if (weight_ < kAtomicWeight) weight_ = kAtomicWeight;
  }

  alignas(64) std::array<uint32_t, kLanes> tid_x, tid_y, tid_z;
  std::array<uint32_t, kLanes> stack_pointer;  ///< Of each lane: first free byte of local memory (alloca moves it).
  SiteCache* sites = nullptr;
  char* shared = nullptr;
  uint32_t shared_bytes = 0;
  std::vector<Group> groups;     ///< Disjoint masks; their union is alive().
  uint32_t cluster_arrived = 0;  ///< Lanes that have arrived at the cluster's barrier, which is not complete yet.

 private:
  static constexpr uint32_t kStrongWeight = 4096;
  static constexpr uint32_t kAtomicWeight = 64;
  static constexpr uint64_t kRotateBudget = 1u << 16;
  static constexpr uint64_t kTurnBudget = 1u << 18;

  friend class Block;
  void Expand(uint32_t mask);
  int Select(bool oldest);
  void Execute();
  void SaveCurrent();
  uint32_t ComputeStop() const;
  void MergeHere();
  bool LowerExists() const;
  bool Branch(const Insn& insn, uint32_t taken);
  bool Jump(uint32_t target, bool backward);
  void Split(uint32_t pc, uint32_t mask);
  bool BranchIndexed(const Insn& insn, uint32_t mask);
  bool Call(const Insn& insn, uint32_t mask);
  bool Return(uint32_t mask);
  bool Exit(uint32_t mask);
  bool Barrier(const Insn& insn, uint32_t mask);
  bool ClusterBarrier(bool arrives, uint32_t mask);
  bool WarpSync(const Insn& insn, uint32_t mask);
  void ReleaseParked();
  /// Where the registers of the next frame begin in a page: those of neighbouring warps and frames not at the same
  /// place.
  size_t FrameOffset() const { return (size_t{index_} * 7 + frames_.size() * 3) * 64 % kPage; }
  Frame* NewFrame(const Code& code);
  void FreeFrame(Frame* frame);
  void RemoveCurrent();

  Block* block_ = nullptr;
  uint32_t index_ = 0;
  uint32_t existing_ = 0;  ///< Lanes that have a thread.
  uint32_t alive_ = 0;
  char* regs_ = nullptr;
  // The running group; groups[now_] holds stale pc and mask meanwhile.
  int now_ = -1;
  Frame* current_ = nullptr;
  uint32_t pc_ = 0;
  uint32_t active_ = 0;
  uint32_t stop_ = kNoSlot;
  bool fault_ = false;
  bool boosted_ = false;
  bool yielded_ = false;
  uint32_t weight_ = 1;
  uint64_t rotate_ = 0;
  uint64_t turn_ = 0;
  uint64_t clock_ = 0;
  uint32_t on_mask_ = 0;
  alignas(64) std::array<int32_t, kLanes> on_{};
  std::vector<std::unique_ptr<Frame>> frames_;
  std::vector<Frame*> free_frames_;
  size_t frame_bytes_ = 0;
};

class Block {
 public:
  Block(LaunchState* launch, Cluster* cluster, uint32_t rank);
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  bool Allocate();
  void Start(const std::array<uint32_t, 3>& place);
  /// kDone, kFault, or kExpired: waiting for something outside, run others first. kBlocked: for other blocks of the
  /// cluster.
  Turn Run();
  /// Whether anybody could run now.
  bool Ready() const;
  /// Everybody waits, and nobody can come.
  void RaiseDeadlock();
  char* shared() const { return shared_.data(); }
  /// `lanes` of a warp arrive; the barrier may complete. True: it completed (the arriving lanes go on too).
  void Arrive(uint32_t id, Warp& warp, uint32_t lanes, uint32_t expected, const BarrierFacts& facts, uint32_t predicate,
              bool blocks);
  /// Whether all living threads have arrived at the barrier of the cluster.
  bool AllArrived() const;
  void LeaveClusterBarrier();
  /// Threads have exited: fewer are expected.
  void Reconsider();

  LaunchState& launch;
  Cluster& cluster;
  const uint32_t rank;  ///< In the cluster.
  std::array<uint32_t, 3> position{};
  uint64_t number = 0;
  uint32_t alive_threads = 0;
  Buffer local;

 private:
  struct BarrierState {
    uint32_t arrivals = 0;  ///< Threads, whole warps rounded up.
    uint32_t expected = 0;  ///< 0: all threads that live.
    uint32_t popc = 0;
    bool all = true, any = false;
    bool used = false;
  };
  bool Complete(const BarrierState& barrier) const;
  void Release(uint32_t id);

  using Warps = std::vector<Warp, PageAllocator<Warp>>;
  Warps warps_;
  std::array<BarrierState, 16> barriers_{};
  Buffer shared_;
  std::vector<SiteCache, PageAllocator<SiteCache>> sites_;
};

inline LaunchState& Warp::launch() const { return block_->launch; }

inline uint64_t Warp::Read(const Slot& slot, uint32_t width, uint32_t lane) const {
  switch (width) {
    case 1:
      return At<uint8_t>(slot)[lane];
    case 2:
      return At<uint16_t>(slot)[lane];
    case 4:
      return At<uint32_t>(slot)[lane];
    default:
      return At<uint64_t>(slot)[lane];
  }
}

inline void Warp::Write(const Slot& slot, uint32_t width, uint32_t lane, uint64_t value) const {
  switch (width) {
    case 1:
      At<uint8_t>(slot)[lane] = static_cast<uint8_t>(value);
      break;
    case 2:
      At<uint16_t>(slot)[lane] = static_cast<uint16_t>(value);
      break;
    case 4:
      At<uint32_t>(slot)[lane] = static_cast<uint32_t>(value);
      break;
    default:
      At<uint64_t>(slot)[lane] = value;
  }
}

}  // namespace hawser::exec

#endif  // HAWSER_SOFTCUDA_EXEC_WARP_H_
