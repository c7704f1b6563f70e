// SPDX-License-Identifier: Apache-2.0
#include "proto/facts/image_formats.h"

#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>
#include <CL/cl_ext.h>

#ifndef CL_UNORM_INT24  // Newer headers have dropped it.
#define CL_UNORM_INT24 0x10DF
#endif

namespace hawser::opencl {
namespace {

/// Channels of an order; 0: unknown.
uint32_t Channels(uint32_t order) {
  switch (order) {
    case CL_R:
    case CL_A:
    case CL_Rx:
    case CL_INTENSITY:
    case CL_LUMINANCE:
    case CL_DEPTH:
      return 1;
    case CL_RG:
    case CL_RA:
    case CL_RGx:
      return 2;
    case CL_RGB:
    case CL_sRGB:
      return 3;
    case CL_RGBx:
    case CL_sRGBx:
    case CL_RGBA:
    case CL_BGRA:
    case CL_ARGB:
    case CL_ABGR:
    case CL_sRGBA:
    case CL_sBGRA:
      return 4;
    default:
      return 0;
  }
}

uint32_t ChannelSize(uint32_t type) {
  switch (type) {
    case CL_SNORM_INT8:
    case CL_UNORM_INT8:
    case CL_SIGNED_INT8:
    case CL_UNSIGNED_INT8:
      return 1;
    case CL_SNORM_INT16:
    case CL_UNORM_INT16:
    case CL_SIGNED_INT16:
    case CL_UNSIGNED_INT16:
    case CL_HALF_FLOAT:
      return 2;
    case CL_SIGNED_INT32:
    case CL_UNSIGNED_INT32:
    case CL_FLOAT:
      return 4;
    default:
      return 0;
  }
}

/// Which types some orders are limited to, from the specification's table.
bool Fits(uint32_t order, uint32_t type) {
  switch (order) {
    case CL_INTENSITY:
    case CL_LUMINANCE:
      return type == CL_UNORM_INT8 || type == CL_UNORM_INT16 || type == CL_SNORM_INT8 || type == CL_SNORM_INT16 ||
             type == CL_HALF_FLOAT || type == CL_FLOAT;
    case CL_DEPTH:
      return type == CL_UNORM_INT16 || type == CL_FLOAT;  // CL_UNORM_INT24: see below.
    case CL_RGB:
    case CL_RGBx:
      return false;  // Packed types only, see below.
    case CL_ARGB:
    case CL_BGRA:
    case CL_ABGR:
      return type == CL_UNORM_INT8 || type == CL_SNORM_INT8 || type == CL_SIGNED_INT8 || type == CL_UNSIGNED_INT8;
    case CL_sRGB:
    case CL_sRGBx:
    case CL_sRGBA:
    case CL_sBGRA:
      return type == CL_UNORM_INT8;
    default:
      return true;
  }
}

}  // namespace

uint32_t ElementSize(uint32_t order, uint32_t type) {
  switch (type) {  // Packed: all channels in one word.
    case CL_UNORM_SHORT_565:
    case CL_UNORM_SHORT_555:
      return order == CL_RGB || order == CL_RGBx ? 2 : 0;
    case CL_UNORM_INT_101010:
      return order == CL_RGB || order == CL_RGBx ? 4 : 0;
    case CL_UNORM_INT_101010_2:
      return order == CL_RGBA ? 4 : 0;
    case CL_UNORM_INT24:
      return order == CL_DEPTH ? 4 : 0;
    default:
      break;
  }
  return Fits(order, type) ? Channels(order) * ChannelSize(type) : 0;
}

}  // namespace hawser::opencl
