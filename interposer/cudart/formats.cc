// SPDX-License-Identifier: Apache-2.0
#include "interposer/cudart/formats.h"

namespace hawser::cudart {
namespace {

struct Named {
  cudaChannelFormatKind kind;
  CUarray_format format;
  unsigned channels;
  int bits;  // Of each channel, as cudaChannelFormatDesc has it.
};

// The formats that both interfaces know by a name of its own.
constexpr Named kNamed[] = {
    {cudaChannelFormatKindNV12, CU_AD_FORMAT_NV12, 3, 8},
    {cudaChannelFormatKindUnsignedNormalized8X1, CU_AD_FORMAT_UNORM_INT8X1, 1, 8},
    {cudaChannelFormatKindUnsignedNormalized8X2, CU_AD_FORMAT_UNORM_INT8X2, 2, 8},
    {cudaChannelFormatKindUnsignedNormalized8X4, CU_AD_FORMAT_UNORM_INT8X4, 4, 8},
    {cudaChannelFormatKindUnsignedNormalized16X1, CU_AD_FORMAT_UNORM_INT16X1, 1, 16},
    {cudaChannelFormatKindUnsignedNormalized16X2, CU_AD_FORMAT_UNORM_INT16X2, 2, 16},
    {cudaChannelFormatKindUnsignedNormalized16X4, CU_AD_FORMAT_UNORM_INT16X4, 4, 16},
    {cudaChannelFormatKindSignedNormalized8X1, CU_AD_FORMAT_SNORM_INT8X1, 1, 8},
    {cudaChannelFormatKindSignedNormalized8X2, CU_AD_FORMAT_SNORM_INT8X2, 2, 8},
    {cudaChannelFormatKindSignedNormalized8X4, CU_AD_FORMAT_SNORM_INT8X4, 4, 8},
    {cudaChannelFormatKindSignedNormalized16X1, CU_AD_FORMAT_SNORM_INT16X1, 1, 16},
    {cudaChannelFormatKindSignedNormalized16X2, CU_AD_FORMAT_SNORM_INT16X2, 2, 16},
    {cudaChannelFormatKindSignedNormalized16X4, CU_AD_FORMAT_SNORM_INT16X4, 4, 16},
    {cudaChannelFormatKindUnsignedBlockCompressed1, CU_AD_FORMAT_BC1_UNORM, 4, 8},
    {cudaChannelFormatKindUnsignedBlockCompressed1SRGB, CU_AD_FORMAT_BC1_UNORM_SRGB, 4, 8},
    {cudaChannelFormatKindUnsignedBlockCompressed2, CU_AD_FORMAT_BC2_UNORM, 4, 8},
    {cudaChannelFormatKindUnsignedBlockCompressed2SRGB, CU_AD_FORMAT_BC2_UNORM_SRGB, 4, 8},
    {cudaChannelFormatKindUnsignedBlockCompressed3, CU_AD_FORMAT_BC3_UNORM, 4, 8},
    {cudaChannelFormatKindUnsignedBlockCompressed3SRGB, CU_AD_FORMAT_BC3_UNORM_SRGB, 4, 8},
    {cudaChannelFormatKindUnsignedBlockCompressed4, CU_AD_FORMAT_BC4_UNORM, 1, 8},
    {cudaChannelFormatKindSignedBlockCompressed4, CU_AD_FORMAT_BC4_SNORM, 1, 8},
    {cudaChannelFormatKindUnsignedBlockCompressed5, CU_AD_FORMAT_BC5_UNORM, 2, 8},
    {cudaChannelFormatKindSignedBlockCompressed5, CU_AD_FORMAT_BC5_SNORM, 2, 8},
    {cudaChannelFormatKindUnsignedBlockCompressed6H, CU_AD_FORMAT_BC6H_UF16, 3, 16},
    {cudaChannelFormatKindSignedBlockCompressed6H, CU_AD_FORMAT_BC6H_SF16, 3, 16},
    {cudaChannelFormatKindUnsignedBlockCompressed7, CU_AD_FORMAT_BC7_UNORM, 4, 8},
    {cudaChannelFormatKindUnsignedBlockCompressed7SRGB, CU_AD_FORMAT_BC7_UNORM_SRGB, 4, 8},
};

// Channels from the first on, all of one width; 0 when they are not.
unsigned CountChannels(const cudaChannelFormatDesc& from) {
  const int bits[] = {from.x, from.y, from.z, from.w};
  unsigned count = 0;
  while (count < 4 && bits[count] != 0) {
    if (bits[count] != from.x) return 0;
    ++count;
  }
  for (unsigned rest = count; rest < 4; ++rest) {
    if (bits[rest] != 0) return 0;
  }
  return count;
}

int BitsOf(CUarray_format format) {
  switch (format) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT8:
      return 8;
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF:
      return 16;
    case CU_AD_FORMAT_UNSIGNED_INT32:
    case CU_AD_FORMAT_SIGNED_INT32:
    case CU_AD_FORMAT_FLOAT:
      return 32;
    default:
      return 0;
  }
}

cudaChannelFormatDesc Describe(cudaChannelFormatKind kind, unsigned channels, int bits) {
  return {channels > 0 ? bits : 0, channels > 1 ? bits : 0, channels > 2 ? bits : 0, channels > 3 ? bits : 0, kind};
}

}  // namespace

cudaError_t ToDriverFormat(const cudaChannelFormatDesc& from, CUarray_format* format, unsigned* channels) {
  for (const Named& named : kNamed) {
    if (named.kind != from.f) continue;
    *format = named.format;
    *channels = named.channels;
    return cudaSuccess;
  }
  *channels = CountChannels(from);
  // Three channels exist in planes only.
  if (*channels != 1 && *channels != 2 && *channels != 4) return cudaErrorInvalidChannelDescriptor;
  switch (from.f) {
    case cudaChannelFormatKindUnsigned:
      if (from.x == 8) return *format = CU_AD_FORMAT_UNSIGNED_INT8, cudaSuccess;
      if (from.x == 16) return *format = CU_AD_FORMAT_UNSIGNED_INT16, cudaSuccess;
      if (from.x == 32) return *format = CU_AD_FORMAT_UNSIGNED_INT32, cudaSuccess;
      break;
    case cudaChannelFormatKindSigned:
      if (from.x == 8) return *format = CU_AD_FORMAT_SIGNED_INT8, cudaSuccess;
      if (from.x == 16) return *format = CU_AD_FORMAT_SIGNED_INT16, cudaSuccess;
      if (from.x == 32) return *format = CU_AD_FORMAT_SIGNED_INT32, cudaSuccess;
      break;
    case cudaChannelFormatKindFloat:
      if (from.x == 16) return *format = CU_AD_FORMAT_HALF, cudaSuccess;
      if (from.x == 32) return *format = CU_AD_FORMAT_FLOAT, cudaSuccess;
      break;
    default:
      break;
  }
  return cudaErrorInvalidChannelDescriptor;
}

cudaError_t FromDriverFormat(CUarray_format format, unsigned channels, cudaChannelFormatDesc* to) {
  for (const Named& named : kNamed) {
    if (named.format != format) continue;
    *to = Describe(named.kind, named.channels, named.bits);
    return cudaSuccess;
  }
  const int bits = BitsOf(format);
  if (bits == 0) return cudaErrorInvalidChannelDescriptor;
  cudaChannelFormatKind kind = cudaChannelFormatKindUnsigned;
  if (format == CU_AD_FORMAT_HALF || format == CU_AD_FORMAT_FLOAT) kind = cudaChannelFormatKindFloat;
  if (format == CU_AD_FORMAT_SIGNED_INT8 || format == CU_AD_FORMAT_SIGNED_INT16 ||
      format == CU_AD_FORMAT_SIGNED_INT32) {
    kind = cudaChannelFormatKindSigned;
  }
  *to = Describe(kind, channels, bits);
  return cudaSuccess;
}

size_t BytesPerElement(CUarray_format format, unsigned channels) {
  if (const int bits = BitsOf(format); bits != 0) return static_cast<size_t>(bits) / 8 * channels;
  for (const Named& named : kNamed) {
    const bool normalized = named.kind >= cudaChannelFormatKindUnsignedNormalized8X1 &&
                            named.kind <= cudaChannelFormatKindSignedNormalized16X4;
    if (named.format == format && normalized) return static_cast<size_t>(named.bits) / 8 * named.channels;
  }
  return 0;
}

}  // namespace hawser::cudart
