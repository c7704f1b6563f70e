// SPDX-License-Identifier: Apache-2.0
// cp.async.bulk.tensor: boxes of a tensor between global and shared memory (PTX ISA 9.7.9.27), in the tiled mode. A
// copy is done when its instruction is; there are no clusters, so that a multicast reaches its own block.
#include <array>
#include <bit>
#include <cstring>
#include <optional>
#include <string>
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
    const uint64_t place = w.ReadAddress(i.a, i.wa, lane, i.imm);
    char* box = w.Resolve(i, Space::kShared, place, kChunk, !store, lane);
    if (box == nullptr) return;
    const auto offset = static_cast<uint64_t>(box - w.shared);
    if (offset % kBoxAlignment != 0) {
      w.Raise(i, Fault::Kind::kMisaligned, lane, place, kBoxAlignment, !store,
              "a tensor's box in shared memory that is not aligned to 128 bytes");
      return;
    }
    // Swizzling moves chunks within 128 bytes, all of which must be the block's.
    const uint64_t whole = map->swizzle_bits == 0 ? 1 : kBoxAlignment;
    const uint64_t end = (offset + map->BoxBytes() + whole - 1) / whole * whole;
    if (end > w.shared_bytes) {
      w.Raise(i, Fault::Kind::kIllegalAddress, lane, place, static_cast<uint32_t>(map->BoxBytes()), !store,
              "a tensor's box of " + std::to_string(map->BoxBytes()) + " bytes, across the end of the block's " +
                  std::to_string(w.shared_bytes) + " bytes of shared memory");
      return;
    }
    if (!(store ? Store(w, i, lane, *map, at, box, offset) : Load(w, i, lane, *map, at, box, offset))) return;
    if (i.sub == 1 && !CompleteTransaction(w, i, lane, static_cast<uint32_t>(map->BoxBytes()))) return;
  }
}

}  // namespace

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
  if (!store && !BarrierObject(operand(2), &insn)) return false;
  Emit(insn);
  return true;
}

}  // namespace hawser::exec
