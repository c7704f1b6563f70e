// SPDX-License-Identifier: Apache-2.0
// Arrays and mipmapped arrays: opaque memory that textures and surfaces read.
#ifndef HAWSER_INTERPOSER_CUDA_ARRAY_H_
#define HAWSER_INTERPOSER_CUDA_ARRAY_H_

#include <vector>

#include "interposer/cuda/objects.h"

struct CUarray_st final : hawser::cu::Object {
  using Object::Object;

  CUctx_st* context = nullptr;
  CUDA_ARRAY3D_DESCRIPTOR descriptor{};
  CUmipmappedArray mipmap = nullptr;  ///< Not null: a level of it, which ends with it.
};

struct CUmipmappedArray_st final : hawser::cu::Object {
  using Object::Object;

  CUctx_st* context = nullptr;
  CUDA_ARRAY3D_DESCRIPTOR descriptor{};
  std::mutex mutex;
  std::vector<CUarray_st*> levels;  ///< Null: not asked for yet.
};

namespace hawser::cu {

/// Bytes of one channel; 0: no format of plain elements.
size_t BytesOf(CUarray_format format);

}  // namespace hawser::cu

#endif  // HAWSER_INTERPOSER_CUDA_ARRAY_H_
