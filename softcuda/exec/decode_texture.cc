// SPDX-License-Identifier: Apache-2.0
// tex, tld4, txq, suld, sust, sured, suq (PTX ISA 9.7.10, 9.7.11), in unified mode: the operand is a 64-bit handle.
#include <algorithm>
#include <bit>
#include <cstring>

#include "softcuda/exec/decoder.h"
#include "softcuda/exec/sampler.h"
#include "softcuda/exec/warp.h"

namespace hawser::exec {
namespace {

enum class Level : uint8_t { kBase, kGiven, kGradient };
enum Outside : uint32_t { kTrapOutside, kClampOutside, kZeroOutside };

/// What a texture or surface instruction needs, in Extra::numbers.
enum Number : size_t { kShape, kLevel, kFloatCoordinates, kComponent, kOutside, kElementBytes, kHasSamples, kNumbers };

const TextureDescriptor* Texture(Warp& w, const Insn& i, uint32_t lane, bool surface) {
  const TextureTable* table = w.launch().config->textures;
  const uint64_t handle = w.Read(i.a, 8, lane);
  const TextureDescriptor* found = nullptr;
  if (table != nullptr) found = surface ? table->FindSurface(handle) : table->FindTexture(handle);
  if (found == nullptr || found->levels.empty() || found->levels[0].data == nullptr) {
    w.Raise(i, Fault::Kind::kIllegalAddress, lane, handle, 0, false,
            surface ? "a surface object that does not exist" : "a texture object that does not exist");
    return nullptr;
  }
  return found;
}

/// How many of the texture's bytes are alive: those of an array are, the program's own memory is looked up as by every
/// other access. The site remembers what the last look-up found.
uint64_t LiveBytes(Warp& w, const Insn& i, const TextureDescriptor& texture) {
  if (texture.extent == 0) return ~uint64_t{0};
  const auto begin = reinterpret_cast<uint64_t>(texture.levels[0].data);
  SiteCache& cache = w.sites[i.site];
  if (begin >= cache.begin && begin < cache.end && texture.extent <= cache.end - begin) return texture.extent;
  uint64_t live = 0;
  while (live < texture.extent) {  // Several mappings may follow each other.
    const auto range = w.launch().config->memory->Find(begin + live);
    if (!range) return live;
    live = range->end - begin;
  }
  cache.begin = begin;
  cache.end = begin + live;
  return texture.extent;
}

/// Lane's coordinates: slots without the layer, which is taken out first.
struct Point {
  std::array<uint32_t, 3> at{};
  uint32_t layer = 0;
};

Point PointOf(Warp& w, const Insn& i, uint32_t lane) {
  const auto shape = static_cast<TextureShape>(i.extra->numbers[kShape]);
  Point point;
  size_t next = 0;
  const auto& slots = i.extra->more;
  if (IsLayered(shape)) point.layer = w.At<uint32_t>(slots[next++])[lane];
  const size_t count = Dimensions(shape);
  for (size_t k = 0; k < count && next < slots.size(); ++k) point.at[k] = w.At<uint32_t>(slots[next++])[lane];
  return point;
}

std::array<float, 3> Floats(const std::array<uint32_t, 3>& bits) {
  return {std::bit_cast<float>(bits[0]), std::bit_cast<float>(bits[1]), std::bit_cast<float>(bits[2])};
}

/// The texel's components in the destination's type: f16 destinations are narrowed.
void SetTexel(Warp& w, const Insn& i, uint32_t lane, const Texel& texel) {
  const auto& slots = i.extra->slots;
  for (size_t k = 0; k < slots.size(); ++k) {
    if (slots[k].frame_mask == 0) continue;
    w.At<uint32_t>(slots[k])[lane] = texel[k & 3];
  }
}

void TexHandler(Warp& w, const Insn& i, uint32_t mask) {
  const auto& numbers = i.extra->numbers;
  const auto shape = static_cast<TextureShape>(numbers[kShape]);
  const size_t dimensions = Dimensions(shape);
  std::array<Texel, kLanes> results{};
  for (uint32_t m = mask; m != 0; m &= m - 1) {
    const auto lane = static_cast<uint32_t>(std::countr_zero(m));
    const TextureDescriptor* texture = Texture(w, i, lane, false);
    if (texture == nullptr) return;
    const Sampler sampler(*texture, LiveBytes(w, i, *texture));
    const auto fits = [&] {
      if (sampler.beyond() == nullptr) return true;
      w.Raise(i, Fault::Kind::kIllegalAddress, lane, reinterpret_cast<uint64_t>(sampler.beyond()),
              texture->channel_bits / 8u * texture->channels, false, "a texture over memory that is not allocated");
      return false;
    };
    const Point point = PointOf(w, i, lane);
    if (i.op == 1) {
      results[lane] = sampler.Gather(shape, Floats(point.at), point.layer, numbers[kComponent]);
      if (!fits()) return;
      continue;
    }
    if (numbers[kFloatCoordinates] == 0) {
      const auto level = numbers[kLevel] == 1 ? w.At<uint32_t>(i.b)[lane] : 0;
      results[lane] = sampler.Fetch(
          shape,
          {static_cast<int32_t>(point.at[0]), static_cast<int32_t>(point.at[1]), static_cast<int32_t>(point.at[2])},
          point.layer, level);
      if (!fits()) return;
      continue;
    }
    float lod = 0;
    if (numbers[kLevel] == static_cast<uint32_t>(Level::kGiven)) {
      lod = std::bit_cast<float>(w.At<uint32_t>(i.b)[lane]);
    } else if (numbers[kLevel] == static_cast<uint32_t>(Level::kGradient)) {
      std::array<float, 3> dx{};
      std::array<float, 3> dy{};
      // The gradients' slots follow the coordinates'.
      const auto& slots = i.extra->more;
      const size_t first = (IsLayered(shape) ? 1 : 0) + dimensions;
      for (size_t k = 0; k < dimensions; ++k) {
        dx[k] = std::bit_cast<float>(w.At<uint32_t>(slots[first + k])[lane]);
        dy[k] = std::bit_cast<float>(w.At<uint32_t>(slots[first + dimensions + k])[lane]);
      }
      lod = sampler.LevelFor(dx, dy);
    }
    results[lane] = sampler.Sample(shape, Floats(point.at), point.layer, lod);
    if (!fits()) return;
  }
  for (uint32_t m = mask; m != 0; m &= m - 1) {
    const auto lane = static_cast<uint32_t>(std::countr_zero(m));
    SetTexel(w, i, lane, results[lane]);
  }
}

/// Host address of `bytes` at a surface point; x counts bytes (.b) or texels (.p). Null: outside, or a fault.
uint8_t* SurfacePlace(Warp& w, const Insn& i, const TextureDescriptor& surface, Point point, uint32_t bytes,
                      bool formatted, uint32_t lane) {
  const auto& numbers = i.extra->numbers;
  const TextureLevel& level = surface.levels[0];
  const uint32_t texel = surface.channel_bits / 8u * surface.channels;
  const auto shape = static_cast<TextureShape>(numbers[kShape]);
  const size_t dimensions = Dimensions(shape);
  std::array<int64_t, 3> at{};
  const int64_t row_bytes = int64_t{level.width} * texel;
  const std::array<int64_t, 3> size{row_bytes, level.height, level.depth};
  for (size_t k = 0; k < dimensions; ++k) at[k] = static_cast<int32_t>(point.at[k]);
  if (formatted) at[0] *= texel;
  bool outside = at[0] < 0 || at[0] + bytes > row_bytes;
  for (size_t k = 1; k < dimensions; ++k) outside = outside || at[k] < 0 || at[k] >= size[k];
  outside = outside || point.layer >= std::max(surface.layers, 1u);
  if (outside) {
    if (numbers[kOutside] == kTrapOutside) {
      w.Raise(i, Fault::Kind::kIllegalAddress, lane, static_cast<uint64_t>(at[0]), bytes, false, "outside the surface");
      return nullptr;
    }
    if (numbers[kOutside] == kZeroOutside || row_bytes < bytes) return nullptr;
    at[0] = std::clamp<int64_t>(at[0], 0, row_bytes - bytes);
    for (size_t k = 1; k < dimensions; ++k) at[k] = std::clamp<int64_t>(at[k], 0, size[k] - 1);
    point.layer = std::min(point.layer, std::max(surface.layers, 1u) - 1);
  }
  if (!formatted && at[0] % bytes != 0) {
    w.Raise(i, Fault::Kind::kMisaligned, lane, static_cast<uint64_t>(at[0]), bytes, false);
    return nullptr;
  }
  return level.data + point.layer * level.layer_pitch + static_cast<uint64_t>(at[2]) * level.slice_pitch +
         static_cast<uint64_t>(at[1]) * level.row_pitch + static_cast<uint64_t>(at[0]);
}

/// op 0: suld, 1: sust.
void SurfaceHandler(Warp& w, const Insn& i, uint32_t mask) {
  const auto& numbers = i.extra->numbers;
  const uint32_t element = numbers[kElementBytes];
  const auto& slots = i.extra->slots;
  for (; mask != 0; mask &= mask - 1) {
    const auto lane = static_cast<uint32_t>(std::countr_zero(mask));
    const TextureDescriptor* surface = Texture(w, i, lane, true);
    if (surface == nullptr) return;
    const auto bytes = static_cast<uint32_t>(element * slots.size());
    uint8_t* place = SurfacePlace(w, i, *surface, PointOf(w, i, lane), bytes, false, lane);
    if (w.faulted()) return;
    for (size_t k = 0; k < slots.size(); ++k) {
      uint64_t value = 0;
      if (i.op == 1) {
        value = w.Read(slots[k], i.wb, lane);
        if (place != nullptr) std::memcpy(place + k * element, &value, element);
      } else {
        if (place != nullptr) std::memcpy(&value, place + k * element, element);
        if (slots[k].frame_mask != 0) w.Write(slots[k], i.wd, lane, value);
      }
    }
  }
}

/// sust.p: components converted to the surface's format.
void SurfaceFormatted(Warp& w, const Insn& i, uint32_t mask) {
  const auto& slots = i.extra->slots;
  for (; mask != 0; mask &= mask - 1) {
    const auto lane = static_cast<uint32_t>(std::countr_zero(mask));
    const TextureDescriptor* surface = Texture(w, i, lane, true);
    if (surface == nullptr) return;
    const uint32_t bytes = surface->channel_bits / 8u;
    uint8_t* place = SurfacePlace(w, i, *surface, PointOf(w, i, lane), bytes * surface->channels, true, lane);
    if (w.faulted()) return;
    if (place == nullptr) continue;
    for (size_t k = 0; k < slots.size() && k < surface->channels; ++k) {
      const uint32_t value = w.At<uint32_t>(slots[k])[lane];
      std::memcpy(place + k * bytes, &value, bytes);
    }
  }
}

enum Query : uint8_t { kWidth, kHeight, kDepth, kLayers, kLevels, kNormalized, kOther };

void QueryHandler(Warp& w, const Insn& i, uint32_t mask) {
  for (; mask != 0; mask &= mask - 1) {
    const auto lane = static_cast<uint32_t>(std::countr_zero(mask));
    const TextureDescriptor* texture = Texture(w, i, lane, i.sub == 1);
    if (texture == nullptr) return;
    const TextureLevel& level = texture->levels[0];
    uint32_t value = 0;
    switch (i.op) {
      case kWidth:
        value = level.width;
        break;
      case kHeight:
        value = level.height;
        break;
      case kDepth:
        value = level.depth;
        break;
      case kLayers:
        value = texture->layers;
        break;
      case kLevels:
        value = static_cast<uint32_t>(texture->levels.size());
        break;
      default:
        value = texture->normalized_coordinates ? 1 : 0;
    }
    w.At<uint32_t>(i.d)[lane] = value;
  }
}

std::optional<TextureShape> ShapeOf(const OpText& op) {
  if (op.Has("1d")) return TextureShape::k1d;
  if (op.Has("2d")) return TextureShape::k2d;
  if (op.Has("3d")) return TextureShape::k3d;
  if (op.Has("a1d")) return TextureShape::kA1d;
  if (op.Has("a2d")) return TextureShape::kA2d;
  if (op.Has("cube")) return TextureShape::kCube;
  if (op.Has("acube")) return TextureShape::kACube;
  return std::nullopt;
}

}  // namespace

bool FunctionDecoder::Tex(const OpText& op) {
  if (!Need(2, 6)) return false;
  const auto shape = ShapeOf(op);
  if (!shape) return Fail("this shape of texture");
  Insn insn = NewInsn();
  insn.fn = TexHandler;
  insn.op = op.base() == "tld4" ? 1 : 0;
  Extra& extra = MakeExtra(&insn);
  extra.numbers.assign(kNumbers, 0);
  extra.numbers[kShape] = static_cast<uint32_t>(*shape);
  if (ptx::SizeOf(op.type(0)) != 4 || op.type(0) == Type::kF16x2) return Fail("type");
  const Type at = insn.op == 1 ? Type::kF32 : op.type(1);
  if (at != Type::kF32 && at != Type::kS32) return Fail("type of coordinates");
  extra.numbers[kFloatCoordinates] = at == Type::kF32 ? 1 : 0;
  extra.numbers[kComponent] = op.Has("g") ? 1 : op.Has("b") ? 2 : op.Has("a") ? 3 : 0;
  const ptx::Operand& to = operand(0);
  const size_t wanted = op.Has("v4") ? 4 : op.Has("v2") ? 2 : 1;
  if (!VectorDestinations(to, Type::kB32, wanted, &extra.slots)) return false;
  const ptx::Operand& from = operand(1);
  if (from.kind != Kind::kTexture || from.count != 2) return Fail("a texture and coordinates were expected");
  if (!Source(element(from, 0), Type::kU64, &insn.a)) return false;
  const ptx::Operand& coordinates = element(from, 1);
  const size_t need = Dimensions(*shape) + (IsLayered(*shape) ? 1 : 0);
  const size_t have = coordinates.kind == Kind::kVector ? coordinates.count : 1;
  if (have < need) return Fail("too few coordinates");
  const auto add = [&](const ptx::Operand& group, size_t count) {
    for (size_t k = 0; k < count; ++k) {
      const ptx::Operand& part = group.kind == Kind::kVector ? element(group, k) : group;
      extra.more.emplace_back();
      if (!Source(part, Type::kB32, &extra.more.back())) return false;
    }
    return true;
  };
  if (!add(coordinates, need)) return false;
  if (op.Has("level")) {
    extra.numbers[kLevel] = static_cast<uint32_t>(Level::kGiven);
    if (!SourceN(2, Type::kB32, &insn.b)) return false;
  } else if (op.Has("grad")) {
    extra.numbers[kLevel] = static_cast<uint32_t>(Level::kGradient);
    if (!Need(4, 6)) return false;
    const size_t dimensions = Dimensions(*shape);
    for (const size_t which : {size_t{2}, size_t{3}}) {
      const ptx::Operand& group = operand(which);
      if ((group.kind == Kind::kVector ? group.count : 1) < dimensions) return Fail("too few gradients");
      if (!add(group, dimensions)) return false;
    }
  } else if (operands() > 2) {
    return Fail("offsets, comparisons and residency");
  }
  insn.site = image_->sites++;
  Emit(insn);
  return true;
}

bool FunctionDecoder::Surface(const OpText& op) {
  if (!Need(2)) return false;
  const auto shape = ShapeOf(op);
  if (!shape || *shape == TextureShape::kCube || *shape == TextureShape::kACube) return Fail("this shape of surface");
  const bool load = op.base() == "suld";
  const bool formatted = op.Has("p");
  if (op.base() == "sured" || (formatted && load)) return Fail("this access to a surface");
  Insn insn = NewInsn();
  insn.fn = formatted ? SurfaceFormatted : SurfaceHandler;
  insn.op = load ? 0 : 1;
  Extra& extra = MakeExtra(&insn);
  extra.numbers.assign(kNumbers, 0);
  extra.numbers[kShape] = static_cast<uint32_t>(*shape);
  extra.numbers[kOutside] = op.Has("clamp") ? kClampOutside : op.Has("zero") ? kZeroOutside : kTrapOutside;
  const Type type = op.type(0);
  extra.numbers[kElementBytes] = ptx::SizeOf(type);
  if (ptx::SizeOf(type) == 0 || ptx::SizeOf(type) > 8) return Fail("type");
  const ptx::Operand& place = operand(load ? 1 : 0);
  const ptx::Operand& value = operand(load ? 0 : 1);
  const size_t count = op.vector();
  // A vector of one is written with braces.
  if (load ? !VectorDestinations(value, type, count, &extra.slots, &insn.wd)
           : !VectorSources(value, type, count, &extra.slots, &insn.wb)) {
    return false;
  }
  if (place.kind != Kind::kTexture || place.count != 2) return Fail("a surface and coordinates were expected");
  if (!Source(element(place, 0), Type::kU64, &insn.a)) return false;
  const ptx::Operand& coordinates = element(place, 1);
  const size_t need = Dimensions(*shape) + (IsLayered(*shape) ? 1 : 0);
  if ((coordinates.kind == Kind::kVector ? coordinates.count : 1) < need) return Fail("too few coordinates");
  for (size_t k = 0; k < need; ++k) {
    const ptx::Operand& part = coordinates.kind == Kind::kVector ? element(coordinates, k) : coordinates;
    extra.more.emplace_back();
    if (!Source(part, Type::kB32, &extra.more.back())) return false;
  }
  Emit(insn);
  return true;
}

bool FunctionDecoder::Txq(const OpText& op) {
  if (!Need(2)) return false;
  Insn insn = NewInsn();
  insn.fn = QueryHandler;
  insn.sub = op.base() == "suq" ? 1 : 0;
  insn.op = op.Has("width")               ? kWidth
            : op.Has("height")            ? kHeight
            : op.Has("depth")             ? kDepth
            : op.Has("array_size")        ? kLayers
            : op.Has("num_mipmap_levels") ? kLevels
            : op.Has("normalized_coords") ? kNormalized
                                          : kOther;
  if (insn.op == kOther) return Fail("this query");
  const ptx::Operand& place = operand(1);
  if (place.kind != Kind::kAddress) return Fail("a texture in [] was expected");
  if (!Destination(operand(0), Type::kB32, &insn.d) || !Source(element(place, 0), Type::kU64, &insn.a)) return false;
  Emit(insn);
  return true;
}

}  // namespace hawser::exec
