// SPDX-License-Identifier: Apache-2.0
// Functions that every device has without a module defining them: vprintf, malloc, free, __assertfail (PTX
// interoperability guide, system calls), and cudaGraphSetConditional, which NVIDIA's device runtime library defines in
// machine code alone.
#include "softcuda/exec/system_calls.h"

#include <array>
#include <bit>
#include <cstring>

#include "softcuda/exec/decoder.h"
#include "softcuda/exec/print_format.h"
#include "softcuda/exec/warp.h"

namespace hawser::exec {

uint64_t Argument(const Warp& w, const Insn& i, size_t index, uint32_t lane) {
  const CallArgument& argument = i.extra->call.arguments[index];
  if (argument.is_register) return w.Read(argument.slot, argument.size, lane);
  uint64_t value = 0;
  std::memcpy(&value, w.At<char>(Slot{argument.area, ~uint64_t{0}}) + size_t{lane} * argument.size, argument.size);
  return value;
}

void SetResult(const Warp& w, const Insn& i, uint32_t lane, uint64_t value) {
  if (i.extra->call.results.empty()) return;
  const CallArgument& result = i.extra->call.results[0];
  if (result.is_register) {
    if (result.slot.frame_mask != 0 && result.size != 0) w.Write(result.slot, result.size, lane, value);
    return;
  }
  std::memcpy(w.At<char>(Slot{result.area, ~uint64_t{0}}) + size_t{lane} * result.size, &value,
              std::min<size_t>(8, result.size));
}

void StructureArgument(const Warp& w, const Insn& i, size_t index, uint32_t lane, void* to, size_t bytes) {
  const CallArgument& argument = i.extra->call.arguments[index];
  std::memcpy(to, w.At<char>(Slot{argument.area, ~uint64_t{0}}) + size_t{lane} * argument.size, bytes);
}

namespace {

constexpr size_t kMaxString = 64 * 1024;

std::optional<std::string> ReadString(Warp& w, const Insn& i, uint64_t address, uint32_t lane) {
  std::string text;
  while (text.size() < kMaxString) {
    const char* place = w.Resolve(i, ptx::Space::kNone, address + text.size(), 1, false, lane);
    if (place == nullptr) return std::nullopt;
    if (*place == '\0') return text;
    text += *place;
  }
  return text;
}

void Vprintf(Warp& w, const Insn& i, uint32_t mask) {
  for (; mask != 0 && !w.faulted(); mask &= mask - 1) {
    const auto lane = static_cast<uint32_t>(std::countr_zero(mask));
    const auto format = ReadString(w, i, Argument(w, i, 0, lane), lane);
    if (!format) return;
    const uint64_t buffer = Argument(w, i, 1, lane);
    const ArgumentReader argument = [&](uint32_t offset, uint32_t size) -> std::optional<uint64_t> {
      const char* place = w.Resolve(i, ptx::Space::kNone, buffer + offset, size, false, lane);
      if (place == nullptr) return std::nullopt;
      uint64_t value = 0;
      std::memcpy(&value, place, size);
      return value;
    };
    const StringReader string = [&](uint64_t address) { return ReadString(w, i, address, lane); };
    const Printed printed = FormatPrint(*format, argument, string);
    if (w.faulted()) return;
    PrintSink* sink = w.launch().config->print;
    if (sink != nullptr) sink->Write(printed.text);
    SetResult(w, i, lane, static_cast<uint32_t>(printed.arguments));
  }
}

void Malloc(Warp& w, const Insn& i, uint32_t mask) {
  DeviceHeap* heap = w.launch().config->heap;
  for (; mask != 0; mask &= mask - 1) {
    const auto lane = static_cast<uint32_t>(std::countr_zero(mask));
    SetResult(w, i, lane, heap != nullptr ? heap->Allocate(Argument(w, i, 0, lane)) : 0);
  }
}

void Free(Warp& w, const Insn& i, uint32_t mask) {
  DeviceHeap* heap = w.launch().config->heap;
  for (; mask != 0; mask &= mask - 1) {
    const auto lane = static_cast<uint32_t>(std::countr_zero(mask));
    const uint64_t address = Argument(w, i, 0, lane);
    if (address == 0 || (heap != nullptr && heap->Free(address))) continue;
    w.Raise(i, Fault::Kind::kTrap, lane, address, 0, false, "free() of an address that malloc() did not give");
    return;
  }
}

void AssertFail(Warp& w, const Insn& i, uint32_t mask) {
  const auto lane = static_cast<uint32_t>(std::countr_zero(mask));
  const auto message = ReadString(w, i, Argument(w, i, 0, lane), lane);
  const auto file = ReadString(w, i, Argument(w, i, 1, lane), lane);
  const auto function = ReadString(w, i, Argument(w, i, 3, lane), lane);
  if (w.faulted()) return;
  const auto triple = [](const std::array<uint32_t, 3>& v) {
    return "[" + std::to_string(v[0]) + "," + std::to_string(v[1]) + "," + std::to_string(v[2]) + "]";
  };
  const std::array<uint32_t, 3> thread{w.tid_x[lane], w.tid_y[lane], w.tid_z[lane]};
  w.Raise(i, Fault::Kind::kAssert, lane, 0, 0, false,
          *file + ":" + std::to_string(static_cast<uint32_t>(Argument(w, i, 2, lane))) + ": " + *function +
              ": block: " + triple(w.block().position) + ", thread: " + triple(thread) + " Assertion `" + *message +
              "` failed.");
}

void SetConditional(Warp& w, const Insn& i, uint32_t mask) {
  ConditionSink* conditions = w.launch().config->conditions;
  if (conditions == nullptr) return;
  for (; mask != 0; mask &= mask - 1) {
    const auto lane = static_cast<uint32_t>(std::countr_zero(mask));
    const uint64_t handle = Argument(w, i, 0, lane);
    if (conditions->Set(handle, static_cast<uint32_t>(Argument(w, i, 1, lane)))) continue;
    w.Raise(i, Fault::Kind::kTrap, lane, handle, 0, true,
            "cudaGraphSetConditional() of a handle that this graph lacks");
    return;
  }
}

struct NamedCall {
  std::string_view name;
  SystemCall call;
};

constexpr std::array<NamedCall, 5> kCalls = {{
    {"vprintf", {Vprintf, 2, {}}},
    {"malloc", {Malloc, 1, {}}},
    {"free", {Free, 1, {}}},
    {"__assertfail", {AssertFail, 4, {}}},
    {"cudaGraphSetConditional", {SetConditional, 2, {}}},
}};

}  // namespace

const SystemCall* FindSystemCall(std::string_view name) {
  for (const NamedCall& known : kCalls) {
    if (known.name == name) return &known.call;
  }
  return FindRuntimeCall(name);
}

bool Fits(const SystemCall& call, std::span<const CallArgument> arguments) {
  if (arguments.size() < call.arguments || arguments.size() > SystemCall::kMaxArguments) return false;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const CallArgument& argument = arguments[i];
    const uint32_t structure = call.structures[i];
    if (structure != 0 ? argument.is_register || argument.size != structure : argument.size > 8) return false;
  }
  return true;
}

}  // namespace hawser::exec
