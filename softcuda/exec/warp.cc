// SPDX-License-Identifier: Apache-2.0
// Control flow of a warp: which lanes run next, divergence, reconvergence, calls.
//
// Rule: the deepest activation first, in it the lowest pc; lanes that meet become one group. A loop that may be waiting
// for lanes which this rule holds back is noticed by counting its back edges; then the group that has waited longest
// runs.
#include "softcuda/exec/warp.h"

#include <algorithm>
#include <bit>

#include "softcuda/exec/cluster.h"

namespace hawser::exec {
namespace {

constexpr size_t kMaxFrameBytes = size_t{64} << 20;  // Of all activations of a warp.
constexpr uint32_t kFrameCharge = 32;                // Local bytes per activation at least, so that recursion ends.

template <typename F>
void ForLanes(uint32_t mask, F&& f) {
  for (; mask != 0; mask &= mask - 1) f(static_cast<uint32_t>(std::countr_zero(mask)));
}

}  // namespace

void Warp::Setup(Block* block, uint32_t index) {
  block_ = block;
  index_ = index;
  const LaunchState& state = block->launch;
  const uint32_t first = index * kLanes;
  const uint32_t count = std::min(kLanes, state.threads - first);
  existing_ = count == kLanes ? kAllLanes : (1u << count) - 1;
  const auto& shape = state.config->block;
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    const uint32_t linear = first + lane;
    tid_x[lane] = linear % shape[0];
    tid_y[lane] = linear / shape[0] % shape[1];
    tid_z[lane] = linear / shape[0] / shape[1];
  }
  groups.reserve(kLanes);
}

void Warp::Start() {
  alive_ = existing_;
  cluster_arrived = 0;
  free_frames_.clear();
  for (auto& frame : frames_) FreeFrame(frame.get());
  Frame* root = NewFrame(*launch().kernel);
  fault_ = root == nullptr;
  if (fault_) return;
  root->parent = nullptr;
  root->call = nullptr;
  root->depth = 0;
  root->local_base = 0;
  root->lanes = alive_;
  stack_pointer.fill(root->code->local_bytes);
  groups.clear();
  Group group;
  group.frame = root;
  group.mask = alive_;
  groups.push_back(group);
  now_ = -1;
  boosted_ = false;
  rotate_ = 0;
  weight_ = 1;
}

void Warp::Expand(uint32_t mask) {
  on_mask_ = mask;
  for (uint32_t lane = 0; lane < kLanes; ++lane) on_[lane] = (mask & (1u << lane)) != 0 ? -1 : 0;
}

Frame* Warp::NewFrame(const Code& code) {
  for (size_t i = free_frames_.size(); i-- > 0;) {
    if (free_frames_[i]->code != &code) continue;
    Frame* frame = free_frames_[i];
    free_frames_.erase(free_frames_.begin() + static_cast<std::ptrdiff_t>(i));
    return frame;
  }
  if (frame_bytes_ + code.frame_bytes > kMaxFrameBytes && !frames_.empty()) return nullptr;
  auto frame = std::make_unique<Frame>();
  if (!frame->registers.Reserve(code.frame_bytes, FrameOffset())) return nullptr;
  frame_bytes_ += code.frame_bytes + sizeof(Frame);
  frame->code = &code;
  frames_.push_back(std::move(frame));
  return frames_.back().get();
}

void Warp::FreeFrame(Frame* frame) {
  frame->lanes = 0;
  free_frames_.push_back(frame);
}

bool Warp::Runnable() const {
  return std::any_of(groups.begin(), groups.end(), [](const Group& g) { return g.state != GroupState::kBarrier; });
}

int Warp::Select(bool oldest) {
  int best = -1;
  for (size_t i = 0; i < groups.size(); ++i) {
    const Group& g = groups[i];
    if (g.state != GroupState::kReady) continue;
    if (best < 0) {
      best = static_cast<int>(i);
      continue;
    }
    const Group& b = groups[static_cast<size_t>(best)];
    bool better = false;
    if (oldest) {
      better = g.stamp < b.stamp;
    } else if (g.frame->depth != b.frame->depth) {
      better = g.frame->depth > b.frame->depth;
    } else {
      better = g.pc < b.pc;
    }
    if (better) best = static_cast<int>(i);
  }
  now_ = best;
  if (best < 0) return best;
  Group& g = groups[static_cast<size_t>(best)];
  g.stamp = ++clock_;
  boosted_ = oldest;
  current_ = g.frame;
  pc_ = g.pc;
  active_ = g.mask;
  regs_ = current_->registers.data();
  stop_ = ComputeStop();
  return best;
}

uint32_t Warp::ComputeStop() const {
  uint32_t stop = kNoSlot;
  if (groups.size() == 1) return stop;
  for (size_t i = 0; i < groups.size(); ++i) {
    const Group& g = groups[i];
    if (static_cast<int>(i) == now_ || g.state != GroupState::kReady || g.frame != current_ || g.pc < pc_) continue;
    stop = std::min(stop, g.pc);
  }
  return stop;
}

bool Warp::LowerExists() const {
  for (size_t i = 0; i < groups.size(); ++i) {
    const Group& g = groups[i];
    if (static_cast<int>(i) != now_ && g.state == GroupState::kReady && g.frame == current_ && g.pc < pc_) return true;
  }
  return false;
}

void Warp::MergeHere() {
  for (size_t i = 0; i < groups.size();) {
    Group& g = groups[i];
    if (static_cast<int>(i) == now_ || g.state != GroupState::kReady || g.frame != current_ || g.pc != pc_) {
      ++i;
      continue;
    }
    active_ |= g.mask;
    const size_t last = groups.size() - 1;
    if (now_ == static_cast<int>(last)) now_ = static_cast<int>(i);
    groups[i] = groups[last];
    groups.pop_back();
  }
  groups[static_cast<size_t>(now_)].mask = active_;
  stop_ = ComputeStop();
}

void Warp::SaveCurrent() {
  Group& g = groups[static_cast<size_t>(now_)];
  g.frame = current_;
  g.pc = pc_;
  g.mask = active_;
}

void Warp::RemoveCurrent() {
  groups[static_cast<size_t>(now_)] = groups.back();
  groups.pop_back();
  now_ = -1;
}

void Warp::Split(uint32_t pc, uint32_t mask) {
  Group g;
  g.frame = current_;
  g.pc = pc;
  g.mask = mask;
  g.stamp = clock_;
  groups.push_back(g);
}

bool Warp::Jump(uint32_t target, bool backward) {
  pc_ = target;
  if (backward) {
    turn_ += weight_;
    rotate_ += weight_;
    weight_ = 1;
    if (turn_ >= kTurnBudget || (groups.size() > 1 && rotate_ >= kRotateBudget)) {
      SaveCurrent();
      return false;
    }
  }
  if (groups.size() == 1) return true;
  if (!boosted_ && LowerExists()) {
    SaveCurrent();
    return false;
  }
  stop_ = ComputeStop();
  return true;
}

bool Warp::Branch(const Insn& insn, uint32_t taken) {
  const uint32_t fall = active_ & ~taken;
  const uint32_t target = insn.target;
  if (taken == 0) {
    ++pc_;
    return true;
  }
  const bool backward = target <= pc_;
  if (fall == 0) return Jump(target, backward);
  if (backward) {
    Split(pc_ + 1, fall);
    active_ = taken;
    return Jump(target, true);
  }
  Split(target, taken);
  active_ = fall;
  return Jump(pc_ + 1, false);
}

bool Warp::BranchIndexed(const Insn& insn, uint32_t mask) {
  const uint32_t* index = At<uint32_t>(insn.a);
  const auto& targets = insn.extra->targets;
  const uint32_t fall = active_ & ~mask;
  const uint32_t here = pc_;
  if (fall != 0) Split(here + 1, fall);
  uint32_t rest = mask;
  bool backward = false;
  bool first = true;
  uint32_t first_mask = 0;
  uint32_t first_pc = 0;
  while (rest != 0) {
    const uint32_t value = index[std::countr_zero(rest)];
    uint32_t same = 0;
    ForLanes(rest, [&](uint32_t lane) { same |= index[lane] == value ? 1u << lane : 0; });
    rest &= ~same;
    if (value >= targets.size()) {
      Raise(insn, Fault::Kind::kInvalidPc, static_cast<uint32_t>(std::countr_zero(same)), 0, 0, false,
            "brx.idx with index " + std::to_string(value) + " of " + std::to_string(targets.size()) + " targets");
      return false;
    }
    backward = backward || targets[value] <= here;
    if (first) {
      first_mask = same;
      first_pc = targets[value];
      first = false;
    } else {
      Split(targets[value], same);
    }
  }
  active_ = first_mask;
  return Jump(first_pc, backward);
}

bool Warp::Call(const Insn& insn, uint32_t mask) {
  const CallFacts& facts = insn.extra->call;
  const Code* callee = facts.callee;
  if (callee == nullptr) {
    const uint64_t* pointers = At<uint64_t>(insn.a);
    const auto lane0 = static_cast<uint32_t>(std::countr_zero(mask));
    callee = launch().image->FunctionAt(pointers[lane0]);
    uint32_t same = 0;
    ForLanes(mask, [&](uint32_t lane) { same |= pointers[lane] == pointers[lane0] ? 1u << lane : 0; });
    bool matches = callee != nullptr && callee->parameters.size() == facts.arguments.size() &&
                   callee->results.size() == facts.results.size();
    for (size_t i = 0; matches && i < facts.arguments.size(); ++i) {
      matches = callee->parameters[i].size == facts.arguments[i].size;
    }
    for (size_t i = 0; matches && i < facts.results.size(); ++i)
      matches = callee->results[i].size == facts.results[i].size;
    if (!matches) {
      Raise(insn, Fault::Kind::kInvalidPc, lane0, pointers[lane0], 0, false,
            callee == nullptr ? "call through a pointer that is no function" : "call of a function of another type");
      return false;
    }
    if (same != mask) {
      Split(pc_, mask & ~same);  // The others call when these have returned.
      mask = same;
    }
  }
  uint32_t others = active_ & ~mask;
  for (const Group& g : groups) {
    if (&g != &groups[static_cast<size_t>(now_)]) others &= ~g.mask;
  }
  if (others != 0) Split(pc_ + 1, others);

  uint32_t base = 0;
  ForLanes(mask, [&](uint32_t lane) { base = std::max(base, stack_pointer[lane]); });
  base = (base + 15) & ~15u;
  const uint32_t need = std::max(callee->local_bytes, kFrameCharge);
  Frame* frame = uint64_t{base} + need > launch().local_bytes ? nullptr : NewFrame(*callee);
  if (frame == nullptr) {
    Raise(insn, Fault::Kind::kStackOverflow, static_cast<uint32_t>(std::countr_zero(mask)), 0, 0, false,
          "stack of " + std::to_string(launch().local_bytes) + " bytes per thread is used up");
    return false;
  }
  frame->parent = current_;
  frame->call = &insn;
  frame->return_pc = pc_ + 1;
  frame->lanes = mask;
  frame->depth = current_->depth + 1;
  frame->local_base = base;
  ForLanes(mask, [&](uint32_t lane) { stack_pointer[lane] = base + need; });
  char* inner = frame->registers.data();
  for (size_t i = 0; i < facts.arguments.size(); ++i) {
    const CallArgument& from = facts.arguments[i];
    const Formal& to = callee->parameters[i];
    const char* source = from.is_register ? At<char>(from.slot) : regs_ + from.area;
    if (to.size == 0 && to.is_register) {  // A predicate.
      *reinterpret_cast<uint32_t*>(inner + to.slot.value) = *reinterpret_cast<const uint32_t*>(source);
      continue;
    }
    std::memcpy(inner + (to.is_register ? to.slot.value : to.area), source, size_t{to.size} * kLanes);
    if (to.local == kNoSlot || to.size == 0) continue;
    ForLanes(mask, [&](uint32_t lane) {
      // Within `need`, so the first byte's place says where the others are; the whole is aligned as declared only.
      char* local = Resolve(insn, ptx::Space::kLocal, uint64_t{base} + to.local, 1, true, lane);
      if (local != nullptr) std::memcpy(local, source + size_t{lane} * to.size, to.size);
    });
  }
  current_ = frame;
  active_ = mask;
  pc_ = 0;
  regs_ = inner;
  stop_ = kNoSlot;
  rotate_ += 1;  // Recursion can be a loop too.
  turn_ += 1;
  return !fault_;
}

bool Warp::Return(uint32_t mask) {
  if (current_->parent == nullptr) return Exit(mask);
  Frame* frame = current_;
  Frame* parent = frame->parent;
  const CallFacts& facts = frame->call->extra->call;
  char* outer = parent->registers.data();
  const auto outside = [&](const Slot& slot) {
    return reinterpret_cast<char*>((reinterpret_cast<uint64_t>(outer) & slot.frame_mask) + slot.value);
  };
  for (size_t i = 0; i < facts.results.size(); ++i) {
    const CallArgument& to = facts.results[i];
    const Formal& from = frame->code->results[i];
    if (to.is_register && to.slot.frame_mask == 0) continue;  // _
    char* target = to.is_register ? outside(to.slot) : outer + to.area;
    const char* source = regs_ + (from.is_register ? from.slot.value : from.area);
    if (from.size == 0) {
      auto& bits = *reinterpret_cast<uint32_t*>(target);
      bits = (bits & ~mask) | (*reinterpret_cast<const uint32_t*>(source) & mask);
      continue;
    }
    ForLanes(mask, [&](uint32_t lane) {
      const char* value = source + size_t{lane} * from.size;
      if (from.local != kNoSlot) {  // It was written where its address said.
        value = Resolve(*frame->call, ptx::Space::kLocal, uint64_t{frame->local_base} + from.local, 1, false, lane);
        if (value == nullptr) return;
      }
      std::memcpy(target + size_t{lane} * from.size, value, from.size);
    });
  }
  ForLanes(mask, [&](uint32_t lane) { stack_pointer[lane] = frame->local_base; });
  const uint32_t return_pc = frame->return_pc;
  frame->lanes &= ~mask;
  const uint32_t stay = active_ & ~mask;
  if (frame->lanes == 0) FreeFrame(frame);
  if (stay != 0) Split(pc_ + 1, stay);
  current_ = parent;
  regs_ = outer;
  active_ = mask;
  pc_ = return_pc;
  if (groups.size() == 1) {
    stop_ = kNoSlot;
    return true;
  }
  SaveCurrent();
  return false;
}

bool Warp::Exit(uint32_t mask) {
  for (Frame* frame = current_; frame != nullptr;) {
    Frame* parent = frame->parent;
    frame->lanes &= ~mask;
    if (frame->lanes == 0 && parent != nullptr) FreeFrame(frame);
    frame = parent;
  }
  alive_ &= ~mask;
  block_->alive_threads -= static_cast<uint32_t>(std::popcount(mask));
  active_ &= ~mask;
  if (active_ != 0) {
    ++pc_;
    SaveCurrent();
  } else {
    RemoveCurrent();
  }
  block_->Reconsider();
  return false;
}

bool Warp::Barrier(const Insn& insn, uint32_t mask) {
  if (mask == 0) {
    ++pc_;
    return true;
  }
  const BarrierFacts& facts = insn.extra->barrier;
  if (facts.kind >= BarrierFacts::Kind::kClusterArrive) {
    return ClusterBarrier(facts.kind == BarrierFacts::Kind::kClusterArrive, mask);
  }
  const auto lane0 = static_cast<uint32_t>(std::countr_zero(mask));
  const uint32_t id = At<uint32_t>(insn.a)[lane0];
  uint32_t count = 0;
  if (facts.has_count) count = At<uint32_t>(insn.b)[lane0];
  uint32_t same = 0;
  ForLanes(mask, [&](uint32_t lane) {
    const bool equal = At<uint32_t>(insn.a)[lane] == id && (!facts.has_count || At<uint32_t>(insn.b)[lane] == count);
    same |= equal ? 1u << lane : 0;
  });
  if (id >= 16 || (facts.has_count && (count == 0 || count > 1024))) {
    Raise(insn, Fault::Kind::kIllegalInstruction, lane0, 0, 0, false,
          "barrier " + std::to_string(id) + " with count " + std::to_string(count));
    return false;
  }
  if (same != mask) Split(pc_, mask & ~same);
  const uint32_t others = active_ & ~mask;
  if (others != 0) Split(pc_ + 1, others);
  active_ = same;
  uint32_t predicate = 0;
  if (facts.predicate != kNoSlot) predicate = Pred(facts.predicate) ^ (facts.negated ? kAllLanes : 0);
  const bool blocks = facts.kind != BarrierFacts::Kind::kArrive;
  if (!blocks) ++pc_;
  SaveCurrent();
  Group& group = groups[static_cast<size_t>(now_)];
  if (blocks) {
    group.state = GroupState::kBarrier;
    group.barrier = static_cast<uint8_t>(id);
  }
  block_->Arrive(id, *this, same, count, facts, predicate, blocks);
  return false;
}

bool Warp::ClusterBarrier(bool arrives, uint32_t mask) {
  if (arrives) {
    cluster_arrived |= mask;
    ++pc_;
    SaveCurrent();
    block_->cluster.Arrived();
    block_->cluster.CompleteBarrier();
    return false;
  }
  // Who is not among the arrived came to a barrier that is complete, and has nothing to wait for.
  const uint32_t wait = mask & cluster_arrived;
  if (wait == 0) {
    ++pc_;
    return true;
  }
  const uint32_t others = active_ & ~wait;
  if (others != 0) Split(pc_ + 1, others);
  active_ = wait;
  SaveCurrent();
  groups[static_cast<size_t>(now_)].state = GroupState::kBarrier;
  groups[static_cast<size_t>(now_)].barrier = kClusterBarrier;
  return false;
}

bool Warp::WarpSync(const Insn& insn, uint32_t mask) {
  Group& self = groups[static_cast<size_t>(now_)];
  if (mask == 0) {
    ++pc_;
    return true;
  }
  uint32_t go = mask;
  if (!self.pass && mask != alive_) {
    const uint32_t* members = At<uint32_t>(insn.e);
    uint32_t present = mask;
    for (const Group& g : groups) {
      if (g.state == GroupState::kWarpSync && g.frame == current_ && g.pc == pc_) present |= g.mask;
    }
    go = 0;
    ForLanes(present, [&](uint32_t lane) {
      const uint32_t need = (members[lane] | (1u << lane)) & alive_;
      if ((need & ~present) == 0) go |= 1u << lane;
    });
    if (go != mask) {
      // Lanes that are parked here join those that go; lanes that must wait are parked.
      for (size_t i = 0; i < groups.size();) {
        Group& g = groups[i];
        if (static_cast<int>(i) == now_ || g.state != GroupState::kWarpSync || g.frame != current_ || g.pc != pc_ ||
            (g.mask & ~go) == g.mask) {
          ++i;
          continue;
        }
        g.mask &= ~go;
        if (g.mask != 0) {
          ++i;
          continue;
        }
        const size_t last = groups.size() - 1;
        if (now_ == static_cast<int>(last)) now_ = static_cast<int>(i);
        groups[i] = groups[last];
        groups.pop_back();
      }
      const uint32_t wait = mask & ~go;
      const uint32_t skip = active_ & ~mask;
      if (skip != 0) Split(pc_ + 1, skip);
      if (go == 0) {
        active_ = wait;
        SaveCurrent();
        groups[static_cast<size_t>(now_)].state = GroupState::kWarpSync;
        return false;
      }
      if (wait != 0) {
        Split(pc_, wait);
        groups.back().state = GroupState::kWarpSync;
      }
      active_ = go;
      groups[static_cast<size_t>(now_)].mask = go;
      insn.fn(*this, insn, go);
      if (fault_) return false;
      return Jump(pc_ + 1, false);
    }
  }
  self.pass = false;
  insn.fn(*this, insn, go);
  if (fault_) return false;
  ++pc_;
  return true;
}

void Warp::ReleaseParked() {
  uint32_t parked = 0;
  for (const Group& g : groups) {
    if (g.state == GroupState::kWarpSync) parked |= g.mask;
  }
  if (parked == 0) return;
  for (Group& g : groups) {
    if (g.state != GroupState::kWarpSync) continue;
    const Insn& insn = g.frame->code->insns[g.pc];
    regs_ = g.frame->registers.data();
    const uint32_t* members = At<uint32_t>(insn.e);
    uint32_t need = 0;
    ForLanes(g.mask, [&](uint32_t lane) { need |= members[lane]; });
    if ((need & alive_ & ~parked) != 0) continue;  // Somebody needed waits for a barrier: that comes first.
    // Lanes of one place go together: same frame and pc merge when they run.
    g.state = GroupState::kReady;
    g.pass = true;
  }
}

Turn Warp::Run() {
  turn_ = 0;
  yielded_ = false;
  bool oldest = false;
  while (!fault_) {
    if (Select(oldest) < 0) {
      ReleaseParked();
      if (Select(false) < 0) return alive_ == 0 ? Turn::kDone : Turn::kBlocked;
    }
    Execute();
    oldest = rotate_ >= kRotateBudget;
    if (oldest) rotate_ = 0;
    if (!fault_ && (turn_ >= kTurnBudget || yielded_)) {
      if (alive_ == 0) return Turn::kDone;
      return Turn::kExpired;
    }
  }
  return Turn::kFault;
}

void Warp::Execute() {
  const Insn* code = current_->code->insns.data();
  uint32_t pc = pc_;
  while (true) {
    if (pc == stop_) [[unlikely]] {
      if (fault_) return;
      pc_ = pc;
      MergeHere();
    }
    const Insn& insn = code[pc];
    uint32_t mask = active_;
    if (insn.predicate != kNoSlot) {
      const uint32_t guard = Pred(insn.predicate);
      mask &= insn.predicate_negated ? ~guard : guard;
    }
    if (insn.control == Control::kPlain) [[likely]] {
      if (mask != 0) insn.fn(*this, insn, mask);
      ++pc;
      continue;
    }
    pc_ = pc;
    bool go = false;
    switch (insn.control) {
      case Control::kBranch:
        go = Branch(insn, mask);
        break;
      case Control::kBranchIndexed:
        go = mask != 0 ? BranchIndexed(insn, mask) : (++pc_, true);
        break;
      case Control::kCall:
        go = mask != 0 ? Call(insn, mask) : (++pc_, true);
        code = current_->code->insns.data();
        break;
      case Control::kReturn:
        go = mask != 0 ? Return(mask) : (++pc_, true);
        code = current_->code->insns.data();
        break;
      case Control::kExit:
        go = mask != 0 ? Exit(mask) : (++pc_, true);
        break;
      case Control::kBarrier:
        go = Barrier(insn, mask);
        break;
      case Control::kWarpSync:
        go = WarpSync(insn, mask);
        break;
      case Control::kYield:
        ++pc_;
        SaveCurrent();
        yielded_ = true;
        rotate_ = kRotateBudget;
        break;
      case Control::kPlain:
        break;
    }
    if (!go) return;
    pc = pc_;
  }
}

void Warp::Raise(const Insn& insn, Fault::Kind kind, uint32_t lane, uint64_t address, uint32_t size, bool write,
                 std::string message) {
  if (fault_) return;
  fault_ = true;
  const Code& code = *current_->code;
  stop_ = static_cast<uint32_t>(&insn - code.insns.data()) + 1;
  LaunchState& state = launch();
  std::lock_guard lock(state.mutex);
  if (state.fault.kind != Fault::Kind::kNone) return;
  Fault& fault = state.fault;
  fault.kind = kind;
  fault.kernel = state.kernel->name;
  if (&code != state.kernel) fault.function = code.name;
  fault.block = block_->position;
  fault.thread = {tid_x[lane], tid_y[lane], tid_z[lane]};
  if (insn.source < code.function->instructions.size()) {
    const ptx::Instruction& source = code.function->instructions[insn.source];
    fault.instruction = std::string(source.text);
    fault.line = source.line;
  }
  fault.address = address;
  fault.size = size;
  fault.write = write;
  if (address != 0 || kind == Fault::Kind::kIllegalAddress) fault.nearest = state.config->memory->Nearest(address);
  fault.message = std::move(message);
  state.stop.store(true, std::memory_order_relaxed);
}

}  // namespace hawser::exec
