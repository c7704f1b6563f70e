// SPDX-License-Identifier: Apache-2.0
// Texture and surface objects. Their values are the server's: kernels receive them as parameters.
#include <cstring>
#include <mutex>
#include <unordered_map>

#include "interposer/cuda/array.h"
#include "interposer/cuda/entry.h"

using namespace hawser;      // NOLINT(google-build-using-namespace): entry points live outside of namespaces.
using namespace hawser::cu;  // NOLINT(google-build-using-namespace)

namespace {

struct Texture {
  CUDA_RESOURCE_DESC resource{};
  CUDA_TEXTURE_DESC texture{};
  CUDA_RESOURCE_VIEW_DESC view{};
  bool has_view = false;
  wire::Id context;
};

/// What the getters answer, by value. Surfaces have a resource alone.
struct Book {
  std::mutex mutex;
  std::unordered_map<uint64_t, Texture> textures;
  std::unordered_map<uint64_t, Texture> surfaces;

  static Book& Get() {
    static auto* book = new Book;
    return *book;
  }
};

uint32_t Bits(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

CUresult Resource(const CUDA_RESOURCE_DESC& from, cuda::CreateTexture* to) {
  to->resource = from.resType;
  switch (from.resType) {
    case CU_RESOURCE_TYPE_ARRAY:
      if (const CUresult error = CheckObject(from.res.array.hArray, Kind::kArray); error != CUDA_SUCCESS) return error;
      to->object = from.res.array.hArray->id;
      return CUDA_SUCCESS;
    case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
      if (const CUresult error = CheckObject(from.res.mipmap.hMipmappedArray, Kind::kMipmap); error != CUDA_SUCCESS) {
        return error;
      }
      to->object = from.res.mipmap.hMipmappedArray->id;
      return CUDA_SUCCESS;
    case CU_RESOURCE_TYPE_LINEAR:
      to->address = from.res.linear.devPtr;
      to->format = from.res.linear.format;
      to->channels = from.res.linear.numChannels;
      to->width = from.res.linear.sizeInBytes;
      return CUDA_SUCCESS;
    case CU_RESOURCE_TYPE_PITCH2D:
      to->address = from.res.pitch2D.devPtr;
      to->format = from.res.pitch2D.format;
      to->channels = from.res.pitch2D.numChannels;
      to->width = from.res.pitch2D.width;
      to->height = from.res.pitch2D.height;
      to->pitch = from.res.pitch2D.pitchInBytes;
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

/// Calls function(texture) when the value is known.
template <typename Function>
CUresult With(std::unordered_map<uint64_t, Texture> Book::*which, uint64_t value, Function function) {
  if (const CUresult error = Client::Get().Check(); error != CUDA_SUCCESS) return error;
  Book& book = Book::Get();
  std::lock_guard lock(book.mutex);
  const auto found = (book.*which).find(value);
  if (found == (book.*which).end()) return CUDA_ERROR_INVALID_VALUE;
  function(found->second);
  return CUDA_SUCCESS;
}

template <typename Message>
CUresult Destroy(std::unordered_map<uint64_t, Texture> Book::*which, uint64_t value) {
  CUctx_st* current = nullptr;
  if (const CUresult error = CurrentContext(&current); error != CUDA_SUCCESS) return error;
  Message message;
  const CUresult error = With(which, value, [&](const Texture& texture) { message.context = texture.context; });
  if (error != CUDA_SUCCESS) return error;
  {
    std::lock_guard lock(Book::Get().mutex);
    (Book::Get().*which).erase(value);
  }
  message.value = value;
  return FromWire(Client::Get().session()->Send(message));
}

}  // namespace

CUresult CUDAAPI cuTexObjectCreate(CUtexObject* result, const CUDA_RESOURCE_DESC* resource,
                                   const CUDA_TEXTURE_DESC* texture, const CUDA_RESOURCE_VIEW_DESC* view) {
  CUctx_st* context = nullptr;
  if (const CUresult error = CurrentContext(&context); error != CUDA_SUCCESS) return error;
  if (result == nullptr || resource == nullptr || texture == nullptr) return CUDA_ERROR_INVALID_VALUE;
  cuda::CreateTexture message;
  message.context = context->id;
  if (const CUresult error = Resource(*resource, &message); error != CUDA_SUCCESS) return error;
  for (size_t i = 0; i < 3; ++i) message.address_modes[i] = texture->addressMode[i];
  message.filter = texture->filterMode;
  message.flags = texture->flags;
  message.max_anisotropy = texture->maxAnisotropy;
  message.mipmap_filter = texture->mipmapFilterMode;
  message.floats = {Bits(texture->mipmapLevelBias),     Bits(texture->minMipmapLevelClamp),
                    Bits(texture->maxMipmapLevelClamp), Bits(texture->borderColor[0]),
                    Bits(texture->borderColor[1]),      Bits(texture->borderColor[2]),
                    Bits(texture->borderColor[3])};
  if (view != nullptr) {
    message.has_view = 1;
    message.view = {view->format,           view->width,           view->height,     view->depth,
                    view->firstMipmapLevel, view->lastMipmapLevel, view->firstLayer, view->lastLayer};
  }
  Answer<cuda::Value> answer;
  if (const CUresult error = answer.Ask(Client::Get().session(), message); error != CUDA_SUCCESS) return error;
  *result = answer->value;
  std::lock_guard lock(Book::Get().mutex);
  Book::Get().textures[*result] = {*resource, *texture, view != nullptr ? *view : CUDA_RESOURCE_VIEW_DESC{},
                                   view != nullptr, context->id};
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuTexObjectDestroy(CUtexObject texture) {
  return Destroy<cuda::DestroyTexture>(&Book::textures, texture);
}

CUresult CUDAAPI cuTexObjectGetResourceDesc(CUDA_RESOURCE_DESC* resource, CUtexObject value) {
  if (resource == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return With(&Book::textures, value, [&](const Texture& texture) { *resource = texture.resource; });
}

CUresult CUDAAPI cuTexObjectGetTextureDesc(CUDA_TEXTURE_DESC* description, CUtexObject value) {
  if (description == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return With(&Book::textures, value, [&](const Texture& texture) { *description = texture.texture; });
}

CUresult CUDAAPI cuTexObjectGetResourceViewDesc(CUDA_RESOURCE_VIEW_DESC* view, CUtexObject value) {
  if (view == nullptr) return CUDA_ERROR_INVALID_VALUE;
  bool has_view = false;
  const CUresult error = With(&Book::textures, value, [&](const Texture& texture) {
    has_view = texture.has_view;
    *view = texture.view;
  });
  return error != CUDA_SUCCESS || has_view ? error : CUDA_ERROR_INVALID_VALUE;
}

CUresult CUDAAPI cuSurfObjectCreate(CUsurfObject* result, const CUDA_RESOURCE_DESC* resource) {
  CUctx_st* context = nullptr;
  if (const CUresult error = CurrentContext(&context); error != CUDA_SUCCESS) return error;
  if (result == nullptr || resource == nullptr || resource->resType != CU_RESOURCE_TYPE_ARRAY) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  CUarray array = resource->res.array.hArray;
  if (const CUresult error = CheckObject(array, Kind::kArray); error != CUDA_SUCCESS) return error;
  cuda::CreateSurface message;
  message.context = context->id;
  message.array = array->id;
  Answer<cuda::Value> answer;
  if (const CUresult error = answer.Ask(Client::Get().session(), message); error != CUDA_SUCCESS) return error;
  *result = answer->value;
  std::lock_guard lock(Book::Get().mutex);
  Book::Get().surfaces[*result] = {*resource, {}, {}, false, context->id};
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuSurfObjectDestroy(CUsurfObject surface) {
  return Destroy<cuda::DestroySurface>(&Book::surfaces, surface);
}

CUresult CUDAAPI cuSurfObjectGetResourceDesc(CUDA_RESOURCE_DESC* resource, CUsurfObject value) {
  if (resource == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return With(&Book::surfaces, value, [&](const Texture& surface) { *resource = surface.resource; });
}
