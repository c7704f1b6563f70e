// SPDX-License-Identifier: Apache-2.0
// Tensor maps, which only the server's driver can make: they are opaque. The same numbers always give the same map, and
// programs ask for the same ones before launch after launch, so answers are kept.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <string>
#include <unordered_map>

#include "interposer/cuda/entry.h"

using namespace hawser;      // NOLINT(google-build-using-namespace): entry points live outside of namespaces.
using namespace hawser::cu;  // NOLINT(google-build-using-namespace)

namespace {

constexpr uint32_t kTiled = 0;
constexpr uint32_t kIm2col = 1;
constexpr uint32_t kIm2colWide = 2;
constexpr cuuint32_t kMostDimensions = 5;
constexpr uintptr_t kAlignment = 64;

using MapBytes = decltype(cuda::TensorMap::map);
static_assert(sizeof(MapBytes) == sizeof(CUtensorMap));

/// Maps by the questions that they answer. Any thread.
class Known {
 public:
  static Known& Get() {
    static auto* const known = new Known;
    return *known;
  }
  bool Find(const std::string& question, CUtensorMap* map) {
    const std::lock_guard lock(mutex_);
    const auto found = maps_.find(question);
    if (found == maps_.end()) return false;
    std::memcpy(map, found->second.data(), sizeof(*map));
    return true;
  }
  void Keep(const std::string& question, const MapBytes& map) {
    const std::lock_guard lock(mutex_);
    // Who makes so many never asks for the same again.
    if (maps_.size() >= kMost) maps_.clear();
    maps_[question] = map;
  }

 private:
  static constexpr size_t kMost = 4096;
  std::mutex mutex_;
  std::unordered_map<std::string, MapBytes> maps_;
};

/// The calling thread's context, if it has one: the driver needs none for this.
wire::Id ContextId() {
  CUctx_st* context = nullptr;
  return CurrentContext(&context, /*earlier=*/false) == CUDA_SUCCESS ? context->id : wire::Id{};
}

bool IsPlace(const CUtensorMap* map) { return map != nullptr && reinterpret_cast<uintptr_t>(map) % kAlignment == 0; }

/// What all forms have. CUDA_ERROR_INVALID_VALUE: too little to know how much is to be read.
CUresult Fill(CUtensorMapDataType type, cuuint32_t rank, const void* address, const cuuint64_t* size,
              const cuuint64_t* strides, const cuuint32_t* steps, CUtensorMapInterleave interleave,
              CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill,
              cuda::EncodeTensorMap* message) {
  if (rank == 0 || rank > kMostDimensions || size == nullptr || steps == nullptr || (rank > 1 && strides == nullptr)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  message->type = type;
  message->rank = rank;
  message->address = reinterpret_cast<uintptr_t>(address);
  std::copy_n(size, rank, message->size.begin());
  if (rank > 1) std::copy_n(strides, rank - 1, message->strides.begin());
  std::copy_n(steps, rank, message->steps.begin());
  message->interleave = interleave;
  message->swizzle = swizzle;
  message->promotion = promotion;
  message->fill = fill;
  return CUDA_SUCCESS;
}

CUresult Encode(cuda::EncodeTensorMap* message, CUtensorMap* map) {
  message->context = ContextId();
  std::string question(message->SizeOf(), '\0');
  wire::Writer writer(reinterpret_cast<std::byte*>(question.data()), question.size());
  message->Encode(writer);
  if (Known::Get().Find(question, map)) return CUDA_SUCCESS;
  Answer<cuda::TensorMap> answer;
  if (const CUresult error = answer.Ask(Client::Get().session(), *message); error != CUDA_SUCCESS) return error;
  Known::Get().Keep(question, answer->map);
  std::memcpy(map, answer->map.data(), sizeof(*map));
  return CUDA_SUCCESS;
}

}  // namespace

CUresult CUDAAPI cuTensorMapEncodeTiled(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank, void* address,
                                        const cuuint64_t* size, const cuuint64_t* strides, const cuuint32_t* box,
                                        const cuuint32_t* steps, CUtensorMapInterleave interleave,
                                        CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
                                        CUtensorMapFloatOOBfill fill) {
  if (const CUresult error = Client::Get().Check(); error != CUDA_SUCCESS) return error;
  if (!IsPlace(map) || box == nullptr) return CUDA_ERROR_INVALID_VALUE;
  cuda::EncodeTensorMap message;
  message.form = kTiled;
  if (const CUresult error =
          Fill(type, rank, address, size, strides, steps, interleave, swizzle, promotion, fill, &message);
      error != CUDA_SUCCESS) {
    return error;
  }
  std::copy_n(box, rank, message.box.begin());
  return Encode(&message, map);
}

CUresult CUDAAPI cuTensorMapEncodeIm2col(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank, void* address,
                                         const cuuint64_t* size, const cuuint64_t* strides, const int* lower,
                                         const int* upper, cuuint32_t channels, cuuint32_t pixels,
                                         const cuuint32_t* steps, CUtensorMapInterleave interleave,
                                         CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
                                         CUtensorMapFloatOOBfill fill) {
  if (const CUresult error = Client::Get().Check(); error != CUDA_SUCCESS) return error;
  // The corners have two coordinates less than the tensor.
  if (!IsPlace(map) || rank < 3 || lower == nullptr || upper == nullptr) return CUDA_ERROR_INVALID_VALUE;
  cuda::EncodeTensorMap message;
  message.form = kIm2col;
  if (const CUresult error =
          Fill(type, rank, address, size, strides, steps, interleave, swizzle, promotion, fill, &message);
      error != CUDA_SUCCESS) {
    return error;
  }
  std::copy_n(lower, rank - 2, message.lower_corner.begin());
  std::copy_n(upper, rank - 2, message.upper_corner.begin());
  message.channels = channels;
  message.pixels = pixels;
  return Encode(&message, map);
}

CUresult CUDAAPI cuTensorMapEncodeIm2colWide(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank, void* address,
                                             const cuuint64_t* size, const cuuint64_t* strides, int lower, int upper,
                                             cuuint32_t channels, cuuint32_t pixels, const cuuint32_t* steps,
                                             CUtensorMapInterleave interleave, CUtensorMapIm2ColWideMode mode,
                                             CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
                                             CUtensorMapFloatOOBfill fill) {
  if (const CUresult error = Client::Get().Check(); error != CUDA_SUCCESS) return error;
  if (!IsPlace(map) || rank < 3) return CUDA_ERROR_INVALID_VALUE;
  cuda::EncodeTensorMap message;
  message.form = kIm2colWide;
  if (const CUresult error =
          Fill(type, rank, address, size, strides, steps, interleave, swizzle, promotion, fill, &message);
      error != CUDA_SUCCESS) {
    return error;
  }
  message.lower_corner[0] = static_cast<uint32_t>(lower);
  message.upper_corner[0] = static_cast<uint32_t>(upper);
  message.channels = channels;
  message.pixels = pixels;
  message.mode = mode;
  return Encode(&message, map);
}

CUresult CUDAAPI cuTensorMapReplaceAddress(CUtensorMap* map, void* address) {
  if (const CUresult error = Client::Get().Check(); error != CUDA_SUCCESS) return error;
  if (!IsPlace(map)) return CUDA_ERROR_INVALID_VALUE;
  cuda::ReplaceTensorMapAddress message;
  message.context = ContextId();
  std::memcpy(message.map.data(), map, sizeof(*map));
  message.address = reinterpret_cast<uintptr_t>(address);
  Answer<cuda::TensorMap> answer;
  if (const CUresult error = answer.Ask(Client::Get().session(), message); error != CUDA_SUCCESS) return error;
  std::memcpy(map, answer->map.data(), sizeof(*map));
  return CUDA_SUCCESS;
}
