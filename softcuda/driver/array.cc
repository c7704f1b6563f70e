// SPDX-License-Identifier: Apache-2.0
#include "softcuda/driver/array.h"

#include <sys/mman.h>

#include "softcuda/driver/address_range.h"

namespace hawser::soft {
namespace {

constexpr uint64_t kMostSide = 131072;
constexpr uint64_t kMostDepth = 16384;

}  // namespace

uint32_t ChannelBytes(CUarray_format format) {
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

Array::~Array() {
  if (parent != nullptr || data == nullptr) return;
  ::munmap(data, AddressRange::RoundToPage(bytes));
  device->Discharge(AddressRange::RoundToPage(bytes));
}

CUresult MakeArray(Device* device, uint64_t context, const CUDA_ARRAY3D_DESCRIPTOR& descriptor, ArrayPtr* array) {
  const uint32_t channel = ChannelBytes(descriptor.Format);
  const unsigned channels = descriptor.NumChannels;
  if (channel == 0 || (channels != 1 && channels != 2 && channels != 4)) return CUDA_ERROR_INVALID_VALUE;
  if (descriptor.Width == 0 || descriptor.Width > kMostSide || descriptor.Height > kMostSide ||
      descriptor.Depth > kMostDepth) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if ((descriptor.Flags & CUDA_ARRAY3D_CUBEMAP) != 0 &&
      (descriptor.Width != descriptor.Height || descriptor.Depth % 6 != 0 || descriptor.Depth == 0)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  auto made = std::make_shared<Array>();
  made->device = device;
  made->context = context;
  made->descriptor = descriptor;
  made->texel_bytes = channel * channels;
  made->row_pitch = descriptor.Width * made->texel_bytes;
  made->slice_pitch = made->row_pitch * made->height();
  made->bytes = made->slice_pitch * made->depth();
  const uint64_t mapped = AddressRange::RoundToPage(made->bytes);
  if (!device->Charge(mapped)) return CUDA_ERROR_OUT_OF_MEMORY;
  void* const data =
      ::mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (data == MAP_FAILED) {
    device->Discharge(mapped);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  made->data = static_cast<uint8_t*>(data);
  *array = std::move(made);
  return CUDA_SUCCESS;
}

}  // namespace hawser::soft
