// SPDX-License-Identifier: Apache-2.0
// Pools of stream-ordered memory.
#ifndef HAWSER_INTERPOSER_CUDA_POOL_H_
#define HAWSER_INTERPOSER_CUDA_POOL_H_

#include "interposer/cuda/objects.h"

struct CUmemPoolHandle_st final : hawser::cu::Object {
  using Object::Object;

  int device = 0;
  bool is_default = false;
};

#endif  // HAWSER_INTERPOSER_CUDA_POOL_H_
