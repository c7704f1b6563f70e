// SPDX-License-Identifier: Apache-2.0
// Entry points: arrays, texture and surface objects.
#include <algorithm>
#include <optional>

#include "softcuda/driver/capture.h"
#include "softcuda/driver/entry.h"

using namespace hawser::soft;  // NOLINT(google-build-using-namespace): entry points are global.

namespace {

constexpr unsigned kKnownFlags = CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_SURFACE_LDST | CUDA_ARRAY3D_CUBEMAP |
                                 CUDA_ARRAY3D_TEXTURE_GATHER | CUDA_ARRAY3D_DEPTH_TEXTURE |
                                 CUDA_ARRAY3D_COLOR_ATTACHMENT;

CUresult Create(CUarray* to, const CUDA_ARRAY3D_DESCRIPTOR& descriptor, bool version3d) {
  ContextPtr context;
  HAWSER_TRY(WorkingContext(&context));
  if (to == nullptr || (descriptor.Flags & ~kKnownFlags) != 0) return CUDA_ERROR_INVALID_VALUE;
  HAWSER_TRY(CheckUnsafe());
  ArrayPtr array;
  HAWSER_TRY(MakeArray(context->device(), context->handle, descriptor, &array));
  array->version3d = version3d;
  *to = reinterpret_cast<CUarray>(GetDriver()->arrays.Add(array));
  return CUDA_SUCCESS;
}

CUresult FindArray(CUarray handle, ArrayPtr* array) {
  ContextPtr context;
  HAWSER_TRY(WorkingContext(&context));
  *array = GetDriver()->arrays.Find(handle);
  return *array == nullptr ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS;
}

/// Kernels in flight may read it: it goes when they are done.
CUresult Destroy(uint64_t handle) {
  ContextPtr context;
  HAWSER_TRY(WorkingContext(&context));
  const ArrayPtr array = GetDriver()->arrays.Find(handle);
  if (array == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  context->Drain();
  GetDriver()->arrays.Remove(handle);
  return context->error();
}

uint32_t Half(uint32_t size, unsigned level) { return size == 0 ? 0 : std::max(1U, size >> level); }

CUresult FindResource(TextureObject* object) {
  Driver* const driver = GetDriver();
  const CUDA_RESOURCE_DESC& resource = object->resource;
  if (resource.flags != 0) return CUDA_ERROR_INVALID_VALUE;
  switch (resource.resType) {
    case CU_RESOURCE_TYPE_ARRAY:
      object->array = driver->arrays.Find(resource.res.array.hArray);
      return object->array == nullptr ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS;
    case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
      object->array = driver->arrays.Find(resource.res.mipmap.hMipmappedArray);
      return object->array == nullptr ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS;
    case CU_RESOURCE_TYPE_LINEAR:
      return driver->memory.Covers(resource.res.linear.devPtr, resource.res.linear.sizeInBytes)
                 ? CUDA_SUCCESS
                 : CUDA_ERROR_INVALID_VALUE;
    case CU_RESOURCE_TYPE_PITCH2D: {
      const auto& pitch = resource.res.pitch2D;
      const uint64_t row = static_cast<uint64_t>(ChannelBytes(pitch.format)) * pitch.numChannels * pitch.width;
      uint64_t bytes = 0;
      const bool fits = pitch.height != 0 && row <= pitch.pitchInBytes &&
                        !__builtin_mul_overflow(pitch.pitchInBytes, pitch.height - 1, &bytes) &&
                        !__builtin_add_overflow(bytes, row, &bytes);
      return fits && driver->memory.Covers(pitch.devPtr, bytes) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    }
  }
  return CUDA_ERROR_INVALID_VALUE;
}

CUresult MakeObject(unsigned long long* to, const CUDA_RESOURCE_DESC* resource, const CUDA_TEXTURE_DESC* texture,
                    const CUDA_RESOURCE_VIEW_DESC* view, bool surface) {
  ContextPtr context;
  HAWSER_TRY(WorkingContext(&context));
  if (to == nullptr || resource == nullptr || (!surface && texture == nullptr)) return CUDA_ERROR_INVALID_VALUE;
  auto object = std::make_unique<TextureObject>();
  object->resource = *resource;
  object->surface = surface;
  if (texture != nullptr) object->texture = *texture;
  if (view != nullptr) object->view = *view;
  if (surface && resource->resType != CU_RESOURCE_TYPE_ARRAY) return CUDA_ERROR_INVALID_VALUE;
  HAWSER_TRY(FindResource(object.get()));
  HAWSER_TRY(DescribeTexture(object.get()));
  *to = GetDriver()->textures.Add(std::move(object));
  return CUDA_SUCCESS;
}

CUresult DestroyObject(unsigned long long handle, bool surface) {
  ContextPtr context;
  HAWSER_TRY(WorkingContext(&context));
  Driver* const driver = GetDriver();
  if (!driver->textures.Hide(handle, surface)) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(context->mutex);
  driver->queue.Submit([driver, handle] { driver->textures.Remove(handle); }, context->AllTails());
  return CUDA_SUCCESS;
}

/// Gives what a query found.
template <typename T>
CUresult Give(T* to, const std::optional<T>& found) {
  if (to == nullptr || !found.has_value()) return CUDA_ERROR_INVALID_VALUE;
  *to = *found;
  return CUDA_SUCCESS;
}

}  // namespace

extern "C" {

CUresult CUDAAPI cuArrayCreate_v2(CUarray* array, const CUDA_ARRAY_DESCRIPTOR* descriptor) {
  if (descriptor == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUDA_ARRAY3D_DESCRIPTOR wide{};
  wide.Width = descriptor->Width;
  wide.Height = descriptor->Height;
  wide.Format = descriptor->Format;
  wide.NumChannels = descriptor->NumChannels;
  return Create(array, wide, false);
}

CUresult CUDAAPI cuArray3DCreate_v2(CUarray* array, const CUDA_ARRAY3D_DESCRIPTOR* descriptor) {
  return descriptor == nullptr ? CUDA_ERROR_INVALID_VALUE : Create(array, *descriptor, true);
}

CUresult CUDAAPI cuArrayGetDescriptor_v2(CUDA_ARRAY_DESCRIPTOR* descriptor, CUarray handle) {
  ArrayPtr array;
  HAWSER_TRY(FindArray(handle, &array));
  if (descriptor == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *descriptor = {array->descriptor.Width, array->descriptor.Height, array->descriptor.Format,
                 array->descriptor.NumChannels};
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuArray3DGetDescriptor_v2(CUDA_ARRAY3D_DESCRIPTOR* descriptor, CUarray handle) {
  ArrayPtr array;
  HAWSER_TRY(FindArray(handle, &array));
  if (descriptor == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *descriptor = array->descriptor;
  return CUDA_SUCCESS;
}

// What only arrays have that get their memory later, which cannot be made here (kKnownFlags).

CUresult CUDAAPI cuArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS*, CUarray handle, CUdevice) {
  ArrayPtr array;
  HAWSER_TRY(FindArray(handle, &array));
  return CUDA_ERROR_INVALID_VALUE;
}

CUresult CUDAAPI cuArrayGetSparseProperties(CUDA_ARRAY_SPARSE_PROPERTIES*, CUarray handle) {
  ArrayPtr array;
  HAWSER_TRY(FindArray(handle, &array));
  return CUDA_ERROR_INVALID_VALUE;
}

CUresult CUDAAPI cuMipmappedArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS*, CUmipmappedArray handle,
                                                       CUdevice) {
  ArrayPtr whole;
  HAWSER_TRY(FindArray(reinterpret_cast<CUarray>(handle), &whole));
  return CUDA_ERROR_INVALID_VALUE;
}

CUresult CUDAAPI cuMipmappedArrayGetSparseProperties(CUDA_ARRAY_SPARSE_PROPERTIES*, CUmipmappedArray handle) {
  ArrayPtr whole;
  HAWSER_TRY(FindArray(reinterpret_cast<CUarray>(handle), &whole));
  return CUDA_ERROR_INVALID_VALUE;
}

CUresult CUDAAPI cuArrayDestroy(CUarray handle) { return Destroy(Number(handle)); }

CUresult CUDAAPI cuMipmappedArrayCreate(CUmipmappedArray* to, const CUDA_ARRAY3D_DESCRIPTOR* descriptor,
                                        unsigned int levels) {
  ContextPtr context;
  HAWSER_TRY(WorkingContext(&context));
  if (to == nullptr || descriptor == nullptr || levels == 0 || levels > 18) return CUDA_ERROR_INVALID_VALUE;
  auto whole = std::make_shared<Array>();
  whole->context = context->handle;
  whole->device = context->device();
  whole->descriptor = *descriptor;
  for (unsigned level = 0; level < levels; ++level) {
    CUDA_ARRAY3D_DESCRIPTOR shape = *descriptor;
    shape.Width = Half(static_cast<uint32_t>(descriptor->Width), level);
    shape.Height = Half(static_cast<uint32_t>(descriptor->Height), level);
    const bool layered = (descriptor->Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP)) != 0;
    if (!layered) shape.Depth = Half(static_cast<uint32_t>(descriptor->Depth), level);
    ArrayPtr array;
    HAWSER_TRY(MakeArray(context->device(), context->handle, shape, &array));
    GetDriver()->arrays.Add(array);
    whole->levels.push_back(std::move(array));
    const bool last = shape.Width <= 1 && shape.Height <= 1 && (layered || shape.Depth <= 1);
    if (last) break;
  }
  *to = reinterpret_cast<CUmipmappedArray>(GetDriver()->arrays.Add(whole));
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMipmappedArrayGetLevel(CUarray* to, CUmipmappedArray handle, unsigned int level) {
  ContextPtr context;
  HAWSER_TRY(WorkingContext(&context));
  const ArrayPtr whole = GetDriver()->arrays.Find(handle);
  if (whole == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (to == nullptr || level >= whole->levels.size()) return CUDA_ERROR_INVALID_VALUE;
  *to = reinterpret_cast<CUarray>(whole->levels[level]->handle);
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMipmappedArrayDestroy(CUmipmappedArray handle) {
  Driver* driver = nullptr;
  HAWSER_TRY(GetReady(&driver));
  const ArrayPtr whole = driver->arrays.Find(handle);
  if (whole == nullptr || whole->levels.empty()) return CUDA_ERROR_INVALID_HANDLE;
  const CUresult result = Destroy(Number(handle));
  for (const ArrayPtr& level : whole->levels) driver->arrays.Remove(level->handle);
  return result;
}

CUresult CUDAAPI cuTexObjectCreate(CUtexObject* to, const CUDA_RESOURCE_DESC* resource,
                                   const CUDA_TEXTURE_DESC* texture, const CUDA_RESOURCE_VIEW_DESC* view) {
  return MakeObject(to, resource, texture, view, false);
}

CUresult CUDAAPI cuTexObjectDestroy(CUtexObject object) { return DestroyObject(object, false); }

CUresult CUDAAPI cuTexObjectGetResourceDesc(CUDA_RESOURCE_DESC* to, CUtexObject object) {
  Driver* driver = nullptr;
  HAWSER_TRY(GetReady(&driver));
  return Give(to, driver->textures.Resource(object, false));
}

CUresult CUDAAPI cuTexObjectGetTextureDesc(CUDA_TEXTURE_DESC* to, CUtexObject object) {
  Driver* driver = nullptr;
  HAWSER_TRY(GetReady(&driver));
  return Give(to, driver->textures.Texture(object));
}

CUresult CUDAAPI cuTexObjectGetResourceViewDesc(CUDA_RESOURCE_VIEW_DESC* to, CUtexObject object) {
  Driver* driver = nullptr;
  HAWSER_TRY(GetReady(&driver));
  return Give(to, driver->textures.View(object));
}

CUresult CUDAAPI cuSurfObjectCreate(CUsurfObject* to, const CUDA_RESOURCE_DESC* resource) {
  return MakeObject(to, resource, nullptr, nullptr, true);
}

CUresult CUDAAPI cuSurfObjectDestroy(CUsurfObject object) { return DestroyObject(object, true); }

CUresult CUDAAPI cuSurfObjectGetResourceDesc(CUDA_RESOURCE_DESC* to, CUsurfObject object) {
  Driver* driver = nullptr;
  HAWSER_TRY(GetReady(&driver));
  return Give(to, driver->textures.Resource(object, true));
}

}  // extern "C"
