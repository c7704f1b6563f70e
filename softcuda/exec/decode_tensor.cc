// SPDX-License-Identifier: Apache-2.0
// cp.async.bulk.tensor: boxes of a tensor between global and shared memory (PTX ISA 9.7.9.27), in the tiled mode; and
// tensormap, which changes maps and copies them. A copy is done when its instruction is.
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "softcuda/exec/decoder.h"
#include "softcuda/exec/mbarrier.h"
#include "softcuda/exec/tensor_map.h"
#include "softcuda/exec/warp.h"

namespace hawser::exec {
namespace {

using ptx::Space;

constexpr uint32_t kChunk = 16;  // Bytes that swizzling keeps together.
/// What boxes in shared memory are aligned to.
constexpr uint32_t kBoxAlignment = 128;

/// The map at `address`, which may be a parameter of the kernel; none after raising a fault.
std::optional<TensorMap> ReadMap(Warp& w, const Insn& i, uint64_t address, uint32_t lane) {
  // In words of 8: parameters have no larger alignment. The ends must lie in one range.
  const char* first = w.Resolve(i, Space::kGlobal, address, 8, false, lane);
  if (first == nullptr) return std::nullopt;
  const char* last = w.Resolve(i, Space::kGlobal, address + TensorMap::kBytes - 8, 8, false, lane);
  if (last == nullptr) return std::nullopt;
  const TensorMap map = TensorMap::From(first);
  if (!map.Valid()) {
    w.Raise(i, Fault::Kind::kIllegalInstruction, lane, address, TensorMap::kBytes, false,
            "a copy of a tensor by 128 bytes that are no tensor map of this device");
    return std::nullopt;
  }
  return map;
}

/// False after raising a fault: [address, address + bytes) is not of one allocation that may be used so.
bool InMemory(Warp& w, const Insn& i, uint32_t lane, uint64_t address, uint32_t bytes, bool write,
              std::optional<Range>* last) {
  std::optional<Range>& range = *last;
  if (!range || address < range->begin || address >= range->end) range = w.launch().config->memory->Find(address);
  if (range && bytes <= range->end - address && (range->writable || !write)) return true;
  w.Raise(i, Fault::Kind::kIllegalAddress, lane, address, bytes, write,
          range && (range->writable || !write) ? "a tensor's box, across the end of an allocation" : "a tensor's box");
  return false;
}

void FlushDenormals(char* floats, size_t bytes) {
  for (size_t at = 0; at + 4 <= bytes; at += 4) {
    uint32_t bits = 0;
    std::memcpy(&bits, floats + at, 4);
    if ((bits & 0x7f800000) == 0) bits &= 0x80000000;
    std::memcpy(floats + at, &bits, 4);
  }
}

/// From global to shared memory: what lies outside of the tensor is filled.
bool Load(Warp& w, const Insn& i, uint32_t lane, const TensorMap& map,
          const std::array<int32_t, TensorMap::kMostDimensions>& at, char* box, uint64_t offset) {
  std::vector<char> row(map.RowBytes());
  std::optional<Range> range;
  for (uint32_t number = 0; number < map.Rows(); ++number) {
    const TensorMap::Run run = map.RowAt(at, number);
    if (run.count < map.box[0]) {
      for (uint32_t k = 0; k < map.box[0]; ++k) {
        std::memcpy(row.data() + size_t{k} * map.element_bytes, &map.fill, map.element_bytes);
      }
    }
    if (run.count > 0) {
      const uint32_t bytes = run.count * map.element_bytes;
      if (!InMemory(w, i, lane, run.address, bytes, false, &range)) return false;
      char* part = row.data() + size_t{run.first} * map.element_bytes;
      std::memcpy(part, reinterpret_cast<const char*>(run.address), bytes);
      if (map.flush_denormals != 0) FlushDenormals(part, bytes);
    }
    const uint64_t begin = offset + uint64_t{number} * map.RowBytes();
    for (uint32_t k = 0; k < map.RowBytes(); k += kChunk) {
      std::memcpy(box - offset + map.Swizzled(begin + k), row.data() + k, kChunk);
    }
  }
  return true;
}

/// From shared to global memory: what lies outside of the tensor stays as it is.
bool Store(Warp& w, const Insn& i, uint32_t lane, const TensorMap& map,
           const std::array<int32_t, TensorMap::kMostDimensions>& at, const char* box, uint64_t offset) {
  std::vector<char> row(map.RowBytes());
  std::optional<Range> range;
  for (uint32_t number = 0; number < map.Rows(); ++number) {
    const TensorMap::Run run = map.RowAt(at, number);
    if (run.count == 0) continue;
    const uint32_t bytes = run.count * map.element_bytes;
    if (!InMemory(w, i, lane, run.address, bytes, true, &range)) return false;
    const uint64_t begin = offset + uint64_t{number} * map.RowBytes();
    for (uint32_t k = 0; k < map.RowBytes(); k += kChunk) {
      std::memcpy(row.data() + k, box - offset + map.Swizzled(begin + k), kChunk);
    }
    std::memcpy(reinterpret_cast<char*>(run.address), row.data() + size_t{run.first} * map.element_bytes, bytes);
  }
  return true;
}

struct Box {
  char* begin = nullptr;
  uint64_t offset = 0;  ///< In the shared memory of its block.
};

/// The box at a shared address; none after raising a fault.
std::optional<Box> BoxAt(Warp& w, const Insn& i, uint32_t lane, const TensorMap& map, uint64_t place) {
  const bool store = i.op == 1;
  Box box;
  box.begin = w.Resolve(i, Space::kShared, place, kChunk, !store, lane);
  if (box.begin == nullptr) return std::nullopt;
  box.offset = static_cast<uint64_t>(box.begin - w.block().cluster.BaseOf(box.begin));
  if (box.offset % kBoxAlignment != 0) {
    w.Raise(i, Fault::Kind::kMisaligned, lane, place, kBoxAlignment, !store,
            "a tensor's box in shared memory that is not aligned to 128 bytes");
    return std::nullopt;
  }
  // Swizzling moves chunks within 128 bytes, all of which must be the block's.
  const uint64_t whole = map.swizzle_bits == 0 ? 1 : kBoxAlignment;
  const uint64_t end = (box.offset + map.BoxBytes() + whole - 1) / whole * whole;
  if (end <= w.shared_bytes) return box;
  w.Raise(i, Fault::Kind::kIllegalAddress, lane, place, static_cast<uint32_t>(map.BoxBytes()), !store,
          "a tensor's box of " + std::to_string(map.BoxBytes()) + " bytes, across the end of the block's " +
              std::to_string(w.shared_bytes) + " bytes of shared memory");
  return std::nullopt;
}

/// a + imm: the box in shared memory; b + numbers: the map; extra->more: coordinates; e and r: the barrier object when
/// sub is 1. op 1: from shared to global.
void TensorCopy(Warp& w, const Insn& i, uint32_t mask) {
  const bool store = i.op == 1;
  const Extra& extra = *i.extra;
  const uint64_t map_offset = extra.numbers[0] | uint64_t{extra.numbers[1]} << 32;
  for (; mask != 0; mask &= mask - 1) {
    const auto lane = static_cast<uint32_t>(std::countr_zero(mask));
    const std::optional<TensorMap> map = ReadMap(w, i, w.ReadAddress(i.b, 8, lane, map_offset), lane);
    if (!map) return;
    if (map->dimensions != extra.more.size()) {
      w.Raise(i, Fault::Kind::kIllegalInstruction, lane, 0, 0, false,
              "a copy of a tensor with " + std::to_string(extra.more.size()) + " coordinates by a map of " +
                  std::to_string(map->dimensions) + " dimensions");
      return;
    }
    std::array<int32_t, TensorMap::kMostDimensions> at{};
    for (size_t k = 0; k < extra.more.size(); ++k) at[k] = static_cast<int32_t>(w.Read(extra.more[k], 4, lane));
    const bool copied = ForTargets(w, i, lane, [&](std::optional<uint32_t> rank) {
      uint64_t place = w.ReadAddress(i.a, i.wa, lane, i.imm);
      if (rank) place = w.block().cluster.At(place, *rank);
      const auto box = BoxAt(w, i, lane, *map, place);
      if (!box) return false;
      if (!(store ? Store(w, i, lane, *map, at, box->begin, box->offset)
                  : Load(w, i, lane, *map, at, box->begin, box->offset))) {
        return false;
      }
      return i.sub != 1 || CompleteTransaction(w, i, lane, static_cast<uint32_t>(map->BoxBytes()), rank);
    });
    if (!copied) return;
  }
}

/// tensormap.replace: Insn::op.
enum Field : uint8_t {
  kAddress,
  kRank,
  kBoxSize,
  kTensorSize,
  kTensorStride,
  kElementStep,
  kElementType,
  kSwizzle,
  kFill,
  kNothingElse,
};

/// Bytes of the element types by number: u8, u16, u32, s32, u64, s64, f16, f32, f32.ftz, f64, bf16, tf32, tf32.ftz.
constexpr std::array<uint8_t, 13> kElementBytes{1, 2, 4, 4, 8, 8, 2, 4, 4, 8, 2, 4, 4};
constexpr uint64_t kFlushedFloat = 8;
constexpr uint64_t kFlushedTf32 = 12;

/// sub: the dimension; b: the new value.
void ReplaceField(Warp& w, const Insn& i, uint32_t mask) {
  for (; mask != 0; mask &= mask - 1) {
    const auto lane = static_cast<uint32_t>(std::countr_zero(mask));
    const uint64_t address = w.ReadAddress(i.a, i.wa, lane, i.imm);
    char* place = w.Resolve(i, i.space, address, TensorMap::kBytes, true, lane);
    if (place == nullptr) return;
    TensorMap map = TensorMap::From(place);
    if (map.mark != TensorMap::kMark || (i.op == kElementType && map.fill != 0)) {
      w.Raise(i, Fault::Kind::kIllegalInstruction, lane, address, TensorMap::kBytes, true,
              map.mark != TensorMap::kMark ? "a change of 128 bytes that are no tensor map of this device"
                                           : "another type of elements for a tensor map that fills with NaN");
      return;
    }
    const uint64_t value = w.Read(i.b, i.wb, lane);
    switch (i.op) {
      case kAddress:
        map.address = value;
        break;
      case kRank:  // Counted from 0. What is too much is refused where the map is used.
        map.dimensions = static_cast<uint8_t>(std::min<uint64_t>(value + 1, 255));
        break;
      case kBoxSize:
        map.box[i.sub] = static_cast<uint16_t>(std::min<uint64_t>(value, UINT16_MAX));
        break;
      case kTensorSize:
        map.size[i.sub] = value;
        break;
      case kTensorStride:
        map.stride[i.sub] = value;
        break;
      case kElementStep:
        map.step[i.sub] = static_cast<uint8_t>(std::min<uint64_t>(value, UINT8_MAX));
        break;
      case kElementType:
        map.element_bytes = kElementBytes[value];
        map.flush_denormals = value == kFlushedFloat || value == kFlushedTf32 ? 1 : 0;
        break;
      case kSwizzle:
        map.swizzle_bits = static_cast<uint8_t>(value);
        break;
      case kFill:
        map.fill = 0;
        break;
      default:
        break;
    }
    map.Store(place);
  }
}

/// tensormap.cp_fenceproxy: a map from shared memory (b + target) to global.
void CopyMap(Warp& w, const Insn& i, uint32_t mask) {
  for (; mask != 0; mask &= mask - 1) {
    const auto lane = static_cast<uint32_t>(std::countr_zero(mask));
    const uint64_t from =
        w.ReadAddress(i.b, i.wb, lane, static_cast<uint64_t>(int64_t{static_cast<int32_t>(i.target)}));
    const char* source = w.Resolve(i, Space::kShared, from, TensorMap::kBytes, false, lane);
    if (source == nullptr) return;
    char* target = w.Resolve(i, Space::kGlobal, w.ReadAddress(i.a, i.wa, lane, i.imm), TensorMap::kBytes, true, lane);
    if (target == nullptr) return;
    std::memcpy(target, source, TensorMap::kBytes);
  }
}

}  // namespace

bool FunctionDecoder::TensorMapOp(const OpText& op) {
  Insn insn = NewInsn();
  insn.site = image_->sites++;
  if (op.Has("cp_fenceproxy")) {
    Insn from = NewInsn();
    if (!Need(3) || !Address(operand(0), Space::kGlobal, &insn) || !Address(operand(1), Space::kShared, &from)) {
      return false;
    }
    if (operand(2).kind != Kind::kInteger || operand(2).value != TensorMap::kBytes) return Fail("size");
    if (from.imm + 0x80000000 > 0xffffffff) return Fail("the source's offset");
    insn.b = from.a;
    insn.wb = from.wa;
    insn.target = static_cast<uint32_t>(from.imm);
    insn.fn = CopyMap;
    Emit(insn);
    return true;
  }
  if (!op.Has("replace") || !op.Has("tile") || !op.Has("b1024")) return Fail("this operation");
  struct Known {
    std::string_view name;
    Field field;
    uint32_t count;  ///< Dimensions that have it; 0: the map has one.
    uint64_t most;   ///< Value, of those that must be constants.
  };
  static constexpr Known kKnown[] = {
      {"global_address", kAddress, 0, 0},
      {"rank", kRank, 0, 0},
      {"box_dim", kBoxSize, TensorMap::kMostDimensions, 0},
      {"global_dim", kTensorSize, TensorMap::kMostDimensions, 0},
      {"global_stride", kTensorStride, TensorMap::kMostDimensions - 1, 0},
      {"element_stride", kElementStep, TensorMap::kMostDimensions, 0},
      {"elemtype", kElementType, 0, kElementBytes.size() - 1},
      {"swizzle_mode", kSwizzle, 0, 3},
      {"fill_mode", kFill, 0, 0},
      {"interleave_layout", kNothingElse, 0, 0},
      {"swizzle_atomicity", kNothingElse, 0, 0},
  };
  const Known* known = nullptr;
  for (const Known& each : kKnown) known = op.Has(each.name) ? &each : known;
  if (known == nullptr) return Fail("this field");
  insn.op = known->field;
  if (!Need(known->count != 0 ? 3 : 2) || !Address(operand(0), op.space(), &insn)) return false;
  if (known->count != 0) {
    if (operand(1).kind != Kind::kInteger || operand(1).value >= known->count) return Fail("the dimension");
    insn.sub = static_cast<uint8_t>(operand(1).value);
  }
  const ptx::Operand& value = operand(operands() - 1);
  if (insn.op >= kElementType && (value.kind != Kind::kInteger || value.value > known->most)) {
    return Fail("this value of ." + std::string(known->name));
  }
  insn.wb = op.Has("b64") ? 8 : 4;
  if (!Source(value, insn.wb == 8 ? Type::kB64 : Type::kB32, &insn.b)) return false;
  insn.fn = ReplaceField;
  Emit(insn);
  return true;
}

bool FunctionDecoder::TensorCopyOp(const OpText& op) {
  for (const char* mode :
       {"im2col", "im2col_no_offs", "im2col::w", "im2col::w::128", "tile::gather4", "tile::scatter4"}) {
    if (op.Has(mode)) return Fail("bulk copies of tensors in the mode ." + std::string(mode));
  }
  if (op.Has("cta_group::1") || op.Has("cta_group::2")) return Fail("bulk copies by groups of blocks");
  size_t dimensions = 0;
  for (size_t k = 1; k <= TensorMap::kMostDimensions; ++k) {
    if (op.Has(std::to_string(k) + "d")) dimensions = k;
  }
  if (dimensions == 0) return Fail("a bulk copy of a tensor without dimensions");
  const bool store = op.Has("bulk_group");
  if (!store && !op.Has("mbarrier::complete_tx::bytes")) return Fail("a bulk copy of a tensor that completes nothing");
  if (!Need(store ? 2 : 3, 5)) return false;
  Insn insn = NewInsn();
  insn.fn = TensorCopy;
  insn.op = store ? 1 : 0;
  if (!Address(operand(store ? 1 : 0), Space::kShared, &insn)) return false;
  const ptx::Operand& tensor = operand(store ? 0 : 1);
  if (tensor.kind != Kind::kTexture || tensor.count != 2) return Fail("a tensor map and coordinates were expected");
  Extra& extra = MakeExtra(&insn);
  ptx::Operand map = element(tensor, 0);
  extra.numbers.assign(2, 0);
  if (map.kind == Kind::kRegister) {
    extra.numbers[0] = static_cast<uint32_t>(map.value);
    extra.numbers[1] = static_cast<uint32_t>(map.value >> 32);
    map.value = 0;
    if (!Source(map, Type::kU64, &insn.b)) return false;
  } else if (!AddressOf(map, 8, &insn.b)) {
    return false;
  }
  const ptx::Operand& coordinates = element(tensor, 1);
  if ((coordinates.kind == Kind::kVector ? coordinates.count : 1) != dimensions)
    return Fail("the number of coordinates");
  for (size_t k = 0; k < dimensions; ++k) {
    const ptx::Operand& part = coordinates.kind == Kind::kVector ? element(coordinates, k) : coordinates;
    extra.more.emplace_back();
    if (!Source(part, Type::kS32, &extra.more.back())) return false;
  }
  insn.site = image_->sites++;
  if (!store && (!BarrierObject(operand(2), &insn) || !Multicast(op, 3, &insn))) return false;
  Emit(insn);
  return true;
}

}  // namespace hawser::exec
