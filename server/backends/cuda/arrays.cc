// SPDX-License-Identifier: Apache-2.0
// Arrays, textures and surfaces.
#include <algorithm>
#include <cstring>

#include "server/backends/cuda/backend.h"

namespace hawser::server::cuda_backend {
namespace {

/// Bytes of one channel; 0: the format is not known.
uint64_t ChannelBytes(uint32_t format) {
  switch (format) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT8:
      return 1;
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF:
      return 2;
    default:
      return 4;  // Block-compressed ones take less.
  }
}

/// What an array of this shape takes, about: what the driver adds for alignment it does not say.
bool ArrayBytes(uint64_t width, uint64_t height, uint64_t depth, uint32_t format, uint32_t channels, uint64_t* bytes) {
  *bytes = ChannelBytes(format);
  for (const uint64_t factor :
       {uint64_t{channels}, width, std::max<uint64_t>(height, 1), std::max<uint64_t>(depth, 1)}) {
    if (__builtin_mul_overflow(*bytes, factor, bytes)) return false;
  }
  return true;
}

}  // namespace

int32_t CudaBackend::CreateArray(const cuda::Call& call, const cuda::CreateArray& message) {
  int32_t status = 0;
  if (Enter(message.context, &status) == nullptr) return Fail(call, status, message.array, message.context);
  if (driver_.cuArray3DCreate == nullptr) return Fail(call, kNotSupported, message.array, message.context);
  Array array;
  array.context = message.context;
  uint64_t charge = 0;
  if (!ArrayBytes(message.width, message.height, message.depth, message.format, message.channels, &charge)) {
    return Fail(call, CUDA_ERROR_INVALID_VALUE, message.array, message.context);
  }
  if (!ledger_->Reserve(charge)) return Fail(call, CUDA_ERROR_OUT_OF_MEMORY, message.array, message.context);
  CUDA_ARRAY3D_DESCRIPTOR descriptor{};
  descriptor.Width = message.width;
  descriptor.Height = message.height;
  descriptor.Depth = message.depth;
  descriptor.Format = static_cast<CUarray_format>(message.format);
  descriptor.NumChannels = message.channels;
  descriptor.Flags = message.flags;
  const CUresult result = driver_.cuArray3DCreate(&array.native, &descriptor);
  if (result != CUDA_SUCCESS) {
    ledger_->Cancel(charge);
    return Finish(call, result, message.context, message.array);
  }
  ledger_->Commit(charge);
  array.owned = OwnedArray(&driver_, array.native);
  array.charge = charge;
  status = Keep(message.array, std::move(array));
  if (status == 0) return 0;
  ledger_->Release(charge);
  return Fail(call, status);
}

int32_t CudaBackend::CreateMipmap(const cuda::Call& call, const cuda::CreateMipmap& message) {
  int32_t status = 0;
  if (Enter(message.context, &status) == nullptr) return Fail(call, status, message.mipmap, message.context);
  if (driver_.cuMipmappedArrayCreate == nullptr) return Fail(call, kNotSupported, message.mipmap, message.context);
  uint64_t charge = 0;
  if (!ArrayBytes(message.width, message.height, message.depth, message.format, message.channels, &charge) ||
      __builtin_mul_overflow(charge, uint64_t{2}, &charge)) {
    return Fail(call, CUDA_ERROR_INVALID_VALUE, message.mipmap, message.context);
  }
  if (!ledger_->Reserve(charge)) return Fail(call, CUDA_ERROR_OUT_OF_MEMORY, message.mipmap, message.context);
  CUDA_ARRAY3D_DESCRIPTOR descriptor{};
  descriptor.Width = message.width;
  descriptor.Height = message.height;
  descriptor.Depth = message.depth;
  descriptor.Format = static_cast<CUarray_format>(message.format);
  descriptor.NumChannels = message.channels;
  descriptor.Flags = message.flags;
  CUmipmappedArray native = nullptr;
  const CUresult result = driver_.cuMipmappedArrayCreate(&native, &descriptor, message.levels);
  if (result != CUDA_SUCCESS) {
    ledger_->Cancel(charge);
    return Finish(call, result, message.context, message.mipmap);
  }
  ledger_->Commit(charge);
  Mipmap mipmap;
  mipmap.context = message.context;
  mipmap.owned = OwnedMipmap(&driver_, native);
  mipmap.charge = charge;
  status = Keep(message.mipmap, std::move(mipmap));
  if (status == 0) return 0;
  ledger_->Release(charge);
  return Fail(call, status);
}

int32_t CudaBackend::GetMipmapLevel(const cuda::Call& call, const cuda::GetMipmapLevel& message) {
  int32_t status = 0;
  const Mipmap* mipmap = Use<Mipmap>(message.mipmap, &status);
  if (mipmap == nullptr) return Fail(call, status, message.array);
  if (driver_.cuMipmappedArrayGetLevel == nullptr) return Fail(call, kNotSupported, message.array);
  if (Enter(mipmap->context, &status) == nullptr) return Fail(call, status, message.array);
  Array array;
  array.context = mipmap->context;
  const CUresult result = driver_.cuMipmappedArrayGetLevel(&array.native, mipmap->owned.get(), message.level);
  if (result != CUDA_SUCCESS) return Finish(call, result, mipmap->context, message.array);
  status = Keep(message.array, std::move(array));
  return status == 0 ? 0 : Fail(call, status);
}

int32_t CudaBackend::CreateTexture(const cuda::Call& call, const cuda::CreateTexture& message) {
  cuda::Value reply;
  const auto answer = [&](int32_t status) {
    reason_.clear();
    reply.status = status;
    Reply(call, reply);
    return 0;
  };
  int32_t status = 0;
  if (Enter(message.context, &status) == nullptr) return answer(status);
  if (driver_.cuTexObjectCreate == nullptr) return answer(kNotSupported);
  CUDA_RESOURCE_DESC resource{};
  resource.resType = static_cast<CUresourcetype>(message.resource);
  switch (resource.resType) {
    case CU_RESOURCE_TYPE_ARRAY: {
      const Array* array = Use<Array>(message.object, &status);
      if (array == nullptr) return answer(status);
      resource.res.array.hArray = array->native;
      break;
    }
    case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY: {
      const Mipmap* mipmap = Use<Mipmap>(message.object, &status);
      if (mipmap == nullptr) return answer(status);
      resource.res.mipmap.hMipmappedArray = mipmap->owned.get();
      break;
    }
    case CU_RESOURCE_TYPE_LINEAR:
      if (!Owns(message.address, message.width)) return answer(CUDA_ERROR_INVALID_VALUE);
      resource.res.linear.devPtr = message.address;
      resource.res.linear.format = static_cast<CUarray_format>(message.format);
      resource.res.linear.numChannels = message.channels;
      resource.res.linear.sizeInBytes = message.width;
      break;
    case CU_RESOURCE_TYPE_PITCH2D: {
      uint64_t row = 0;
      if (!ArrayBytes(message.width, 1, 1, message.format, message.channels, &row) ||
          !memory_.HoldsRegion(message.address, row, message.height, message.pitch, 1, 0)) {
        return answer(CUDA_ERROR_INVALID_VALUE);
      }
      resource.res.pitch2D.devPtr = message.address;
      resource.res.pitch2D.format = static_cast<CUarray_format>(message.format);
      resource.res.pitch2D.numChannels = message.channels;
      resource.res.pitch2D.width = message.width;
      resource.res.pitch2D.height = message.height;
      resource.res.pitch2D.pitchInBytes = message.pitch;
      break;
    }
    default:
      return answer(CUDA_ERROR_INVALID_VALUE);
  }
  CUDA_TEXTURE_DESC texture{};
  for (size_t i = 0; i < 3; ++i) texture.addressMode[i] = static_cast<CUaddress_mode>(message.address_modes[i]);
  texture.filterMode = static_cast<CUfilter_mode>(message.filter);
  texture.flags = message.flags;
  texture.maxAnisotropy = message.max_anisotropy;
  texture.mipmapFilterMode = static_cast<CUfilter_mode>(message.mipmap_filter);
  const auto number = [&](size_t i) {
    float value = 0;
    const uint32_t bits = message.floats[i];
    std::memcpy(&value, &bits, sizeof(value));
    return value;
  };
  texture.mipmapLevelBias = number(0);
  texture.minMipmapLevelClamp = number(1);
  texture.maxMipmapLevelClamp = number(2);
  for (size_t i = 0; i < 4; ++i) texture.borderColor[i] = number(3 + i);
  CUDA_RESOURCE_VIEW_DESC view{};
  view.format = static_cast<CUresourceViewFormat>(message.view[0]);
  view.width = message.view[1];
  view.height = message.view[2];
  view.depth = message.view[3];
  view.firstMipmapLevel = static_cast<unsigned>(message.view[4]);
  view.lastMipmapLevel = static_cast<unsigned>(message.view[5]);
  view.firstLayer = static_cast<unsigned>(message.view[6]);
  view.lastLayer = static_cast<unsigned>(message.view[7]);
  CUtexObject object = 0;
  const CUresult result =
      driver_.cuTexObjectCreate(&object, &resource, &texture, message.has_view != 0 ? &view : nullptr);
  Note(message.context, result);
  if (result == CUDA_SUCCESS) textures_.insert(object);
  reply.value = object;
  return answer(result);
}

int32_t CudaBackend::DestroyTexture(const cuda::Call& call, const cuda::DestroyTexture& message) {
  int32_t status = 0;
  if (Enter(message.context, &status) == nullptr) return Fail(call, status);
  // The driver may take the value for an address.
  if (driver_.cuTexObjectDestroy == nullptr || textures_.erase(message.value) == 0) {
    return Fail(call, Explain(CUDA_ERROR_INVALID_VALUE, "there is no such texture"), {}, message.context);
  }
  return Finish(call, driver_.cuTexObjectDestroy(message.value), message.context);
}

int32_t CudaBackend::CreateSurface(const cuda::Call& call, const cuda::CreateSurface& message) {
  cuda::Value reply;
  const Array* array = Use<Array>(message.array, &reply.status);
  if (array != nullptr && Enter(message.context, &reply.status) != nullptr) {
    CUDA_RESOURCE_DESC resource{};
    resource.resType = CU_RESOURCE_TYPE_ARRAY;
    resource.res.array.hArray = array->native;
    CUsurfObject object = 0;
    reply.status =
        driver_.cuSurfObjectCreate == nullptr ? kNotSupported : driver_.cuSurfObjectCreate(&object, &resource);
    if (reply.status == 0) surfaces_.insert(object);
    reply.value = object;
  }
  reason_.clear();
  Reply(call, reply);
  return 0;
}

int32_t CudaBackend::DestroySurface(const cuda::Call& call, const cuda::DestroySurface& message) {
  int32_t status = 0;
  if (Enter(message.context, &status) == nullptr) return Fail(call, status);
  if (driver_.cuSurfObjectDestroy == nullptr || surfaces_.erase(message.value) == 0) {
    return Fail(call, Explain(CUDA_ERROR_INVALID_VALUE, "there is no such surface"), {}, message.context);
  }
  return Finish(call, driver_.cuSurfObjectDestroy(message.value), message.context);
}

}  // namespace hawser::server::cuda_backend
