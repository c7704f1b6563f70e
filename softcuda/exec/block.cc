// SPDX-License-Identifier: Apache-2.0
// A block: its warps in turns on one thread, its barriers, its memory; and the address checks of its threads.
#include <sys/mman.h>

#include <algorithm>
#include <bit>

#include "softcuda/exec/cluster.h"
#include "softcuda/exec/warp.h"

namespace hawser::exec {
namespace {

constexpr size_t kMapFrom = PageRegion::kLargest;  // Larger buffers come from mmap: untouched pages cost nothing.

uint64_t ReserveWindows() {
  void* place = mmap(nullptr, 3 * Windows::kSize, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (place == MAP_FAILED) return uint64_t{0x5aa5} << 48;  // Not canonical, so never anybody's memory.
  const auto address = reinterpret_cast<uint64_t>(place);
  return (address + Windows::kSize - 1) & ~(Windows::kSize - 1);
}

uint64_t WindowBase() {
  static const uint64_t base = ReserveWindows();
  return base;
}

}  // namespace

uint64_t Windows::Shared() { return WindowBase(); }
uint64_t Windows::Local() { return WindowBase() + kSize; }

Buffer::~Buffer() {
  if (memory_ == nullptr) return;
  if (size_ >= kMapFrom) {
    munmap(memory_, size_);
  } else {
    PageRegion::Get().Give(memory_, size_);
  }
}

bool Buffer::Reserve(size_t bytes, size_t offset) {
  if (bytes + offset <= size_) return true;
  bytes = (bytes + offset + kPage - 1) & ~(kPage - 1);
  char* memory = nullptr;
  if (bytes >= kMapFrom) {
    void* place = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (place == MAP_FAILED) return false;
    memory = static_cast<char*>(place);
  } else {
    memory = PageRegion::Get().Take(bytes);
    if (memory == nullptr) return false;
    std::memset(memory, 0, bytes);
  }
  this->~Buffer();
  memory_ = memory;
  size_ = bytes;
  offset_ = offset;
  return true;
}

Block::Block(LaunchState* state, Cluster* whole, uint32_t number_in_it)
    : launch(*state), cluster(*whole), rank(number_in_it) {}

bool Block::Allocate() {
  sites_.resize(launch.image->sites + 1);
  if (!shared_.Reserve(std::max<uint32_t>(launch.shared_bytes, 64))) return false;
  if (launch.local_bytes > 0) {
    if (!local.Reserve((size_t{launch.local_bytes} + 64) * launch.warps * kLanes)) return false;
  }
  Warps warps(launch.warps);
  warps_.swap(warps);
  for (uint32_t i = 0; i < launch.warps; ++i) {
    Warp& warp = warps_[i];
    warp.Setup(this, i);
    warp.sites = sites_.data();
    warp.shared = shared_.data();
    warp.shared_bytes = launch.shared_bytes;
  }
  return true;
}

void Block::Start(const std::array<uint32_t, 3>& place) {
  const auto& grid = launch.config->grid;
  position = place;
  number = position[0] + uint64_t{grid[0]} * (position[1] + uint64_t{grid[1]} * position[2]);
  alive_threads = launch.threads;
  barriers_.fill({});
  if (launch.shared_bytes > 0) std::memset(shared_.data(), 0, launch.shared_bytes);
  for (Warp& warp : warps_) warp.Start();
}

Turn Block::Run() {
  while (true) {
    bool progress = false;
    bool expired = false;
    for (Warp& warp : warps_) {
      if (warp.Done()) continue;
      if (!warp.Runnable()) continue;
      switch (warp.Run()) {
        case Turn::kFault:
          return Turn::kFault;
        case Turn::kExpired:
          expired = true;
          if (launch.stop.load(std::memory_order_relaxed) ||
              (launch.config->cancel != nullptr && launch.config->cancel->load(std::memory_order_relaxed))) {
            return Turn::kExpired;
          }
          break;
        default:
          progress = true;
      }
    }
    if (alive_threads == 0) return Turn::kDone;
    if (expired && !progress) return Turn::kExpired;
    if (!expired && !progress) break;
    if (progress && !expired && !Ready()) break;
  }
  if (cluster.size() > 1) return Turn::kBlocked;
  RaiseDeadlock();
  return Turn::kFault;
}

bool Block::Ready() const {
  return std::any_of(warps_.begin(), warps_.end(), [](const Warp& w) {
    return std::any_of(w.groups.begin(), w.groups.end(), [](const Group& g) { return g.state == GroupState::kReady; });
  });
}

void Block::RaiseDeadlock() {
  for (Warp& warp : warps_) {
    for (const Group& g : warp.groups) {
      if (g.mask == 0) continue;
      warp.current_ = g.frame;
      warp.Raise(g.frame->code->insns[g.pc], Fault::Kind::kDeadlock, static_cast<uint32_t>(std::countr_zero(g.mask)), 0,
                 0, false, "all threads of the block wait, and what they wait for cannot come");
      return;
    }
  }
}

bool Block::Complete(const BarrierState& barrier) const {
  return barrier.used && barrier.arrivals > 0 &&
         barrier.arrivals >= (barrier.expected != 0 ? barrier.expected : alive_threads);
}

void Block::Arrive(uint32_t id, Warp& warp, uint32_t lanes, uint32_t expected, const BarrierFacts& facts,
                   uint32_t predicate, bool blocks) {
  (void)blocks;
  (void)facts;
  BarrierState& barrier = barriers_[id];
  barrier.used = true;
  if (expected != 0) barrier.expected = expected;
  auto arrived = static_cast<uint32_t>(std::popcount(lanes));
  if (expected != 0) {
    // Counts speak of whole warps: the last living lanes of a warp bring its missing lanes along.
    uint32_t waiting = lanes;
    for (const Group& g : warp.groups) {
      if (g.state == GroupState::kBarrier && g.barrier == id) waiting |= g.mask;
    }
    if (waiting == warp.alive()) arrived += kLanes - static_cast<uint32_t>(std::popcount(waiting));
  }
  barrier.arrivals += arrived;
  barrier.popc += static_cast<uint32_t>(std::popcount(predicate & lanes));
  barrier.all = barrier.all && (predicate & lanes) == lanes;
  barrier.any = barrier.any || (predicate & lanes) != 0;
  if (Complete(barrier)) Release(id);
}

void Block::Release(uint32_t id) {
  const BarrierState barrier = barriers_[id];
  barriers_[id] = {};
  for (Warp& warp : warps_) {
    for (Group& g : warp.groups) {
      if (g.state != GroupState::kBarrier || g.barrier != id) continue;
      g.state = GroupState::kReady;
      const Insn& insn = g.frame->code->insns[g.pc++];
      const BarrierFacts& facts = insn.extra->barrier;
      char* registers = g.frame->registers.data();
      if (facts.kind == BarrierFacts::Kind::kRedPopc) {
        auto* target = reinterpret_cast<uint32_t*>(registers + insn.d.value);
        for (uint32_t lane = 0; lane < kLanes; ++lane) {
          if ((g.mask >> lane & 1) != 0) target[lane] = barrier.popc;
        }
      } else if (facts.result_predicate != kNoSlot) {
        auto& bits = *reinterpret_cast<uint32_t*>(registers + facts.result_predicate);
        const bool value = facts.kind == BarrierFacts::Kind::kRedAnd ? barrier.all : barrier.any;
        bits = value ? bits | g.mask : bits & ~g.mask;
      }
    }
  }
}

bool Block::AllArrived() const {
  return std::all_of(warps_.begin(), warps_.end(), [](const Warp& w) { return (w.alive() & ~w.cluster_arrived) == 0; });
}

void Block::LeaveClusterBarrier() {
  for (Warp& warp : warps_) {
    warp.cluster_arrived = 0;
    for (Group& g : warp.groups) {
      if (g.state != GroupState::kBarrier || g.barrier != kClusterBarrier) continue;
      g.state = GroupState::kReady;
      ++g.pc;
    }
  }
}

void Block::Reconsider() {
  cluster.CompleteBarrier();
  for (uint32_t id = 0; id < barriers_.size(); ++id) {
    if (barriers_[id].used && barriers_[id].expected == 0 && Complete(barriers_[id])) Release(id);
  }
}

char* Warp::Resolve(const Insn& insn, ptx::Space space, uint64_t address, uint32_t size, bool write, uint32_t lane) {
  if ((address & (size - 1)) != 0 && std::has_single_bit(size)) {
    Raise(insn, Fault::Kind::kMisaligned, lane, address, size, write);
    return nullptr;
  }
  bool from_window = false;
  if (space == ptx::Space::kNone) {
    const uint64_t window = address - Windows::Shared();
    if (window < Windows::kSize) {
      space = ptx::Space::kShared;
      address = window;
      from_window = true;
    } else if (window < 2 * Windows::kSize) {
      space = ptx::Space::kLocal;
      address = window - Windows::kSize;
      from_window = true;
    }
  }
  if (space == ptx::Space::kShared) {
    // cvta of a 32-bit shared address may have been skipped by going through the generic window: both forms name it.
    const uint64_t offset =
        !from_window && address - Windows::Shared() < Windows::kSize ? address - Windows::Shared() : address;
    if (offset < shared_bytes && size <= shared_bytes - offset) return shared + offset;
    if (block_->cluster.size() > 1) {
      if (char* place = block_->cluster.Place(offset, size); place != nullptr) return place;
    }
    Raise(insn, Fault::Kind::kIllegalAddress, lane, address, size, write,
          "outside the block's " + std::to_string(shared_bytes) + " bytes of shared memory");
    return nullptr;
  }
  if (space == ptx::Space::kLocal) {
    const uint32_t limit = launch().local_bytes;
    if (address < limit && size <= limit - address) {
      return block_->local.data() + (size_t{index_} * kLanes + lane) * (size_t{limit} + 64) + address;
    }
    Raise(insn, Fault::Kind::kIllegalAddress, lane, address, size, write,
          "outside the thread's " + std::to_string(limit) + " bytes of local memory");
    return nullptr;
  }
  const auto range = launch().config->memory->Find(address);
  if (range && size <= range->end - address && (range->writable || !write)) {
    SiteCache& cache = sites[insn.site];
    cache.begin = range->begin;
    cache.end = range->end;
    cache.writable = range->writable;
    return reinterpret_cast<char*>(address);
  }
  if (!range) {
    const auto& parameters = launch().parameters;
    const auto first = reinterpret_cast<uint64_t>(parameters.data());
    if (!write && address - first < parameters.size() && size <= parameters.size() - (address - first)) {
      return reinterpret_cast<char*>(address);
    }
    const auto workspace = reinterpret_cast<uint64_t>(launch().workspace);
    if (launch().config->cooperative && address - workspace < sizeof(launch().workspace) &&
        size <= sizeof(launch().workspace) - (address - workspace)) {
      return reinterpret_cast<char*>(address);
    }
  }
  Raise(insn, Fault::Kind::kIllegalAddress, lane, address, size, write,
        range ? (size > range->end - address ? "across the end of an allocation" : "to read-only memory") : "");
  return nullptr;
}

}  // namespace hawser::exec
