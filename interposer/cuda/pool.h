// SPDX-License-Identifier: Apache-2.0
// Pools of stream-ordered memory.
#ifndef HAWSER_INTERPOSER_CUDA_POOL_H_
#define HAWSER_INTERPOSER_CUDA_POOL_H_

#include "interposer/cuda/kept_values.h"
#include "interposer/cuda/objects.h"

struct CUmemPoolHandle_st final : hawser::cu::Object {
  using Object::Object;

  int device = 0;
  bool is_default = false;
  hawser::cu::KeptValues settings;  ///< Key: CUmemPool_attribute, of those that only the program changes.
};

#endif  // HAWSER_INTERPOSER_CUDA_POOL_H_
