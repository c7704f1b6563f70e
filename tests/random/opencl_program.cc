// SPDX-License-Identifier: Apache-2.0
#include "tests/random/opencl_program.h"

#include <stdio.h>
#include <stdlib.h>

#include <chrono>
#include <cstring>
#include <utility>

namespace hawser::random {
namespace {

/// Thrown where the program cannot go on.
struct Failed {};

void CL_CALLBACK Count(cl_event, cl_int, void* count) { static_cast<std::atomic<int>*>(count)->fetch_add(1); }
void CL_CALLBACK Reached(cl_event, cl_int, void* data) {
  const std::unique_ptr<std::shared_ptr<std::promise<void>>> promise(
      static_cast<std::shared_ptr<std::promise<void>>*>(data));
  (*promise)->set_value();
}

}  // namespace

OpenclProgram::OpenclProgram(uint64_t seed, const OpenclPlace& place, bool tell)
    : random_(seed), seed_(seed), place_(place), tell_(tell), hands_(3, [] {}), later_([] {}) {}

OpenclProgram::~OpenclProgram() = default;

void OpenclProgram::Tell(const std::string& what) const {
  if (!tell_) return;
  printf("%s\n", what.c_str());
  fflush(stdout);
}

void OpenclProgram::Wrong(const std::string& what) {
  printf("wrong: seed %llu: %s\n", static_cast<unsigned long long>(seed_), what.c_str());
  fflush(stdout);
  failed_ = true;
  throw Failed{};
}

void OpenclProgram::Do(const std::string& what, const std::function<cl_int()>& call) {
  const size_t who = Pick(hands_.count());
  Tell("  " + std::to_string(who) + ": " + what);
  const cl_int result = hands_.Run(who, "seed " + std::to_string(seed_) + ": " + what, call);
  if (result != CL_SUCCESS) Wrong(what + ": error " + std::to_string(result));
}

// Order.

OpenclProgram::Queue* OpenclProgram::Find(Agent agent) {
  for (const auto& queue : queues_) {
    if (queue->in_order && queue->agent == agent) return queue.get();
  }
  return nullptr;
}

void OpenclProgram::OpenFor(const Clock& clock) {
  for (size_t i = 0; i < gates_.size();) {
    if (!clock.Covers(gates_[i].stamp)) {
      ++i;
      continue;
    }
    Tell("  gate " + std::to_string(gates_[i].stamp.agent) + " opens");
    later_.Do(std::chrono::microseconds(Pick(3) == 0 ? Pick(3000) : 0), [event = gates_[i].event] {
      (void)clSetUserEventStatus(event, CL_COMPLETE);
      (void)clReleaseEvent(event);
    });
    gates_.erase(gates_.begin() + static_cast<ptrdiff_t>(i));
  }
}

void OpenclProgram::OpenAll() {
  Clock all = gone_;
  for (const auto& queue : queues_) all.Join(queue->all);
  for (const Gate& gate : gates_) {
    for (int i = 0; i < 1 && !all.Covers(gate.stamp); ++i) all.Tick(gate.stamp.agent);
  }
  OpenFor(all);
}

void OpenclProgram::WaitForAll() {
  OpenAll();
  for (const auto& queue : queues_) Do("finish", [&] { return clFinish(queue->handle); });
  for (const auto& queue : queues_) host_.Join(queue->all);
  for (auto& [agent, command] : commands_) {
    Do("wait for what is left", [&event = command.event] { return clWaitForEvents(1, &event); });
    Do("release", [&event = command.event] { return clReleaseEvent(event); });
    host_.Join(command.clock);
  }
  commands_.clear();
}

void OpenclProgram::Watch(cl_event event) {
  ++watched_;
  Do("watch", [&] { return clSetEventCallback(event, CL_COMPLETE, Count, &seen_); });
}

/// Something to wait for that covers everything this agent has done. The event is the caller's to release.
OpenclProgram::Command OpenclProgram::EventOf(Agent agent) {
  Queue* const queue = Find(agent);
  Command command{};
  if (queue == nullptr) {
    command = commands_.at(agent);
    Do("retain", [&] { return clRetainEvent(command.event); });
    return command;
  }
  if (queue->last == nullptr || Chance(20)) {
    Enqueue(
        *queue, "mark", {}, Blocks::kNot,
        [&](const std::vector<cl_event>& after, cl_event* event) {
          return clEnqueueMarkerWithWaitList(queue->handle, static_cast<cl_uint>(after.size()),
                                             after.empty() ? nullptr : after.data(), event);
        },
        true);
  }
  command = {queue->last, queue->all};
  Do("retain", [&] { return clRetainEvent(command.event); });
  Do("flush", [&] { return clFlush(queue->handle); });
  return command;
}

Stamp OpenclProgram::Enqueue(Queue& queue, const std::string& what, const std::vector<Use>& uses, Blocks blocks,
                             const Call& call, bool must_have_event) {
  Clock clock = queue.barrier;
  if (queue.in_order) clock.Join(queue.all);
  clock.Join(host_);
  std::vector<cl_event> after;
  std::string names;
  for (const Use& use : uses) {
    while (const std::optional<Stamp> race = use.memory->used.Race(use.offset, use.size, use.write, clock)) {
      if (after.size() > 20 || Chance(20)) {
        WaitOnHost(race->agent);
      } else {
        const Command command = EventOf(race->agent);
        after.push_back(command.event);
        names += " " + std::to_string(race->agent);
        clock.Join(command.clock);
      }
      clock.Join(host_);
      if (queue.in_order) clock.Join(queue.all);
    }
  }
  if (!gates_.empty() && Chance(10)) {
    const Gate& gate = gates_[Pick(gates_.size())];
    if (after.size() < 20) {
      Do("retain", [&] { return clRetainEvent(gate.event); });
      after.push_back(gate.event);
      names += " gate " + std::to_string(gate.stamp.agent);
      Clock closed;
      closed.Tick(gate.stamp.agent);
      clock.Join(closed);
    }
  }
  const Agent agent = queue.in_order ? queue.agent : ++agents_;
  clock.Tick(agent);
  queue.all.Join(clock);
  if (blocks != Blocks::kNot) OpenFor(queue.all);  // PoCL's wait for all of their queue.
  cl_event event = nullptr;
  const bool with_event = must_have_event || !queue.in_order || Chance(70);
  if (queue.in_order && queue.last != nullptr) {
    const cl_event old = std::exchange(queue.last, nullptr);
    Do("release", [&] { return clReleaseEvent(old); });
  }
  Do(what + " in " + std::to_string(agent) + (blocks != Blocks::kNot ? ", blocking" : "") +
         (after.empty() ? "" : ", after") + names + " (queue " + std::to_string(queue.number) + ")",
     [&] { return call(after, with_event ? &event : nullptr); });
  for (const cl_event each : after) Do("release", [&] { return clReleaseEvent(each); });
  if (with_event) {
    if (Chance(10)) Watch(event);
    if (queue.in_order) {
      queue.last = event;
    } else {
      commands_[agent] = {event, clock};
    }
  }
  if (Chance(20)) Do("flush", [&] { return clFlush(queue.handle); });
  if (!queue.in_order) Do("flush", [&] { return clFlush(queue.handle); });
  const Stamp stamp = {agent, clock.at(agent)};
  for (const Use& use : uses) use.memory->used.Use(use.offset, use.size, use.write, stamp);
  if (blocks == Blocks::kUntilComplete) host_.Join(clock);
  return stamp;
}

void OpenclProgram::WaitOnHost(Agent agent) {
  Queue* const queue = Find(agent);
  if (Chance(20)) return WaitForAll();
  if (queue != nullptr && Chance(40)) {
    OpenFor(queue->all);
    Do("finish " + std::to_string(agent), [&] { return clFinish(queue->handle); });
    host_.Join(queue->all);
    return;
  }
  const Command command = EventOf(agent);
  const std::string name = "of " + std::to_string(agent);
  if (Chance(30)) {
    auto* const promise = new std::shared_ptr<std::promise<void>>(std::make_shared<std::promise<void>>());
    const std::shared_ptr<std::promise<void>> reached = *promise;
    Do("call back " + name, [&] { return clSetEventCallback(command.event, CL_COMPLETE, Reached, promise); });
    OpenFor(command.clock);
    Do("wait for the callback " + name, [&] {
      reached->get_future().wait();
      return CL_SUCCESS;
    });
  } else {
    OpenFor(command.clock);
    Do("wait for the event " + name, [&] { return clWaitForEvents(1, &command.event); });
  }
  Do("release", [&] { return clReleaseEvent(command.event); });
  host_.Join(command.clock);
  if (queue != nullptr) return;
  const auto at = commands_.find(agent);
  Do("release", [&] { return clReleaseEvent(at->second.event); });
  commands_.erase(at);
}

void OpenclProgram::OrderOnHost(const Use& use) {
  while (const std::optional<Stamp> race = use.memory->used.Race(use.offset, use.size, use.write, host_))
    WaitOnHost(race->agent);
}

// Steps.

bool OpenclProgram::IsMapped(const Memory& memory, size_t offset, size_t size, bool write, bool any) const {
  for (const Mapped& mapped : mapped_) {
    if (mapped.memory != &memory || !(write || mapped.write || any)) continue;
    if (any || (mapped.offset < offset + size && offset < mapped.offset + mapped.size)) return true;
  }
  return false;
}

bool OpenclProgram::Choose(Operation* operation) {
  using What = Operation::What;
  Operation& chosen = *operation;
  chosen = {};
  const size_t kind = Pick(10);
  chosen.what = kind < 6 ? What::kCopy : kind < 7 ? What::kFill : What::kMix;
  Memory& to = *memories_[Pick(memories_.size())];
  Memory& from = *memories_[Pick(memories_.size())];
  chosen.to.memory = &to;
  const bool has_source = chosen.what != What::kFill;
  if (has_source) chosen.from.memory = &from;
  chosen.factor = static_cast<uint8_t>(random_() | 1), chosen.addend = static_cast<uint8_t>(random_());
  for (uint8_t& byte : chosen.value) byte = static_cast<uint8_t>(random_());
  chosen.parts = Chance(50);
  const bool image = to.kind == MemoryKind::kImage || (has_source && from.kind == MemoryKind::kImage);
  if (image || (chosen.what == What::kCopy && Chance(30))) {
    if (chosen.what == What::kMix) return false;
    const size_t unit = image ? kPixel : 1;
    chosen.width = unit * (1 + Pick(image ? 100 : 256));
    const auto narrow = [&](const Side& side) {
      const Memory& memory = *side.memory;
      chosen.width =
          std::min(chosen.width, memory.kind == MemoryKind::kImage ? memory.width : memory.size / unit * unit);
    };
    narrow(chosen.to);
    if (has_source) narrow(chosen.from);
    const auto shape = [&](Side* side) {
      const Memory& memory = *side->memory;
      if (memory.kind == MemoryKind::kImage) {
        side->pitch = memory.width;
      } else if (image && memory.kind == MemoryKind::kBuffer) {
        side->pitch = chosen.width;
      } else {
        side->pitch = std::min(memory.size / unit, chosen.width / unit + Pick(20)) * unit;
      }
      return memory.size / side->pitch;
    };
    size_t rows = shape(&chosen.to);
    if (has_source) rows = std::min(rows, shape(&chosen.from));
    chosen.height = 1 + Pick(rows);
    const auto place = [&](Side* side) {
      const Memory& memory = *side->memory;
      const size_t y = Pick(memory.size / side->pitch - chosen.height + 1);
      side->offset = Pick((side->pitch - chosen.width) / unit + 1) * unit + y * side->pitch;
    };
    place(&chosen.to);
    if (has_source) place(&chosen.from);
    if (chosen.what == What::kFill) chosen.element = kPixel;
  } else {
    size_t limit = has_source ? std::min(to.size, from.size) : to.size;
    if (chosen.what == What::kMix) limit = std::min<size_t>(limit, 100000);
    chosen.width = Chance(30) ? limit : 1 + Pick(limit);
    chosen.to.offset = Pick(to.size - chosen.width + 1);
    if (has_source) chosen.from.offset = Pick(from.size - chosen.width + 1);
    for (const Side& side : {chosen.to, chosen.from}) {
      if (!chosen.parts || side.memory == nullptr || side.memory->parts.empty() || to.kind != MemoryKind::kBuffer)
        continue;
      const Memory::Part& part = side.memory->parts[Pick(side.memory->parts.size())];
      chosen.width = std::min(chosen.width, part.size);
      (side.memory == &to ? chosen.to : chosen.from).offset = part.offset + Pick(part.size - chosen.width + 1);
    }
    if (chosen.what == What::kFill) {
      chosen.element = size_t{1} << Pick(5);
      chosen.to.offset = chosen.to.offset / chosen.element * chosen.element;
      chosen.width = chosen.width / chosen.element * chosen.element;
      if (chosen.width == 0 || chosen.element > 1) chosen.parts = false;
      if (chosen.width == 0) return false;
    }
  }
  if (!chosen.IsPossible()) return false;
  for (const Use& use : chosen.Uses()) {
    if (use.offset + use.size > use.memory->size) return false;
    const bool whole = use.memory->kind != MemoryKind::kBuffer;
    if (IsMapped(*use.memory, use.offset, use.size, use.write, whole)) return false;
  }
  return true;
}

void OpenclProgram::AnOperation() {
  Operation operation;
  if (!Choose(&operation)) return;
  Queue& queue = AnyQueue();
  const bool blocking = operation.MayBlock() && Chance(25);
  const cl_kernel mix = kernels_[Pick(kernels_.size())];
  const bool writes = operation.from.memory != nullptr && operation.from.memory->kind == MemoryKind::kHost;
  const Blocks blocks = !blocking ? Blocks::kNot : writes ? Blocks::kUntilTaken : Blocks::kUntilComplete;
  Enqueue(queue, operation.Text(), operation.Uses(), blocks, [&](const std::vector<cl_event>& after, cl_event* event) {
    return operation.Enqueue(queue.handle, mix, blocking, after, event);
  });
  operation.Apply();
}

void OpenclProgram::HostWrites(Memory& memory) {
  if (memory.kind != MemoryKind::kHost) return;
  const size_t size = 1 + Pick(memory.size), offset = Pick(memory.size - size + 1);
  OrderOnHost({&memory, offset, size, true});
  Tell("  the host writes " + memory.Text() + "+" + std::to_string(offset) + " " + std::to_string(size));
  const auto factor = static_cast<uint8_t>(random_() | 1), start = static_cast<uint8_t>(random_());
  for (size_t i = offset; i < offset + size; ++i) {
    const auto byte = static_cast<uint8_t>(start + factor * i + i / 251);
    memory.pointer[i] = byte, memory.used.expected[i] = byte;
  }
  memory.used.Use(offset, size, true, host_.Tick(kTheHost));
}

void OpenclProgram::Compare(const Memory& memory, size_t offset, size_t size, const uint8_t* read, const char* by) {
  const uint8_t* const expected = memory.used.expected.data() + offset;
  for (size_t i = 0; i < size; ++i) {
    if (read[i] == expected[i]) continue;
    size_t last = i, wrong = 0;
    for (size_t j = i; j < size; ++j) {
      if (read[j] != expected[j]) last = j, ++wrong;
    }
    Wrong(std::string(by) + " " + memory.Text() + " of " + std::to_string(memory.size) + ": byte " +
          std::to_string(offset + i) + " is " + std::to_string(read[i]) + ", not " + std::to_string(expected[i]) +
          "; " + std::to_string(wrong) + " are wrong up to " + std::to_string(offset + last));
  }
}

void OpenclProgram::Check(Memory& memory) {
  if (memory.kind == MemoryKind::kHost) {
    const size_t size = Chance(60) ? 1 + Pick(memory.size) : memory.size, offset = Pick(memory.size - size + 1);
    OrderOnHost({&memory, offset, size, false});
    Tell("  the host reads " + memory.Text() + "+" + std::to_string(offset) + " " + std::to_string(size));
    Compare(memory, offset, size, memory.pointer + offset, "host's");
    memory.used.Use(offset, size, false, host_.Tick(kTheHost));
    return;
  }
  if (IsMapped(memory, 0, memory.size, false, memory.kind != MemoryKind::kBuffer)) return;
  std::vector<uint8_t> read(memory.size);
  Queue& queue = AnyQueue();
  Enqueue(queue, "read " + memory.Text(), {{&memory, 0, memory.size, false}}, Blocks::kUntilComplete,
          [&](const std::vector<cl_event>& after, cl_event* event) {
            const auto count = static_cast<cl_uint>(after.size());
            const cl_event* const list = after.empty() ? nullptr : after.data();
            if (memory.kind == MemoryKind::kSvm)
              return clEnqueueSVMMemcpy(queue.handle, CL_TRUE, read.data(), memory.pointer, memory.size, count, list,
                                        event);
            if (memory.kind == MemoryKind::kBuffer)
              return clEnqueueReadBuffer(queue.handle, memory.object, CL_TRUE, 0, memory.size, read.data(), count, list,
                                         event);
            const size_t origin[3] = {}, region[] = {memory.width / kPixel, memory.size / memory.width, 1};
            return clEnqueueReadImage(queue.handle, memory.object, CL_TRUE, origin, region, 0, 0, read.data(), count,
                                      list, event);
          });
  Compare(memory, 0, memory.size, read.data(), "read");
}

void OpenclProgram::Map(Memory& memory) {
  if (memory.kind == MemoryKind::kHost || mapped_.size() > 3) return;
  Mapped mapped{};
  mapped.memory = &memory;
  mapped.write = Chance(60);
  mapped.invalidate = mapped.write && Chance(30);
  if (memory.kind == MemoryKind::kImage) {
    const size_t rows = 1 + Pick(memory.size / memory.width);
    mapped.width = mapped.pitch = memory.width;
    mapped.size = rows * memory.width;
    mapped.offset = Pick(memory.size / memory.width - rows + 1) * memory.width;
  } else {
    mapped.size = 1 + Pick(memory.size);
    mapped.offset = Pick(memory.size - mapped.size + 1);
    mapped.width = mapped.pitch = mapped.size;
  }
  if (IsMapped(memory, mapped.offset, mapped.size, mapped.write, memory.kind != MemoryKind::kBuffer)) return;
  const bool blocking = Chance(50);
  const cl_map_flags flags = mapped.invalidate ? CL_MAP_WRITE_INVALIDATE_REGION
                             : mapped.write    ? CL_MAP_WRITE | (Chance(50) ? CL_MAP_READ : 0)
                                               : CL_MAP_READ;
  Queue& queue = AnyQueue();
  mapped.stamp = Enqueue(
      queue,
      "map " + memory.Text() + "+" + std::to_string(mapped.offset) + " " + std::to_string(mapped.size) +
          (mapped.invalidate ? " anew"
           : mapped.write    ? " to write"
                             : ""),
      {{&memory, mapped.offset, mapped.size, mapped.write}}, blocking ? Blocks::kUntilComplete : Blocks::kNot,
      [&](const std::vector<cl_event>& after, cl_event* event) {
        const auto count = static_cast<cl_uint>(after.size());
        const cl_event* const list = after.empty() ? nullptr : after.data();
        cl_int result = CL_SUCCESS;
        const cl_bool wait = blocking ? CL_TRUE : CL_FALSE;
        if (memory.kind == MemoryKind::kSvm) {
          mapped.pointer = memory.pointer + mapped.offset;
          return clEnqueueSVMMap(queue.handle, wait, flags, mapped.pointer, mapped.size, count, list, event);
        }
        if (memory.kind == MemoryKind::kBuffer) {
          mapped.pointer = static_cast<uint8_t*>(clEnqueueMapBuffer(
              queue.handle, memory.object, wait, flags, mapped.offset, mapped.size, count, list, event, &result));
          return result;
        }
        const size_t origin[] = {0, mapped.offset / memory.width, 0};
        const size_t region[] = {memory.width / kPixel, mapped.size / memory.width, 1};
        mapped.pointer =
            static_cast<uint8_t*>(clEnqueueMapImage(queue.handle, memory.object, wait, flags, origin, region,
                                                    &mapped.pitch, nullptr, count, list, event, &result));
        return result;
      });
  if (memory.kind == MemoryKind::kBuffer && memory.pointer != nullptr &&
      mapped.pointer != memory.pointer + mapped.offset)
    Wrong("a buffer with a pointer of the program's is mapped somewhere else");
  mapped_.push_back(mapped);
}

void OpenclProgram::Unmap(size_t index) {
  Mapped& mapped = mapped_[index];
  Memory& memory = *mapped.memory;
  while (!host_.Covers(mapped.stamp)) WaitOnHost(mapped.stamp.agent);
  OrderOnHost({&memory, mapped.offset, mapped.size, mapped.write});
  uint8_t* const expected = memory.used.expected.data() + mapped.offset;
  for (size_t at = 0; at < mapped.size; at += mapped.width) {
    uint8_t* const row = mapped.pointer + at / mapped.width * mapped.pitch;
    if (!mapped.invalidate) Compare(memory, mapped.offset + at, mapped.width, row, "mapped");
    if (!mapped.write) continue;
    const size_t begin = mapped.invalidate ? 0 : Pick(mapped.width);
    const size_t size = mapped.invalidate ? mapped.width : 1 + Pick(mapped.width - begin);
    const auto start = static_cast<uint8_t>(random_());
    for (size_t i = begin; i < begin + size; ++i)
      row[i] = expected[at + i] = static_cast<uint8_t>(start + i * 7 + i / 253);
  }
  memory.used.Use(mapped.offset, mapped.size, mapped.write, host_.Tick(kTheHost));
  Queue& queue = AnyQueue();
  Enqueue(queue, "unmap " + memory.Text(), {{&memory, mapped.offset, mapped.size, mapped.write}}, Blocks::kNot,
          [&](const std::vector<cl_event>& after, cl_event* event) {
            const auto count = static_cast<cl_uint>(after.size());
            const cl_event* const list = after.empty() ? nullptr : after.data();
            if (memory.kind == MemoryKind::kSvm)
              return clEnqueueSVMUnmap(queue.handle, mapped.pointer, count, list, event);
            return clEnqueueUnmapMemObject(queue.handle, memory.object, mapped.pointer, count, list, event);
          });
  mapped_.erase(mapped_.begin() + static_cast<ptrdiff_t>(index));
}

void OpenclProgram::CloseGate() {
  if (gates_.size() > 5)
    return OpenFor([&] {
      Clock one;
      one.Tick(gates_[0].stamp.agent);
      return one;
    }());
  Gate gate{};
  gate.stamp = {++agents_, 1};
  Do("make gate " + std::to_string(gate.stamp.agent), [&] {
    cl_int result = CL_SUCCESS;
    gate.event = clCreateUserEvent(place_.context, &result);
    return result;
  });
  gates_.push_back(gate);
  // A queue in order stands behind it. In others PoCL 3.1 lets such a barrier take the place of one before it: what
  // comes behind both waits for the second alone.
  Queue& queue = AnyQueue();
  if (!queue.in_order) return;
  const cl_event event = gate.event;
  Clock closed;
  closed.Tick(gate.stamp.agent);
  queue.barrier.Join(closed);
  Enqueue(queue, "barrier behind gate " + std::to_string(gate.stamp.agent), {}, Blocks::kNot,
          [&](const std::vector<cl_event>& after, cl_event* made) {
            std::vector<cl_event> list = after;
            list.push_back(event);
            return clEnqueueBarrierWithWaitList(queue.handle, static_cast<cl_uint>(list.size()), list.data(), made);
          });
}

void OpenclProgram::Barrier() {
  Queue& queue = AnyQueue();
  queue.barrier.Join(queue.all);
  Enqueue(queue, "barrier", {}, Blocks::kNot, [&](const std::vector<cl_event>& after, cl_event* made) {
    if (after.empty()) return clEnqueueBarrierWithWaitList(queue.handle, 0, nullptr, made);
    const cl_int result = clEnqueueBarrierWithWaitList(queue.handle, 0, nullptr, nullptr);
    return result != CL_SUCCESS
               ? result
               : clEnqueueMarkerWithWaitList(queue.handle, static_cast<cl_uint>(after.size()), after.data(), made);
  });
}

void OpenclProgram::Step() {
  const size_t kind = Pick(100);
  Memory& memory = *memories_[Pick(memories_.size())];
  if (kind < 52) return AnOperation();
  if (kind < 58) return HostWrites(memory);
  if (kind < 66) return Check(memory);
  if (kind < 70) return CloseGate();
  if (kind < 78) return Map(memory);
  if (kind < 86) return mapped_.empty() ? Map(memory) : Unmap(Pick(mapped_.size()));
  if (kind < 89) return memories_.size() < 14 ? MakeMemory() : FreeMemory(Pick(memories_.size()));
  if (kind < 91) return memories_.size() > 5 ? FreeMemory(Pick(memories_.size())) : MakeMemory();
  if (kind < 94) return queues_.size() < 5 ? MakeQueue() : ReleaseQueue();
  if (kind < 95) return ReleaseQueue();
  if (kind < 98) return Barrier();
  if (kind < 99) return WaitForAll();
}

bool OpenclProgram::Run(int steps) {
  try {
    MakeQueue();
    MakeQueue();
    MakeQueue();
    for (int i = 0; i < 2; ++i) {
      Do("make a kernel", [&] {
        cl_int result = CL_SUCCESS;
        kernels_.push_back(clCreateKernel(place_.program, "mix_bytes", &result));
        return result;
      });
    }
    while (memories_.size() < 7) MakeMemory();
    for (int i = 0; i < steps; ++i) {
      Tell("step " + std::to_string(i));
      Step();
    }
    while (!mapped_.empty()) Unmap(0);
    for (const auto& memory : memories_) Check(*memory);
    WaitForAll();
    for (const auto& memory : memories_) Check(*memory);
    while (!memories_.empty()) FreeMemory(0);
    for (const cl_kernel kernel : kernels_) Do("release a kernel", [&] { return clReleaseKernel(kernel); });
    WaitForAll();
    for (const auto& queue : queues_) {
      if (queue->last != nullptr) Do("release", [&] { return clReleaseEvent(queue->last); });
      Do("release a queue", [&] { return clReleaseCommandQueue(queue->handle); });
    }
    // Callbacks come when they come, but they come.
    const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (seen_.load() < watched_ && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    if (seen_.load() != watched_)
      Wrong(std::to_string(seen_.load()) + " callbacks of " + std::to_string(watched_) + " came");
  } catch (const Failed&) {
  }
  return !failed_;
}

}  // namespace hawser::random
