// SPDX-License-Identifier: Apache-2.0
#include "tests/random/cuda_program.h"

#include <stdio.h>
#include <stdlib.h>

#include <chrono>
#include <cstring>

namespace hawser::random {
namespace {

/// Thrown where the program cannot go on.
struct Failed {};

void CUDA_CB AwaitGate(void* function) { static_cast<std::promise<void>*>(function)->get_future().wait(); }
void CUDA_CB Reached(void* promise) { static_cast<std::promise<void>*>(promise)->set_value(); }

std::string ErrorName(CUresult result) {
  const char* name = nullptr;
  return cuGetErrorName(result, &name) == CUDA_SUCCESS && name != nullptr ? name : std::to_string(result);
}

}  // namespace

CudaProgram::CudaProgram(uint64_t seed, CUcontext context, Options options)
    : random_(seed),
      seed_(seed),
      context_(context),
      options_(options),
      hands_(3, [context] { (void)cuCtxSetCurrent(context); }),
      later_([context] { (void)cuCtxSetCurrent(context); }) {}

CudaProgram::~CudaProgram() { OpenAll(); }

void CudaProgram::Tell(const std::string& what) const {
  if (!options_.tell) return;
  printf("%s\n", what.c_str());
  fflush(stdout);
}

void CudaProgram::Wrong(const std::string& what) {
  printf("wrong: seed %llu: %s\n", static_cast<unsigned long long>(seed_), what.c_str());
  fflush(stdout);
  failed_ = true;
  throw Failed{};
}

void CudaProgram::Do(const std::string& what, const std::function<CUresult()>& call, size_t owner) {
  const size_t who = owner == kAnybody ? Pick(hands_.count()) : owner;
  Tell("  " + std::to_string(who) + ": " + what);
  const auto result = static_cast<CUresult>(
      hands_.Run(who, "seed " + std::to_string(seed_) + ": " + what, [&] { return static_cast<int>(call()); }));
  if (result != CUDA_SUCCESS) Wrong(what + ": " + ErrorName(result));
}

// Order.

CudaProgram::Stream* CudaProgram::Find(Agent agent) {
  for (const auto& stream : streams_) {
    if (stream->agent == agent) return stream.get();
  }
  return nullptr;
}

CudaProgram::Stream& CudaProgram::AnyStream() { return *streams_[Pick(streams_.size())]; }

void CudaProgram::Join(Stream& stream) {
  stream.clock.Join(host_);
  Stream& legacy = *streams_[0];
  if (&stream == &legacy) {
    for (const auto& other : streams_) {
      if (other->blocking) legacy.clock.Join(other->clock);
    }
  } else if (stream.blocking) {
    stream.clock.Join(legacy.clock);
  }
}

Stamp CudaProgram::Begin(Stream& stream) {
  Join(stream);
  return stream.clock.Tick(stream.agent);
}

void CudaProgram::WaitFor(Stream& stream, Stream& other) {
  const CUevent event = AnyEvent();
  Begin(other);
  Do(
      "record in " + std::to_string(other.agent), [&] { return cuEventRecord(event, other.handle); }, other.owner);
  const Clock recorded = other.clock;
  Begin(stream);
  stream.clock.Join(recorded);
  Do(
      "wait in " + std::to_string(stream.agent), [&] { return cuStreamWaitEvent(stream.handle, event, 0); },
      stream.owner);
}

void CudaProgram::OpenFor(const Clock& clock) {
  // Host functions of different streams may share a thread.
  bool functions = false;
  std::erase_if(host_functions_, [&](Stamp stamp) { return host_.Covers(stamp); });
  for (const Stamp stamp : host_functions_) functions = functions || clock.Covers(stamp);
  for (size_t i = 0; i < gates_.size();) {
    Gate* const gate = gates_[i].get();
    if (!clock.Covers(gate->stamp) && !(functions && gate->word == 0)) {
      ++i;
      continue;
    }
    Tell("  the gate in " + std::to_string(gate->stamp.agent) +
         (gate->word != 0 ? " by a word opens" : " by a function opens"));
    later_.Do(std::chrono::microseconds(Pick(3) == 0 ? Pick(3000) : 0), [gate, opener = opener_] {
      if (gate->word != 0) {
        (void)cuStreamWriteValue32(opener, gate->word, 1, CU_STREAM_WRITE_VALUE_DEFAULT);
      } else {
        gate->function.set_value();
      }
    });
    open_.push_back(std::move(gates_[i]));
    gates_.erase(gates_.begin() + static_cast<ptrdiff_t>(i));
  }
}

void CudaProgram::OpenAll() {
  Clock all = gone_;
  for (const auto& stream : streams_) all.Join(stream->clock);
  OpenFor(all);
}

void CudaProgram::WaitForAll() {
  OpenAll();
  Do("synchronize the context", [] { return cuCtxSynchronize(); });
  host_.Join(gone_);
  for (const auto& stream : streams_) host_.Join(stream->clock);
}

void CudaProgram::WaitOnHost(Agent agent) {
  Stream* const stream = Find(agent);
  const size_t way = Pick(6);
  if (stream == nullptr || way == 0) return WaitForAll();
  const std::string name = std::to_string(stream->agent);
  if (way == 1 || way == 2) {
    Clock may_wait_for = stream->clock;
    for (const auto& other : streams_) {
      // The legacy stream is done when those are that it waits for, as some have it.
      if (stream == streams_[0].get() && other->blocking) may_wait_for.Join(other->clock);
    }
    OpenFor(may_wait_for);
    if (way == 1) {
      Do(
          "synchronize stream " + name, [&] { return cuStreamSynchronize(stream->handle); }, stream->owner);
    } else {
      Do(
          "query stream " + name,
          [&] {
            CUresult result;
            while ((result = cuStreamQuery(stream->handle)) == CUDA_ERROR_NOT_READY) std::this_thread::yield();
            return result;
          },
          stream->owner);
    }
    host_.Join(stream->clock);
    return;
  }
  const Stamp stamp = Begin(*stream);
  if (way == 5) {
    std::promise<void>& reached = reached_.emplace_back();
    host_functions_.push_back(stamp);
    Do(
        "host function in " + name, [&] { return cuLaunchHostFunc(stream->handle, Reached, &reached); }, stream->owner);
    OpenFor(stream->clock);
    Do("wait for the host function", [&] {
      reached.get_future().wait();
      return CUDA_SUCCESS;
    });
  } else {
    const CUevent event = AnyEvent();
    Do(
        "record in " + name, [&] { return cuEventRecord(event, stream->handle); }, stream->owner);
    OpenFor(stream->clock);
    if (way == 3) {
      Do("synchronize the event", [&] { return cuEventSynchronize(event); });
    } else {
      Do("query the event", [&] {
        CUresult result;
        while ((result = cuEventQuery(event)) == CUDA_ERROR_NOT_READY) std::this_thread::yield();
        return result;
      });
    }
  }
  host_.Join(stream->clock);
}

void CudaProgram::WaitForIdle(const Memory& memory) {
  if (memory.kind != MemoryKind::kManaged) return;
  for (Agent agent = 1; agent <= agents_; ++agent) {
    if (memory.only != kTheHost && memory.only != agent) continue;
    const Stream* const stream = Find(agent);
    const Stamp last = {agent, stream != nullptr ? stream->clock.at(agent) : gone_.at(agent)};
    if (!host_.Covers(last)) WaitOnHost(agent);
  }
}

void CudaProgram::OrderOnStream(Stream& stream, const Use& use) {
  Join(stream);
  while (const std::optional<Stamp> race = use.memory->used.Race(use.offset, use.size, use.write, stream.clock)) {
    Stream* const other = Find(race->agent);
    if (other != nullptr && Chance(75)) {
      WaitFor(stream, *other);
    } else {
      WaitOnHost(race->agent);
    }
    Join(stream);
  }
}

void CudaProgram::OrderOnHost(const Use& use) {
  while (const std::optional<Stamp> race = use.memory->used.Race(use.offset, use.size, use.write, host_))
    WaitOnHost(race->agent);
}

// Steps.

bool CudaProgram::MayUse(const Memory& memory, Agent stream) const {
  return memory.only == kTheHost || memory.only == stream;
}

bool CudaProgram::Choose(Operation* operation, bool in_graph, Agent stream) {
  using What = Operation::What;
  static constexpr What kWhats[] = {What::kCopy, What::kCopy, What::kCopy,    What::kRectangle, What::kFill,
                                    What::kMix,  What::kMix,  What::kHostMix, What::kWriteValue};
  Operation& chosen = *operation;
  chosen = {};
  chosen.what = kWhats[Pick(std::size(kWhats))];
  if (in_graph && chosen.what == What::kWriteValue) return false;
  Memory& to = *memories_[Pick(memories_.size())];
  Memory& from = *memories_[Pick(memories_.size())];
  if (!MayUse(to, stream) || !MayUse(from, stream)) return false;
  if (in_graph && (to.only != kTheHost || from.only != kTheHost)) return false;
  chosen.to.memory = &to;
  const bool has_source = chosen.what != What::kFill && chosen.what != What::kWriteValue;
  if (has_source) chosen.from.memory = &from;
  chosen.general = Chance(40);
  chosen.value = static_cast<uint32_t>(random_());
  chosen.factor = static_cast<uint8_t>(random_() | 1), chosen.addend = static_cast<uint8_t>(random_());
  const bool arrays = to.kind == MemoryKind::kArray || (has_source && from.kind == MemoryKind::kArray);
  switch (chosen.what) {
    case What::kCopy:
      if (arrays) chosen.what = What::kRectangle;
      break;
    case What::kFill:
    case What::kWriteValue:
      if (to.device == 0) return false;
      break;
    case What::kMix:
      if (to.device == 0 || from.device == 0) return false;
      break;
    case What::kHostMix:
      if (!to.IsPlainHost() || !from.IsPlainHost()) return false;
      break;
    case What::kRectangle:
      break;
  }
  if (chosen.what == What::kRectangle) {
    const auto shape = [&](Side* side) {
      if (side->memory->kind == MemoryKind::kArray) {
        side->pitch = side->memory->width;
        chosen.width = std::min(chosen.width, side->pitch);
        return;
      }
      side->pitch = std::min(side->memory->size, chosen.width + Pick(64));
      chosen.width = std::min(chosen.width, side->pitch);
    };
    chosen.width = 1 + Pick(256);
    shape(&chosen.to);
    shape(&chosen.from);
    shape(&chosen.to);
    const auto rows = [&](const Side& side) { return std::max<size_t>(1, side.memory->size / side.pitch); };
    chosen.height = 1 + Pick(std::min(rows(chosen.to), rows(chosen.from)));
    const auto place = [&](Side* side) {
      if (side->memory->kind == MemoryKind::kArray) {
        side->offset = Pick(side->pitch - chosen.width + 1) + Pick(rows(*side) - chosen.height + 1) * side->pitch;
      } else {
        side->offset = Pick(side->memory->size - ((chosen.height - 1) * side->pitch + chosen.width) + 1);
      }
    };
    place(&chosen.to);
    place(&chosen.from);
    return !chosen.Overlaps();
  }
  size_t limit = has_source ? std::min(to.size, from.size) : to.size;
  if (chosen.what == What::kMix || chosen.what == What::kHostMix) limit = std::min<size_t>(limit, 100000);
  chosen.width = Chance(30) ? limit : 1 + Pick(limit);
  chosen.to.offset = Pick(to.size - chosen.width + 1);
  if (has_source) chosen.from.offset = Pick(from.size - chosen.width + 1);
  if (&to == &from && (chosen.what == What::kMix || chosen.what == What::kHostMix) && Chance(50))
    chosen.from.offset = chosen.to.offset;
  if (chosen.what == What::kFill) {
    chosen.element = 1U << Pick(3);
    if (in_graph && chosen.element == 1) chosen.value &= 0xff;
    if (in_graph && chosen.element == 2) chosen.value &= 0xffff;
  }
  if (chosen.what == What::kWriteValue) chosen.element = 4, chosen.width = 4;
  if (chosen.element > 1) {
    chosen.to.offset &= ~size_t{3};
    chosen.width = chosen.width / chosen.element * chosen.element;
    if (chosen.width == 0 || chosen.to.offset + chosen.width > to.size) return false;
  }
  return !chosen.Overlaps();
}

void CudaProgram::Enqueue(const Operation& operation, Stream& stream) {
  // Copies of pageable memory may wait, take what is there at once, and have been done in it when they return.
  const bool copies = operation.what == Operation::What::kCopy || operation.what == Operation::What::kRectangle;
  const bool from_pageable = copies && operation.from.memory->kind == MemoryKind::kPageable;
  const bool to_pageable = copies && operation.to.memory->kind == MemoryKind::kPageable;
  for (const Use& use : operation.Uses()) {
    if (from_pageable && !use.write) OrderOnHost(use);
    OrderOnStream(stream, use);
  }
  const Stamp stamp = Begin(stream);
  // As may those from host to host.
  const bool on_host = copies && operation.from.memory->IsPlainHost() && operation.to.memory->IsPlainHost();
  if (from_pageable || to_pageable || on_host) OpenFor(stream.clock);
  if (operation.what == Operation::What::kHostMix) host_functions_.push_back(stamp);
  const Kernels& kernels = AnyKernels();
  Do(
      operation.Text() + " in " + std::to_string(stream.agent),
      [&] { return operation.Issue(stream.handle, kernels, &mixes_); }, stream.owner);
  operation.Apply();
  for (const Use& use : operation.Uses()) use.memory->used.Use(use.offset, use.size, use.write, stamp);
  if (to_pageable) host_.Join(stream.clock);
}

void CudaProgram::Synchronous(const Operation& operation) {
  Stream& legacy = *streams_[0];
  for (const Use& use : operation.Uses()) OrderOnStream(legacy, use);
  const Stamp stamp = Begin(legacy);
  OpenFor(legacy.clock);
  Do("synchronous " + operation.Text(), [&] { return operation.IssueSynchronous(); });
  operation.Apply();
  for (const Use& use : operation.Uses()) use.memory->used.Use(use.offset, use.size, use.write, stamp);
  // Between host and device the call waits; from pageable memory the last part may still be under way.
  const bool to_host = operation.to.memory->IsPlainHost(), from_host = operation.from.memory->IsPlainHost();
  if (to_host || (from_host && operation.from.memory->kind != MemoryKind::kPageable)) host_.Join(legacy.clock);
}

void CudaProgram::AnOperation() {
  Operation operation;
  Stream& stream = AnyStream();
  if (!Choose(&operation, false, stream.agent)) return;
  const bool copy = operation.what == Operation::What::kCopy || operation.what == Operation::What::kRectangle;
  if (copy && Chance(15) && MayUse(*operation.to.memory, streams_[0]->agent) &&
      MayUse(*operation.from.memory, streams_[0]->agent)) {
    return Synchronous(operation);
  }
  Enqueue(operation, stream);
}

void CudaProgram::HostWrites(Memory& memory) {
  if (memory.host == nullptr) return;
  const size_t size = 1 + Pick(memory.size), offset = Pick(memory.size - size + 1);
  const Use use = {&memory, offset, size, true};
  OrderOnHost(use);
  WaitForIdle(memory);
  Tell("  the host writes " + std::string(Name(memory.kind)) + std::to_string(memory.number) + "+" +
       std::to_string(offset) + " " + std::to_string(size));
  const auto factor = static_cast<uint8_t>(random_() | 1), start = static_cast<uint8_t>(random_());
  for (size_t i = offset; i < offset + size; ++i) {
    const auto byte = static_cast<uint8_t>(start + factor * i + i / 251);
    memory.host[i] = byte, memory.used.expected[i] = byte;
  }
  memory.used.Use(offset, size, true, host_.Tick(kTheHost));
}

void CudaProgram::Check(Memory& memory) {
  const bool direct = memory.host != nullptr;
  if (!direct && !MayUse(memory, streams_[0]->agent)) return;
  const bool part = memory.kind != MemoryKind::kArray && Chance(60);
  const size_t size = part ? 1 + Pick(memory.size) : memory.size, offset = Pick(memory.size - size + 1);
  const Use use = {&memory, offset, size, false};
  const std::string name = std::string(Name(memory.kind)) + std::to_string(memory.number);
  std::vector<uint8_t> read;
  if (direct) {
    OrderOnHost(use);
    WaitForIdle(memory);
    Tell("  the host reads " + name + "+" + std::to_string(offset) + " " + std::to_string(size));
    read.assign(memory.host + offset, memory.host + offset + size);
    memory.used.Use(offset, size, false, host_.Tick(kTheHost));
  } else {
    read.resize(size);
    Stream& legacy = *streams_[0];
    OrderOnStream(legacy, use);
    const Stamp stamp = Begin(legacy);
    OpenFor(legacy.clock);
    Do("read " + name, [&] {
      if (memory.array == nullptr) return cuMemcpyDtoH(read.data(), memory.device + offset, size);
      CUDA_MEMCPY2D copy{};
      copy.srcMemoryType = CU_MEMORYTYPE_ARRAY, copy.srcArray = memory.array;
      copy.dstMemoryType = CU_MEMORYTYPE_HOST, copy.dstHost = read.data(), copy.dstPitch = memory.width;
      copy.WidthInBytes = memory.width, copy.Height = memory.size / memory.width;
      return cuMemcpy2D(&copy);
    });
    memory.used.Use(offset, size, false, stamp);
    host_.Join(legacy.clock);
  }
  for (size_t i = 0; i < size; ++i) {
    if (read[i] == memory.used.expected[offset + i]) continue;
    size_t last = i, wrong = 0;
    for (size_t j = i; j < size; ++j) {
      if (read[j] != memory.used.expected[offset + j]) last = j, ++wrong;
    }
    Wrong(name + " of " + std::to_string(memory.size) + ": byte " + std::to_string(offset + i) + " is " +
          std::to_string(read[i]) + ", not " + std::to_string(memory.used.expected[offset + i]) + "; " +
          std::to_string(wrong) + " are wrong up to " + std::to_string(offset + last));
  }
}

void CudaProgram::CloseGate() {
  if (gates_made_ == kGates) return;
  Stream& stream = AnyStream();
  auto gate = std::make_unique<Gate>();
  gate->stamp = Begin(stream);
  gate->word = Chance(50) ? words_ + 4 * gates_made_++ : 0;
  Gate* const made = gate.get();
  gates_.push_back(std::move(gate));
  if (made->word == 0) host_functions_.push_back(made->stamp);
  Do(
      "close a gate in " + std::to_string(stream.agent) + (made->word != 0 ? " by a word" : " by a function"),
      [&] {
        if (made->word != 0) return cuStreamWaitValue32(stream.handle, made->word, 1, CU_STREAM_WAIT_VALUE_GEQ);
        return cuLaunchHostFunc(stream.handle, AwaitGate, &made->function);
      },
      stream.owner);
}

void CudaProgram::Query() {
  Stream& stream = AnyStream();
  CUresult result = CUDA_SUCCESS;
  Do(
      "query stream " + std::to_string(stream.agent) + " once",
      [&] {
        result = cuStreamQuery(stream.handle);
        return result == CUDA_ERROR_NOT_READY ? CUDA_SUCCESS : result;
      },
      stream.owner);
  if (result != CUDA_SUCCESS) return;
  Tell("  it is done");
  for (const auto& gate : gates_) {
    if (stream.clock.Covers(gate->stamp)) Wrong("a stream is done, but there is a closed gate in it");
  }
  host_.Join(stream.clock);
}

void CudaProgram::Attach() {
  Memory& memory = *memories_[Pick(memories_.size())];
  if (memory.kind != MemoryKind::kManaged || memory.graphs != 0) return;
  const bool global = memory.only != kTheHost;
  Stream* const stream = global ? Find(memory.only) : &AnyStream();
  if (stream->agent == streams_[0]->agent || stream->owner != kAnybody) return;
  const Use use = {&memory, 0, memory.size, true};
  OrderOnHost(use);
  const Stamp stamp = Begin(*stream);
  Do("attach managed" + std::to_string(memory.number) + " to " + (global ? "all" : std::to_string(stream->agent)), [&] {
    return cuStreamAttachMemAsync(stream->handle, memory.device, 0,
                                  global ? CU_MEM_ATTACH_GLOBAL : CU_MEM_ATTACH_SINGLE);
  });
  memory.used.Use(0, memory.size, true, stamp);
  memory.only = global ? kTheHost : stream->agent;
}

void CudaProgram::Step() {
  const size_t kind = Pick(100);
  Memory& memory = *memories_[Pick(memories_.size())];
  if (kind < 45) return AnOperation();
  if (kind < 53) return HostWrites(memory);
  if (kind < 61) return Check(memory);
  if (kind < 65) return CloseGate();
  if (kind < 68) return Query();
  if (kind < 70) return WaitFor(AnyStream(), AnyStream());
  if (kind < 73) return memories_.size() < 14 ? MakeMemory() : FreeMemory(Pick(memories_.size()));
  if (kind < 75) return memories_.size() > 5 ? FreeMemory(Pick(memories_.size())) : MakeMemory();
  if (kind < 77) return streams_.size() < 7 ? MakeStream() : DestroyStream();
  if (kind < 78) return DestroyStream();
  if (kind < 80) return code_.size() < 3 ? MakeCode() : UnloadCode();
  if (kind < 83) return Attach();
  if (kind < 87) return options_.graphs ? MakeGraph() : AnOperation();
  if (kind < 96) return LaunchGraph();
  if (kind < 97) return UpdateGraph();
  if (kind < 98 && !graphs_.empty()) return DestroyGraph(Pick(graphs_.size()));
  if (kind < 99) return WaitOnHost(AnyStream().agent);
}

bool CudaProgram::Run(int steps) {
  try {
    Do("allocate words", [&] { return cuMemAlloc(&words_, 4 * kGates); });
    Do("clear words", [&] { return cuMemsetD32(words_, 0, kGates); });
    Do("make a stream", [&] { return cuStreamCreate(&opener_, CU_STREAM_NON_BLOCKING); });
    for (CUstream& stream : capture_)
      Do("make a stream", [&] { return cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING); });
    Do("synchronize the context", [] { return cuCtxSynchronize(); });
    streams_.push_back(std::make_unique<Stream>(Stream{CU_STREAM_LEGACY, ++agents_, false, kAnybody, {}}));
    for (size_t i = 0; i < hands_.count(); ++i) {
      if (Chance(30))
        streams_.push_back(std::make_unique<Stream>(Stream{CU_STREAM_PER_THREAD, ++agents_, true, i, {}}));
    }
    MakeStream();
    MakeStream();
    MakeCode();
    while (memories_.size() < 7) MakeMemory();
    for (int i = 0; i < steps; ++i) {
      Tell("step " + std::to_string(i));
      Step();
    }
    for (const auto& memory : memories_) Check(*memory);
    WaitForAll();
    for (const auto& memory : memories_) Check(*memory);
    while (!graphs_.empty()) DestroyGraph(0);
    while (!memories_.empty()) FreeMemory(0);
    WaitForAll();
    for (const auto& stream : streams_) {
      if (stream->handle != CU_STREAM_LEGACY && stream->owner == kAnybody)
        Do("destroy a stream", [&] { return cuStreamDestroy(stream->handle); });
    }
    for (const CUstream stream : capture_) Do("destroy a stream", [&] { return cuStreamDestroy(stream); });
    Do("destroy a stream", [&] { return cuStreamDestroy(opener_); });
    for (const CUevent event : events_) Do("destroy an event", [&] { return cuEventDestroy(event); });
    for (const Code& code : code_) Do("unload a module", [&] { return cuModuleUnload(code.module); });
    Do("free words", [&] { return cuMemFree(words_); });
  } catch (const Failed&) {
  }
  return !failed_;
}

}  // namespace hawser::random
