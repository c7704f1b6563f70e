// SPDX-License-Identifier: Apache-2.0
// CUDA runtime API: arrays, and "Texture Object Management" and "Surface Object Management".
#include <cstring>

#include "interposer/cudart/entry.h"
#include "interposer/cudart/formats.h"

using namespace hawser::cudart;  // NOLINT: an entry point is not in a namespace

namespace {

static_assert(unsigned{cudaArrayLayered} == unsigned{CUDA_ARRAY3D_LAYERED});
static_assert(unsigned{cudaArraySurfaceLoadStore} == unsigned{CUDA_ARRAY3D_SURFACE_LDST});
static_assert(unsigned{cudaArrayCubemap} == unsigned{CUDA_ARRAY3D_CUBEMAP});
static_assert(unsigned{cudaArrayTextureGather} == unsigned{CUDA_ARRAY3D_TEXTURE_GATHER});
static_assert(unsigned{cudaArraySparse} == unsigned{CUDA_ARRAY3D_SPARSE});
static_assert(int{cudaAddressModeBorder} == int{CU_TR_ADDRESS_MODE_BORDER});
static_assert(int{cudaFilterModeLinear} == int{CU_TR_FILTER_MODE_LINEAR});
static_assert(sizeof(cudaResourceViewDesc) == sizeof(CUDA_RESOURCE_VIEW_DESC));
static_assert(int{cudaResViewFormatUnsignedBlockCompressed7} == int{CU_RES_VIEW_FORMAT_UNSIGNED_BC7});
static_assert(sizeof(cudaArrayMemoryRequirements) == sizeof(CUDA_ARRAY_MEMORY_REQUIREMENTS));
static_assert(sizeof(cudaArraySparseProperties) == sizeof(CUDA_ARRAY_SPARSE_PROPERTIES));

cudaError_t DescribeArray(const cudaChannelFormatDesc* format, const cudaExtent& extent, unsigned flags,
                          CUDA_ARRAY3D_DESCRIPTOR* descriptor) {
  if (format == nullptr) return cudaErrorInvalidValue;
  *descriptor = {};
  descriptor->Width = extent.width;
  descriptor->Height = extent.height;
  descriptor->Depth = extent.depth;
  descriptor->Flags = flags;
  return ToDriverFormat(*format, &descriptor->Format, &descriptor->NumChannels);
}

cudaError_t MakeArray(cudaArray_t* array, const cudaChannelFormatDesc* format, const cudaExtent& extent,
                      unsigned flags) {
  return InContext([&](const Driver& driver) {
    if (array == nullptr) return cudaErrorInvalidValue;
    CUDA_ARRAY3D_DESCRIPTOR descriptor;
    if (const cudaError_t error = DescribeArray(format, extent, flags, &descriptor); error != cudaSuccess) {
      return error;
    }
    return FromDriver(driver.cuArray3DCreate(reinterpret_cast<CUarray*>(array), &descriptor));
  });
}

cudaError_t ToDriverResource(const cudaResourceDesc& from, CUDA_RESOURCE_DESC* to) {
  *to = {};
  switch (from.resType) {
    case cudaResourceTypeArray:
      to->resType = CU_RESOURCE_TYPE_ARRAY;
      to->res.array.hArray = Array(from.res.array.array);
      return from.res.array.array != nullptr ? cudaSuccess : cudaErrorInvalidResourceHandle;
    case cudaResourceTypeMipmappedArray:
      to->resType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
      to->res.mipmap.hMipmappedArray = Mipmap(from.res.mipmap.mipmap);
      return from.res.mipmap.mipmap != nullptr ? cudaSuccess : cudaErrorInvalidResourceHandle;
    case cudaResourceTypeLinear:
      to->resType = CU_RESOURCE_TYPE_LINEAR;
      to->res.linear.devPtr = Address(from.res.linear.devPtr);
      to->res.linear.sizeInBytes = from.res.linear.sizeInBytes;
      return ToDriverFormat(from.res.linear.desc, &to->res.linear.format, &to->res.linear.numChannels);
    case cudaResourceTypePitch2D:
      to->resType = CU_RESOURCE_TYPE_PITCH2D;
      to->res.pitch2D.devPtr = Address(from.res.pitch2D.devPtr);
      to->res.pitch2D.width = from.res.pitch2D.width;
      to->res.pitch2D.height = from.res.pitch2D.height;
      to->res.pitch2D.pitchInBytes = from.res.pitch2D.pitchInBytes;
      return ToDriverFormat(from.res.pitch2D.desc, &to->res.pitch2D.format, &to->res.pitch2D.numChannels);
    default:
      return cudaErrorInvalidValue;
  }
}

cudaError_t FromDriverResource(const CUDA_RESOURCE_DESC& from, cudaResourceDesc* to) {
  std::memset(to, 0, sizeof(*to));
  switch (from.resType) {
    case CU_RESOURCE_TYPE_ARRAY:
      to->resType = cudaResourceTypeArray;
      to->res.array.array = reinterpret_cast<cudaArray_t>(from.res.array.hArray);
      return cudaSuccess;
    case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
      to->resType = cudaResourceTypeMipmappedArray;
      to->res.mipmap.mipmap = reinterpret_cast<cudaMipmappedArray_t>(from.res.mipmap.hMipmappedArray);
      return cudaSuccess;
    case CU_RESOURCE_TYPE_LINEAR:
      to->resType = cudaResourceTypeLinear;
      to->res.linear.devPtr = reinterpret_cast<void*>(from.res.linear.devPtr);
      to->res.linear.sizeInBytes = from.res.linear.sizeInBytes;
      return FromDriverFormat(from.res.linear.format, from.res.linear.numChannels, &to->res.linear.desc);
    case CU_RESOURCE_TYPE_PITCH2D:
      to->resType = cudaResourceTypePitch2D;
      to->res.pitch2D.devPtr = reinterpret_cast<void*>(from.res.pitch2D.devPtr);
      to->res.pitch2D.width = from.res.pitch2D.width;
      to->res.pitch2D.height = from.res.pitch2D.height;
      to->res.pitch2D.pitchInBytes = from.res.pitch2D.pitchInBytes;
      return FromDriverFormat(from.res.pitch2D.format, from.res.pitch2D.numChannels, &to->res.pitch2D.desc);
    default:
      return cudaErrorUnknown;
  }
}

CUDA_TEXTURE_DESC ToDriverTexture(const cudaTextureDesc& from) {
  CUDA_TEXTURE_DESC to{};
  for (int dimension = 0; dimension < 3; ++dimension) {
    to.addressMode[dimension] = static_cast<CUaddress_mode>(from.addressMode[dimension]);
  }
  to.filterMode = static_cast<CUfilter_mode>(from.filterMode);
  if (from.readMode == cudaReadModeElementType) to.flags |= CU_TRSF_READ_AS_INTEGER;
  if (from.normalizedCoords != 0) to.flags |= CU_TRSF_NORMALIZED_COORDINATES;
  if (from.sRGB != 0) to.flags |= CU_TRSF_SRGB;
  if (from.disableTrilinearOptimization != 0) to.flags |= CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION;
  if (from.seamlessCubemap != 0) to.flags |= CU_TRSF_SEAMLESS_CUBEMAP;
  to.maxAnisotropy = from.maxAnisotropy;
  to.mipmapFilterMode = static_cast<CUfilter_mode>(from.mipmapFilterMode);
  to.mipmapLevelBias = from.mipmapLevelBias;
  to.minMipmapLevelClamp = from.minMipmapLevelClamp;
  to.maxMipmapLevelClamp = from.maxMipmapLevelClamp;
  std::memcpy(to.borderColor, from.borderColor, sizeof(to.borderColor));
  return to;
}

cudaTextureDesc FromDriverTexture(const CUDA_TEXTURE_DESC& from) {
  cudaTextureDesc to{};
  for (int dimension = 0; dimension < 3; ++dimension) {
    to.addressMode[dimension] = static_cast<cudaTextureAddressMode>(from.addressMode[dimension]);
  }
  to.filterMode = static_cast<cudaTextureFilterMode>(from.filterMode);
  const auto flag = [&from](unsigned bit) { return (from.flags & bit) != 0 ? 1 : 0; };
  to.readMode = flag(CU_TRSF_READ_AS_INTEGER) != 0 ? cudaReadModeElementType : cudaReadModeNormalizedFloat;
  to.normalizedCoords = flag(CU_TRSF_NORMALIZED_COORDINATES);
  to.sRGB = flag(CU_TRSF_SRGB);
  to.disableTrilinearOptimization = flag(CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION);
  to.seamlessCubemap = flag(CU_TRSF_SEAMLESS_CUBEMAP);
  to.maxAnisotropy = from.maxAnisotropy;
  to.mipmapFilterMode = static_cast<cudaTextureFilterMode>(from.mipmapFilterMode);
  to.mipmapLevelBias = from.mipmapLevelBias;
  to.minMipmapLevelClamp = from.minMipmapLevelClamp;
  to.maxMipmapLevelClamp = from.maxMipmapLevelClamp;
  std::memcpy(to.borderColor, from.borderColor, sizeof(to.borderColor));
  return to;
}

// 32-bit integers cannot become floats between 0 and 1, and integers cannot be interpolated.
cudaError_t CheckTexture(const cudaResourceDesc& resource, const cudaTextureDesc& texture) {
  const cudaChannelFormatDesc* format = nullptr;
  if (resource.resType == cudaResourceTypeLinear) format = &resource.res.linear.desc;
  if (resource.resType == cudaResourceTypePitch2D) format = &resource.res.pitch2D.desc;
  if (format == nullptr) return cudaSuccess;
  const bool integer = format->f == cudaChannelFormatKindSigned || format->f == cudaChannelFormatKindUnsigned;
  if (!integer) return cudaSuccess;
  if (texture.readMode == cudaReadModeNormalizedFloat && format->x == 32) return cudaErrorInvalidNormSetting;
  if (texture.readMode == cudaReadModeElementType && texture.filterMode == cudaFilterModeLinear) {
    return cudaErrorInvalidFilterSetting;
  }
  return cudaSuccess;
}

}  // namespace

extern "C" {

cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w, cudaChannelFormatKind kind) {
  return {x, y, z, w, kind};
}

cudaError_t cudaGetChannelDesc(cudaChannelFormatDesc* format, cudaArray_const_t array) {
  return InContext([&](const Driver& driver) {
    if (format == nullptr) return cudaErrorInvalidValue;
    CUDA_ARRAY3D_DESCRIPTOR descriptor{};
    const CUresult result = driver.cuArray3DGetDescriptor(&descriptor, Array(array));
    if (result != CUDA_SUCCESS) return FromDriver(result);
    return FromDriverFormat(descriptor.Format, descriptor.NumChannels, format);
  });
}

cudaError_t cudaMallocArray(cudaArray_t* array, const cudaChannelFormatDesc* format, size_t width, size_t height,
                            unsigned flags) {
  return MakeArray(array, format, {width, height, 0}, flags);
}

cudaError_t cudaMalloc3DArray(cudaArray_t* array, const cudaChannelFormatDesc* format, cudaExtent extent,
                              unsigned flags) {
  return MakeArray(array, format, extent, flags);
}

cudaError_t cudaMallocMipmappedArray(cudaMipmappedArray_t* array, const cudaChannelFormatDesc* format,
                                     cudaExtent extent, unsigned levels, unsigned flags) {
  return InContext([&](const Driver& driver) {
    if (array == nullptr) return cudaErrorInvalidValue;
    CUDA_ARRAY3D_DESCRIPTOR descriptor;
    if (const cudaError_t error = DescribeArray(format, extent, flags, &descriptor); error != cudaSuccess) {
      return error;
    }
    return FromDriver(driver.cuMipmappedArrayCreate(reinterpret_cast<CUmipmappedArray*>(array), &descriptor, levels));
  });
}

cudaError_t cudaFreeArray(cudaArray_t array) {
  return InContext(
      [&](const Driver& driver) { return array == nullptr ? CUDA_SUCCESS : driver.cuArrayDestroy(Array(array)); });
}

cudaError_t cudaFreeMipmappedArray(cudaMipmappedArray_t array) {
  return InContext([&](const Driver& driver) {
    return array == nullptr ? CUDA_SUCCESS : driver.cuMipmappedArrayDestroy(Mipmap(array));
  });
}

cudaError_t cudaGetMipmappedArrayLevel(cudaArray_t* level_array, cudaMipmappedArray_const_t array, unsigned level) {
  return InContext([&](const Driver& driver) {
    if (level_array == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return driver.cuMipmappedArrayGetLevel(reinterpret_cast<CUarray*>(level_array), Mipmap(array), level);
  });
}

cudaError_t cudaArrayGetInfo(cudaChannelFormatDesc* format, cudaExtent* extent, unsigned* flags, cudaArray_t array) {
  return InContext([&](const Driver& driver) {
    CUDA_ARRAY3D_DESCRIPTOR descriptor{};
    const CUresult result = driver.cuArray3DGetDescriptor(&descriptor, Array(array));
    if (result != CUDA_SUCCESS) return FromDriver(result);
    if (extent != nullptr) *extent = {descriptor.Width, descriptor.Height, descriptor.Depth};
    if (flags != nullptr) *flags = descriptor.Flags;
    return format == nullptr ? cudaSuccess : FromDriverFormat(descriptor.Format, descriptor.NumChannels, format);
  });
}

cudaError_t cudaArrayGetPlane(cudaArray_t* plane, cudaArray_t array, unsigned index) {
  return InContext([&](const Driver& driver) {
    if (plane == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return driver.cuArrayGetPlane(reinterpret_cast<CUarray*>(plane), Array(array), index);
  });
}

cudaError_t cudaArrayGetMemoryRequirements(cudaArrayMemoryRequirements* requirements, cudaArray_t array, int ordinal) {
  return WithDevice(ordinal, [&](Device& device) {
    return Runtime::Get().driver().cuArrayGetMemoryRequirements(
        reinterpret_cast<CUDA_ARRAY_MEMORY_REQUIREMENTS*>(requirements), Array(array), device.handle());
  });
}

cudaError_t cudaMipmappedArrayGetMemoryRequirements(cudaArrayMemoryRequirements* requirements,
                                                    cudaMipmappedArray_t array, int ordinal) {
  return WithDevice(ordinal, [&](Device& device) {
    return Runtime::Get().driver().cuMipmappedArrayGetMemoryRequirements(
        reinterpret_cast<CUDA_ARRAY_MEMORY_REQUIREMENTS*>(requirements), Mipmap(array), device.handle());
  });
}

cudaError_t cudaArrayGetSparseProperties(cudaArraySparseProperties* properties, cudaArray_t array) {
  return InContext([&](const Driver& driver) {
    return driver.cuArrayGetSparseProperties(reinterpret_cast<CUDA_ARRAY_SPARSE_PROPERTIES*>(properties), Array(array));
  });
}

cudaError_t cudaMipmappedArrayGetSparseProperties(cudaArraySparseProperties* properties, cudaMipmappedArray_t array) {
  return InContext([&](const Driver& driver) {
    return driver.cuMipmappedArrayGetSparseProperties(reinterpret_cast<CUDA_ARRAY_SPARSE_PROPERTIES*>(properties),
                                                      Mipmap(array));
  });
}

cudaError_t cudaCreateTextureObject(cudaTextureObject_t* object, const cudaResourceDesc* resource,
                                    const cudaTextureDesc* texture, const cudaResourceViewDesc* view) {
  return InContext([&](const Driver& driver) {
    if (object == nullptr || resource == nullptr || texture == nullptr) return cudaErrorInvalidValue;
    if (const cudaError_t error = CheckTexture(*resource, *texture); error != cudaSuccess) return error;
    CUDA_RESOURCE_DESC driver_resource;
    if (const cudaError_t error = ToDriverResource(*resource, &driver_resource); error != cudaSuccess) return error;
    const CUDA_TEXTURE_DESC driver_texture = ToDriverTexture(*texture);
    return FromDriver(driver.cuTexObjectCreate(object, &driver_resource, &driver_texture,
                                               reinterpret_cast<const CUDA_RESOURCE_VIEW_DESC*>(view)));
  });
}

cudaError_t cudaDestroyTextureObject(cudaTextureObject_t object) {
  return InContext([&](const Driver& driver) { return driver.cuTexObjectDestroy(object); });
}

cudaError_t cudaGetTextureObjectResourceDesc(cudaResourceDesc* resource, cudaTextureObject_t object) {
  return InContext([&](const Driver& driver) {
    if (resource == nullptr) return cudaErrorInvalidValue;
    CUDA_RESOURCE_DESC answer{};
    const CUresult result = driver.cuTexObjectGetResourceDesc(&answer, object);
    return result == CUDA_SUCCESS ? FromDriverResource(answer, resource) : FromDriver(result);
  });
}

cudaError_t cudaGetTextureObjectTextureDesc(cudaTextureDesc* texture, cudaTextureObject_t object) {
  return InContext([&](const Driver& driver) {
    if (texture == nullptr) return CUDA_ERROR_INVALID_VALUE;
    CUDA_TEXTURE_DESC answer{};
    const CUresult result = driver.cuTexObjectGetTextureDesc(&answer, object);
    if (result == CUDA_SUCCESS) *texture = FromDriverTexture(answer);
    return result;
  });
}

cudaError_t cudaGetTextureObjectResourceViewDesc(cudaResourceViewDesc* view, cudaTextureObject_t object) {
  return InContext([&](const Driver& driver) {
    if (view == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return driver.cuTexObjectGetResourceViewDesc(reinterpret_cast<CUDA_RESOURCE_VIEW_DESC*>(view), object);
  });
}

cudaError_t cudaCreateSurfaceObject(cudaSurfaceObject_t* object, const cudaResourceDesc* resource) {
  return InContext([&](const Driver& driver) {
    if (object == nullptr || resource == nullptr) return cudaErrorInvalidValue;
    // Surfaces are arrays.
    if (resource->resType != cudaResourceTypeArray) return cudaErrorInvalidValue;
    CUDA_RESOURCE_DESC driver_resource;
    if (const cudaError_t error = ToDriverResource(*resource, &driver_resource); error != cudaSuccess) return error;
    return FromDriver(driver.cuSurfObjectCreate(object, &driver_resource));
  });
}

cudaError_t cudaDestroySurfaceObject(cudaSurfaceObject_t object) {
  return InContext([&](const Driver& driver) { return driver.cuSurfObjectDestroy(object); });
}

cudaError_t cudaGetSurfaceObjectResourceDesc(cudaResourceDesc* resource, cudaSurfaceObject_t object) {
  return InContext([&](const Driver& driver) {
    if (resource == nullptr) return cudaErrorInvalidValue;
    CUDA_RESOURCE_DESC answer{};
    const CUresult result = driver.cuSurfObjectGetResourceDesc(&answer, object);
    return result == CUDA_SUCCESS ? FromDriverResource(answer, resource) : FromDriver(result);
  });
}

}  // extern "C"
