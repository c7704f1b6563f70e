// SPDX-License-Identifier: Apache-2.0
#include "interposer/cuda/copy_region.h"

#include "interposer/cuda/array.h"
#include "interposer/cuda/graph_memory.h"

namespace hawser::cu {
namespace {

constexpr uint32_t kAddress = 0;
constexpr uint32_t kArray = 1;
constexpr uint32_t kHeap = 2;
/// No copy has as many bytes in one direction; so products of two never overflow.
constexpr uint64_t kMost = uint64_t{1} << 31;

/// The fields of one side, whichever it is.
struct Fields {
  size_t x, y, z;
  CUmemorytype type;
  const void* host;
  CUdeviceptr device;
  CUarray array;
  size_t pitch, height;
};

CUresult Take(const Fields& fields, const CUDA_MEMCPY3D& copy, RegionSide* side) {
  CUmemorytype type = fields.type;
  const void* host = fields.host;
  CUdeviceptr device = fields.device;
  if (type == CU_MEMORYTYPE_UNIFIED) {
    const auto range = Client::Get().pointers().Find(device);
    type = !range || range->is_host() ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
    host = reinterpret_cast<const void*>(device);
  }
  side->wire.x_bytes = fields.x;
  side->wire.y = fields.y;
  side->wire.z = fields.z;
  if (type == CU_MEMORYTYPE_ARRAY) {
    if (const CUresult error = CheckObject(fields.array, Kind::kArray); error != CUDA_SUCCESS) return error;
    side->wire.kind = kArray;
    side->wire.object = fields.array->id;
    return CUDA_SUCCESS;
  }
  const uint64_t pitch = fields.pitch != 0 ? fields.pitch : fields.x + copy.WidthInBytes;
  const uint64_t height = fields.height != 0 ? fields.height : fields.y + copy.Height;
  if (pitch < copy.WidthInBytes || (copy.Depth > 1 && height < copy.Height)) return CUDA_ERROR_INVALID_VALUE;
  if (pitch >= kMost || height >= kMost || fields.x >= kMost || fields.y >= kMost || fields.z >= kMost) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  side->wire.pitch = pitch;
  side->wire.height = height;
  if (type == CU_MEMORYTYPE_DEVICE) {
    if (device == 0) return CUDA_ERROR_INVALID_VALUE;
    side->wire.kind = kAddress;
    side->wire.address = device;
    return CUDA_SUCCESS;
  }
  if (type != CU_MEMORYTYPE_HOST || host == nullptr) return CUDA_ERROR_INVALID_VALUE;
  side->host = true;
  const auto* base = static_cast<const std::byte*>(host);
  side->memory.base = const_cast<std::byte*>(base) + (fields.z * height + fields.y) * pitch + fields.x;
  side->memory.width = copy.WidthInBytes;
  side->memory.height = copy.Height;
  side->memory.depth = copy.Depth;
  side->memory.pitch = pitch;
  side->memory.slice = pitch * height;
  const uint64_t span = ((copy.Depth - 1) * height + copy.Height - 1) * pitch + copy.WidthInBytes;
  const uint64_t offset = Client::Get().HeapOffset(side->memory.base, span);
  if (offset != guest::Session::kNoHeap) {
    side->in_heap = true;
    side->wire = {};
    side->wire.kind = kHeap;
    side->wire.address = offset;
    side->wire.pitch = pitch;
    side->wire.height = height;
  } else if (const uint64_t mirror = Mirrors::Get().DeviceAddress(side->memory.base, span); mirror != 0) {
    // Copied where the device has it, as linear copies are: other commands may have brought something there.
    side->host = false;
    side->mirrored = true;
    side->wire = {};
    side->wire.kind = kAddress;
    side->wire.address = mirror;
    side->wire.pitch = pitch;
    side->wire.height = height;
  }
  return CUDA_SUCCESS;
}

/// Between host memories, in stream order.
CUresult CopyHost(StreamCommand& command, const HostRegion& to, const HostRegion& from) {
  return OnHost(command, [to, from] {
    std::vector<std::byte> packed(from.bytes());
    from.Gather(0, packed.size(), packed.data());
    to.Scatter(0, packed.size(), packed.data());
  });
}

template <typename Message>
void Size(const CUDA_MEMCPY3D& copy, Message* message) {
  message->width_bytes = copy.WidthInBytes;
  message->height = copy.Height;
  message->depth = copy.Depth;
}

}  // namespace

CUresult Destination(const CUDA_MEMCPY3D& copy, RegionSide* side) {
  return Take({copy.dstXInBytes, copy.dstY, copy.dstZ, copy.dstMemoryType, copy.dstHost, copy.dstDevice, copy.dstArray,
               copy.dstPitch, copy.dstHeight},
              copy, side);
}

CUresult Source(const CUDA_MEMCPY3D& copy, RegionSide* side) {
  return Take({copy.srcXInBytes, copy.srcY, copy.srcZ, copy.srcMemoryType, copy.srcHost, copy.srcDevice, copy.srcArray,
               copy.srcPitch, copy.srcHeight},
              copy, side);
}

CUDA_MEMCPY3D ToVolume(const CUDA_MEMCPY2D& copy) {
  CUDA_MEMCPY3D volume{};
  volume.srcXInBytes = copy.srcXInBytes;
  volume.srcY = copy.srcY;
  volume.srcMemoryType = copy.srcMemoryType;
  volume.srcHost = copy.srcHost;
  volume.srcDevice = copy.srcDevice;
  volume.srcArray = copy.srcArray;
  volume.srcPitch = copy.srcPitch;
  volume.dstXInBytes = copy.dstXInBytes;
  volume.dstY = copy.dstY;
  volume.dstMemoryType = copy.dstMemoryType;
  volume.dstHost = copy.dstHost;
  volume.dstDevice = copy.dstDevice;
  volume.dstArray = copy.dstArray;
  volume.dstPitch = copy.dstPitch;
  volume.WidthInBytes = copy.WidthInBytes;
  volume.Height = copy.Height;
  volume.Depth = 1;
  return volume;
}

CUresult CopyRegion(StreamCommand& command, const CUDA_MEMCPY3D& copy, CopyMode mode) {
  if (copy.WidthInBytes == 0 || copy.Height == 0 || copy.Depth == 0) return CUDA_SUCCESS;
  if (copy.WidthInBytes >= kMost || copy.Height >= kMost || copy.Depth >= kMost) return CUDA_ERROR_INVALID_VALUE;
  if (copy.srcLOD != 0 || copy.dstLOD != 0) return CUDA_ERROR_INVALID_VALUE;
  if (copy.WidthInBytes * copy.Height > UINT64_MAX / copy.Depth) return CUDA_ERROR_INVALID_VALUE;
  RegionSide to;
  RegionSide from;
  if (const CUresult error = Destination(copy, &to); error != CUDA_SUCCESS) return error;
  if (const CUresult error = Source(copy, &from); error != CUDA_SUCCESS) return error;
  if (const CUresult error = Mirrors::Get().BeforeCopy(command.stream()); error != CUDA_SUCCESS) return error;
  if (to.host && from.host) return CopyHost(command, to.memory, from.memory);
  const bool small = mode == CopyMode::kSynchronous &&
                     copy.WidthInBytes * copy.Height * copy.Depth <= command.session()->inline_limit();
  if (!to.host && from.host && !from.in_heap) {
    if (command.capturing()) return CaptureWrite(command, to.wire, from.memory);
    cuda::WriteRegion message;
    message.destination = to.wire;
    Size(copy, &message);
    message.size = from.memory.bytes();
    if (mode == CopyMode::kSynchronous) {
      if (const CUresult error = AwaitChanges(command.stream(), from.memory); error != CUDA_SUCCESS) return error;
    }
    return SendWrite(command, message, from.memory);
  }
  if (to.host && (!to.in_heap || small)) {
    if (command.capturing()) return CaptureRead(command, from.wire, to.memory);
    cuda::ReadRegion message;
    message.source = from.wire;
    Size(copy, &message);
    message.size = to.memory.bytes();
    const bool wait = mode == CopyMode::kSynchronous || !IsPinned(to.memory.base);
    const uint64_t mark = Mirrors::Get().Mark();
    const CUresult error = SendRead(command, message, to.memory, wait);
    return error != CUDA_SUCCESS || !wait ? error : AfterWork(command.stream(), mark);
  }
  cuda::CopyRegion message;
  message.destination = to.wire;
  message.source = from.wire;
  Size(copy, &message);
  const CUresult error = command.Send(message);
  const bool host = to.host || from.host || to.mirrored || from.mirrored;
  return error != CUDA_SUCCESS || !host || mode == CopyMode::kAsynchronous ? error
                                                                           : SynchronizeStream(command.stream());
}

}  // namespace hawser::cu
