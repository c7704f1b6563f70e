// SPDX-License-Identifier: Apache-2.0
#include "softcuda/driver/texture_objects.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "softcuda/driver/handle_table.h"

namespace hawser::soft {
namespace {

CUresult DescribeFormat(CUarray_format format, unsigned channels, exec::TextureDescriptor* to) {
  const uint32_t bytes = ChannelBytes(format);
  if (bytes == 0 || (channels != 1 && channels != 2 && channels != 4)) return CUDA_ERROR_INVALID_VALUE;
  to->channel_bits = static_cast<uint8_t>(8 * bytes);
  to->channels = static_cast<uint8_t>(channels);
  switch (format) {
    case CU_AD_FORMAT_HALF:
    case CU_AD_FORMAT_FLOAT:
      to->kind = exec::ChannelKind::kFloat;
      break;
    case CU_AD_FORMAT_SIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT32:
      to->kind = exec::ChannelKind::kSigned;
      break;
    default:
      to->kind = exec::ChannelKind::kUnsigned;
  }
  return CUDA_SUCCESS;
}

exec::TextureLevel LevelOf(const Array& array) {
  exec::TextureLevel level;
  level.data = array.data;
  level.width = static_cast<uint32_t>(array.descriptor.Width);
  level.height = array.height();
  level.depth = array.layered() ? 1 : array.depth();
  level.row_pitch = array.row_pitch;
  level.slice_pitch = array.slice_pitch;
  level.layer_pitch = array.slice_pitch;
  return level;
}

CUresult DescribeArray(const Array& array, exec::TextureDescriptor* to) {
  if (const CUresult result = DescribeFormat(array.descriptor.Format, array.descriptor.NumChannels, to);
      result != CUDA_SUCCESS) {
    return result;
  }
  to->layers = array.layered() ? array.depth() : 1;
  if (array.levels.empty()) {
    to->levels.push_back(LevelOf(array));
  } else {
    for (const ArrayPtr& level : array.levels) to->levels.push_back(LevelOf(*level));
  }
  return CUDA_SUCCESS;
}

CUresult DescribeLinear(const CUDA_RESOURCE_DESC& resource, exec::TextureDescriptor* to) {
  const auto& linear = resource.res.linear;
  if (const CUresult result = DescribeFormat(linear.format, linear.numChannels, to); result != CUDA_SUCCESS) {
    return result;
  }
  const uint32_t texel = to->channels * to->channel_bits / 8U;
  exec::TextureLevel level;
  level.data = reinterpret_cast<uint8_t*>(linear.devPtr);
  level.width = static_cast<uint32_t>(std::min<uint64_t>(linear.sizeInBytes / texel, uint64_t{1} << 28));
  level.row_pitch = linear.sizeInBytes;
  level.slice_pitch = linear.sizeInBytes;
  to->linear_memory = true;
  to->extent = uint64_t{level.width} * texel;
  to->levels.push_back(level);
  return level.data == nullptr || level.width == 0 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult DescribePitch(const CUDA_RESOURCE_DESC& resource, exec::TextureDescriptor* to) {
  const auto& pitch = resource.res.pitch2D;
  if (const CUresult result = DescribeFormat(pitch.format, pitch.numChannels, to); result != CUDA_SUCCESS) {
    return result;
  }
  exec::TextureLevel level;
  level.data = reinterpret_cast<uint8_t*>(pitch.devPtr);
  level.width = static_cast<uint32_t>(pitch.width);
  level.height = static_cast<uint32_t>(pitch.height);
  level.row_pitch = pitch.pitchInBytes;
  level.slice_pitch = pitch.pitchInBytes * pitch.height;
  to->extent = pitch.pitchInBytes * (pitch.height - 1) + uint64_t{level.width} * (to->channels * to->channel_bits / 8U);
  to->levels.push_back(level);
  const bool empty = level.data == nullptr || level.width == 0 || level.height == 0;
  return empty || pitch.pitchInBytes % 32 != 0 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

exec::AddressMode ModeOf(CUaddress_mode mode) {
  switch (mode) {
    case CU_TR_ADDRESS_MODE_WRAP:
      return exec::AddressMode::kWrap;
    case CU_TR_ADDRESS_MODE_MIRROR:
      return exec::AddressMode::kMirror;
    case CU_TR_ADDRESS_MODE_BORDER:
      return exec::AddressMode::kBorder;
    case CU_TR_ADDRESS_MODE_CLAMP:
      break;
  }
  return exec::AddressMode::kClamp;
}

}  // namespace

CUresult DescribeTexture(TextureObject* object) {
  exec::TextureDescriptor& to = object->descriptor;
  CUresult result = CUDA_ERROR_INVALID_VALUE;
  switch (object->resource.resType) {
    case CU_RESOURCE_TYPE_ARRAY:
    case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
      if (object->array != nullptr) result = DescribeArray(*object->array, &to);
      break;
    case CU_RESOURCE_TYPE_LINEAR:
      if (!object->surface) result = DescribeLinear(object->resource, &to);
      break;
    case CU_RESOURCE_TYPE_PITCH2D:
      if (!object->surface) result = DescribePitch(object->resource, &to);
      break;
  }
  if (result != CUDA_SUCCESS || object->surface) return result;
  const CUDA_TEXTURE_DESC& from = object->texture;
  for (size_t i = 0; i < 3; ++i) to.address[i] = ModeOf(from.addressMode[i]);
  to.linear_filter = from.filterMode == CU_TR_FILTER_MODE_LINEAR;
  to.linear_mipmap_filter = from.mipmapFilterMode == CU_TR_FILTER_MODE_LINEAR;
  to.normalized_coordinates = (from.flags & CU_TRSF_NORMALIZED_COORDINATES) != 0;
  to.read_as_integer = (from.flags & CU_TRSF_READ_AS_INTEGER) != 0;
  to.srgb = (from.flags & CU_TRSF_SRGB) != 0;
  to.mipmap_bias = from.mipmapLevelBias;
  to.min_level = from.minMipmapLevelClamp;
  to.max_level = from.maxMipmapLevelClamp;
  std::copy(std::begin(from.borderColor), std::end(from.borderColor), to.border.begin());
  return CUDA_SUCCESS;
}

uint64_t TextureObjects::Add(std::unique_ptr<TextureObject> object) {
  const uint64_t handle = NextHandle();
  const std::unique_lock lock(mutex_);
  objects_.emplace(handle, std::move(object));
  return handle;
}

const TextureObject* TextureObjects::Live(uint64_t handle, bool surface) const {
  const auto found = objects_.find(handle);
  if (found == objects_.end() || found->second->destroyed || found->second->surface != surface) return nullptr;
  return found->second.get();
}

std::optional<CUDA_RESOURCE_DESC> TextureObjects::Resource(uint64_t handle, bool surface) const {
  const std::shared_lock lock(mutex_);
  const TextureObject* const object = Live(handle, surface);
  if (object == nullptr) return std::nullopt;
  return object->resource;
}

std::optional<CUDA_TEXTURE_DESC> TextureObjects::Texture(uint64_t handle) const {
  const std::shared_lock lock(mutex_);
  const TextureObject* const object = Live(handle, false);
  if (object == nullptr) return std::nullopt;
  return object->texture;
}

std::optional<CUDA_RESOURCE_VIEW_DESC> TextureObjects::View(uint64_t handle) const {
  const std::shared_lock lock(mutex_);
  const TextureObject* const object = Live(handle, false);
  if (object == nullptr) return std::nullopt;
  return object->view;
}

bool TextureObjects::Hide(uint64_t handle, bool surface) {
  const std::unique_lock lock(mutex_);
  if (Live(handle, surface) == nullptr) return false;
  objects_[handle]->destroyed = true;
  return true;
}

void TextureObjects::Remove(uint64_t handle) {
  const std::unique_lock lock(mutex_);
  objects_.erase(handle);
}

const exec::TextureDescriptor* TextureObjects::Descriptor(uint64_t handle, bool surface) const {
  const std::shared_lock lock(mutex_);
  const auto found = objects_.find(handle);
  if (found == objects_.end() || found->second->surface != surface) return nullptr;
  return &found->second->descriptor;
}

}  // namespace hawser::soft
