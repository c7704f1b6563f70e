// SPDX-License-Identifier: Apache-2.0
// Tensor maps: what a CUtensorMap of this device holds, and where the box lies that one bulk copy moves (PTX ISA 5.5,
// the tiled mode without interleaving). Pure arithmetic over values that a program may have damaged: nothing here reads
// memory.
#ifndef HAWSER_SOFTCUDA_EXEC_TENSOR_MAP_H_
#define HAWSER_SOFTCUDA_EXEC_TENSOR_MAP_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace hawser::exec {

/// A tensor in global memory and the box of it that a copy moves. Opaque to programs, which keep it in 128 bytes and
/// hand it to kernels by value or by address.
struct TensorMap {
  static constexpr size_t kBytes = 128;  ///< Of a CUtensorMap.
  static constexpr uint32_t kMark = 0x31744d48;
  static constexpr size_t kMostDimensions = 5;
  static constexpr uint64_t kMostElements = uint64_t{1} << 32;  ///< Of a dimension.
  static constexpr uint32_t kLongestBox = 256;                  ///< Elements along a dimension.
  static constexpr uint32_t kLongestStep = 8;

  uint32_t mark = 0;          ///< kMark
  uint8_t dimensions = 0;     ///< 1 to kMostDimensions
  uint8_t element_bytes = 0;  ///< 1, 2, 4, 8
  uint8_t swizzle_bits = 0;   ///< How many bits of an offset in shared memory change: 0 to 3 (none, 32, 64, 128 bytes).
  uint8_t flush_denormals = 0;                         ///< 1: of 32-bit floats, as they are loaded.
  uint64_t address = 0;                                ///< Of the first element.
  std::array<uint64_t, kMostDimensions> size{};        ///< Elements.
  std::array<uint64_t, kMostDimensions - 1> stride{};  ///< Bytes from one to the next of dimension 1, 2, ...
  uint64_t fill = 0;                                   ///< What an element has that lies outside of the tensor.
  std::array<uint16_t, kMostDimensions> box{};         ///< Elements that the box spans.
  std::array<uint8_t, kMostDimensions> step{};         ///< Every step-th of them is moved; 1 for dimension 0.
  uint8_t reserved = 0;

  /// The map in the kBytes at `from`; its mark is not kMark if there is none.
  static TensorMap From(const void* from);
  /// Into the kBytes at `to`.
  void Store(void* to) const;

  /// Whether a copy may go by it: programs can change the bytes of a map, so it is asked before each.
  bool Valid() const;
  /// Elements of the box along a dimension that are moved.
  uint32_t Moved(size_t dimension) const;
  /// Runs along dimension 0 that the box consists of.
  uint32_t Rows() const;
  /// Bytes of a run in shared memory; always a multiple of 16.
  uint32_t RowBytes() const { return uint32_t{box[0]} * element_bytes; }
  /// Bytes of the box in shared memory.
  uint64_t BoxBytes() const { return uint64_t{Rows()} * RowBytes(); }

  /// The part of a run that lies in the tensor.
  struct Run {
    uint32_t first = 0;    ///< Elements of the run before it.
    uint32_t count = 0;    ///< 0: nothing of it.
    uint64_t address = 0;  ///< Of the part's first element.
  };
  /// Run `row` of the box whose first element has these coordinates.
  Run RowAt(const std::array<int32_t, kMostDimensions>& at, uint32_t row) const;

  /// Where the 16 bytes at `offset` in shared memory lie with the map's swizzling.
  uint64_t Swizzled(uint64_t offset) const {
    return offset ^ ((offset >> 3) & (((uint64_t{1} << swizzle_bits) - 1) << 4));
  }
};

static_assert(sizeof(TensorMap) <= TensorMap::kBytes);
// The same numbers give the same bytes.
static_assert(std::has_unique_object_representations_v<TensorMap>);

}  // namespace hawser::exec

#endif  // HAWSER_SOFTCUDA_EXEC_TENSOR_MAP_H_
