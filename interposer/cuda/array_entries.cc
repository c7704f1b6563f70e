// SPDX-License-Identifier: Apache-2.0
// cuArray*, cuMipmappedArray*.
#include <algorithm>
#include <bit>

#include "interposer/cuda/array.h"
#include "interposer/cuda/capture.h"
#include "interposer/cuda/entry.h"

using namespace hawser;      // NOLINT(google-build-using-namespace): entry points live outside of namespaces.
using namespace hawser::cu;  // NOLINT(google-build-using-namespace)

namespace {

/// Arrays that get their memory later, by cuMemMapArrayAsync. Devices are shown without them (Client::Correct).
constexpr unsigned kMappedLater = CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING;

CUresult CheckDescriptor(const CUDA_ARRAY3D_DESCRIPTOR* descriptor) {
  if (descriptor == nullptr || descriptor->Width == 0) return CUDA_ERROR_INVALID_VALUE;
  if ((descriptor->Flags & kMappedLater) != 0) return CUDA_ERROR_INVALID_VALUE;
  if (descriptor->NumChannels != 1 && descriptor->NumChannels != 2 && descriptor->NumChannels != 4) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (BytesOf(descriptor->Format) == 0) return CUDA_ERROR_NOT_SUPPORTED;
  return CUDA_SUCCESS;
}

template <typename Message>
void Describe(const CUDA_ARRAY3D_DESCRIPTOR& from, Message* to) {
  to->width = from.Width;
  to->height = from.Height;
  to->depth = from.Depth;
  to->format = from.Format;
  to->channels = from.NumChannels;
  to->flags = from.Flags;
}

template <typename Handle>
CUresult Destroy(Handle handle) {
  guest::Session* session = Client::Get().session();
  cuda::Release message;
  message.object = handle->id;
  const int32_t error = session->Send(message);
  const wire::Id id = handle->id;
  Registry::Get().Bury(handle);
  session->FreeId(id);
  return FromWire(error);
}

template <typename Handle>
CUresult Check(Handle handle, Kind kind) {
  const CUresult error = Client::Get().Check();
  return error != CUDA_SUCCESS ? error : CheckObject(handle, kind);
}

}  // namespace

namespace hawser::cu {

size_t BytesOf(CUarray_format format) {
  switch (format) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT8:
      return 1;
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF:
      return 2;
    case CU_AD_FORMAT_UNSIGNED_INT32:
    case CU_AD_FORMAT_SIGNED_INT32:
    case CU_AD_FORMAT_FLOAT:
      return 4;
    default:
      return 0;
  }
}

}  // namespace hawser::cu

CUresult CUDAAPI cuArray3DCreate_v2(CUarray* result, const CUDA_ARRAY3D_DESCRIPTOR* descriptor) {
  CUctx_st* context = nullptr;
  if (const CUresult error = CurrentContext(&context); error != CUDA_SUCCESS) return error;
  if (result == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult error = CheckDescriptor(descriptor); error != CUDA_SUCCESS) return error;
  if (const CUresult error = Captures::Get().CheckUnsafeCall(); error != CUDA_SUCCESS) return error;
  guest::Session* session = Client::Get().session();
  auto* array = new CUarray_st(Kind::kArray, session->NewId(static_cast<uint8_t>(cuda::Handle::kArray)));
  array->context = context;
  array->descriptor = *descriptor;
  Registry::Get().Add(array);
  cuda::CreateArray message;
  message.array = array->id;
  message.context = context->id;
  Describe(*descriptor, &message);
  *result = array;
  return FromWire(session->Send(message));
}

CUresult CUDAAPI cuArrayCreate_v2(CUarray* result, const CUDA_ARRAY_DESCRIPTOR* descriptor) {
  if (descriptor == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUDA_ARRAY3D_DESCRIPTOR full{};
  full.Width = descriptor->Width;
  full.Height = descriptor->Height;
  full.Format = descriptor->Format;
  full.NumChannels = descriptor->NumChannels;
  return cuArray3DCreate_v2(result, &full);
}

CUresult CUDAAPI cuArrayDestroy(CUarray array) {
  if (const CUresult error = Client::Get().Check(); error != CUDA_SUCCESS) return error;
  if (array == nullptr || array->kind != Kind::kArray || array->mipmap != nullptr) return CUDA_ERROR_INVALID_HANDLE;
  return Destroy(array);
}

CUresult CUDAAPI cuArray3DGetDescriptor_v2(CUDA_ARRAY3D_DESCRIPTOR* descriptor, CUarray array) {
  if (const CUresult error = Client::Get().Check(); error != CUDA_SUCCESS) return error;
  if (descriptor == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult error = CheckObject(array, Kind::kArray); error != CUDA_SUCCESS) return error;
  *descriptor = array->descriptor;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuArrayGetDescriptor_v2(CUDA_ARRAY_DESCRIPTOR* descriptor, CUarray array) {
  CUDA_ARRAY3D_DESCRIPTOR full;
  if (descriptor == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult error = cuArray3DGetDescriptor_v2(&full, array); error != CUDA_SUCCESS) return error;
  *descriptor = {full.Width, full.Height, full.Format, full.NumChannels};
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMipmappedArrayCreate(CUmipmappedArray* result, const CUDA_ARRAY3D_DESCRIPTOR* descriptor,
                                        unsigned int levels) {
  CUctx_st* context = nullptr;
  if (const CUresult error = CurrentContext(&context); error != CUDA_SUCCESS) return error;
  if (result == nullptr || levels == 0) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult error = CheckDescriptor(descriptor); error != CUDA_SUCCESS) return error;
  const bool layered = (descriptor->Flags & CUDA_ARRAY3D_LAYERED) != 0;
  const uint64_t largest = std::max({descriptor->Width, descriptor->Height, layered ? size_t{0} : descriptor->Depth});
  guest::Session* session = Client::Get().session();
  auto* mipmap = new CUmipmappedArray_st(Kind::kMipmap, session->NewId(static_cast<uint8_t>(cuda::Handle::kMipmap)));
  mipmap->context = context;
  mipmap->descriptor = *descriptor;
  mipmap->levels.resize(std::min<size_t>(levels, static_cast<size_t>(std::bit_width(largest))));
  Registry::Get().Add(mipmap);
  cuda::CreateMipmap message;
  message.mipmap = mipmap->id;
  message.context = context->id;
  message.levels = static_cast<uint32_t>(mipmap->levels.size());
  Describe(*descriptor, &message);
  *result = mipmap;
  return FromWire(session->Send(message));
}

CUresult CUDAAPI cuMipmappedArrayGetLevel(CUarray* result, CUmipmappedArray mipmap, unsigned int level) {
  if (const CUresult error = Client::Get().Check(); error != CUDA_SUCCESS) return error;
  if (const CUresult error = CheckObject(mipmap, Kind::kMipmap); error != CUDA_SUCCESS) return error;
  std::lock_guard lock(mipmap->mutex);
  if (result == nullptr || level >= mipmap->levels.size()) return CUDA_ERROR_INVALID_VALUE;
  if (mipmap->levels[level] != nullptr) {
    *result = mipmap->levels[level];
    return CUDA_SUCCESS;
  }
  guest::Session* session = Client::Get().session();
  auto* array = new CUarray_st(Kind::kArray, session->NewId(static_cast<uint8_t>(cuda::Handle::kArray)));
  array->context = mipmap->context;
  array->mipmap = mipmap;
  array->descriptor = mipmap->descriptor;
  const auto shrink = [level](size_t size) { return size == 0 ? 0 : std::max<size_t>(size >> level, 1); };
  array->descriptor.Width = shrink(array->descriptor.Width);
  array->descriptor.Height = shrink(array->descriptor.Height);
  if ((array->descriptor.Flags & CUDA_ARRAY3D_LAYERED) == 0) array->descriptor.Depth = shrink(array->descriptor.Depth);
  Registry::Get().Add(array);
  mipmap->levels[level] = array;
  *result = array;
  cuda::GetMipmapLevel message;
  message.array = array->id;
  message.mipmap = mipmap->id;
  message.level = level;
  return FromWire(session->Send(message));
}

CUresult CUDAAPI cuMipmappedArrayDestroy(CUmipmappedArray mipmap) {
  if (const CUresult error = Client::Get().Check(); error != CUDA_SUCCESS) return error;
  if (mipmap == nullptr || mipmap->kind != Kind::kMipmap) return CUDA_ERROR_INVALID_HANDLE;
  {
    std::lock_guard lock(mipmap->mutex);
    for (CUarray_st* level : mipmap->levels) {
      if (level != nullptr) (void)Destroy(level);
    }
    mipmap->levels.clear();
  }
  return Destroy(mipmap);
}

// What only arrays have that are mapped later.

CUresult CUDAAPI cuArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS*, CUarray array, CUdevice) {
  const CUresult error = Check(array, Kind::kArray);
  return error != CUDA_SUCCESS ? error : CUDA_ERROR_INVALID_VALUE;
}

CUresult CUDAAPI cuArrayGetSparseProperties(CUDA_ARRAY_SPARSE_PROPERTIES*, CUarray array) {
  const CUresult error = Check(array, Kind::kArray);
  return error != CUDA_SUCCESS ? error : CUDA_ERROR_INVALID_VALUE;
}

CUresult CUDAAPI cuMipmappedArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS*, CUmipmappedArray mipmap,
                                                       CUdevice) {
  const CUresult error = Check(mipmap, Kind::kMipmap);
  return error != CUDA_SUCCESS ? error : CUDA_ERROR_INVALID_VALUE;
}

CUresult CUDAAPI cuMipmappedArrayGetSparseProperties(CUDA_ARRAY_SPARSE_PROPERTIES*, CUmipmappedArray mipmap) {
  const CUresult error = Check(mipmap, Kind::kMipmap);
  return error != CUDA_SUCCESS ? error : CUDA_ERROR_INVALID_VALUE;
}
