// SPDX-License-Identifier: Apache-2.0
// CUDA runtime API, "Memory Management": copies and fills.
#include <algorithm>

#include "interposer/cudart/copy.h"
#include "interposer/cudart/entry.h"

using namespace hawser::cudart;  // NOLINT: an entry point is not in a namespace

namespace {

cudaError_t CopyRows(void* destination, size_t destination_pitch, const void* source, size_t source_pitch, size_t width,
                     size_t height, cudaMemcpyKind kind, const CopyOrder& order) {
  return InContext([&](const Driver& driver) {
    if (!IsCopyKind(kind)) return cudaErrorInvalidMemcpyDirection;
    if (width > destination_pitch || width > source_pitch) return cudaErrorInvalidPitchValue;
    if (width == 0 || height == 0) return cudaSuccess;
    if (destination == nullptr || source == nullptr) return cudaErrorInvalidValue;
    CUDA_MEMCPY2D copy{};
    SetSource(copy, source, source_pitch, kind);
    SetDestination(copy, destination, destination_pitch, kind);
    copy.WidthInBytes = width;
    copy.Height = height;
    return Copy2D(driver, copy, order);
  });
}

cudaError_t CopyRowsToArray(cudaArray_t destination, size_t x_bytes, size_t y, const void* source, size_t pitch,
                            size_t width, size_t height, cudaMemcpyKind kind, const CopyOrder& order) {
  return InContext([&](const Driver& driver) {
    if (!IsCopyKind(kind) || kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyHostToHost) {
      return cudaErrorInvalidMemcpyDirection;
    }
    if (destination == nullptr) return cudaErrorInvalidResourceHandle;
    if (width > pitch) return cudaErrorInvalidPitchValue;
    if (width != 0 && height != 0 && source == nullptr) return cudaErrorInvalidValue;
    CUDA_MEMCPY2D copy{};
    SetSource(copy, source, pitch, kind);
    SetDestination(copy, destination, x_bytes, y);
    copy.WidthInBytes = width;
    copy.Height = height;
    return Copy2D(driver, copy, order);
  });
}

cudaError_t CopyRowsFromArray(void* destination, size_t pitch, cudaArray_const_t source, size_t x_bytes, size_t y,
                              size_t width, size_t height, cudaMemcpyKind kind, const CopyOrder& order) {
  return InContext([&](const Driver& driver) {
    if (!IsCopyKind(kind) || kind == cudaMemcpyHostToDevice || kind == cudaMemcpyHostToHost) {
      return cudaErrorInvalidMemcpyDirection;
    }
    if (source == nullptr) return cudaErrorInvalidResourceHandle;
    if (width > pitch) return cudaErrorInvalidPitchValue;
    if (width != 0 && height != 0 && destination == nullptr) return cudaErrorInvalidValue;
    CUDA_MEMCPY2D copy{};
    SetSource(copy, source, x_bytes, y);
    SetDestination(copy, destination, pitch, kind);
    copy.WidthInBytes = width;
    copy.Height = height;
    return Copy2D(driver, copy, order);
  });
}

// A position in an array that runs from the end of a row to the beginning of the next, as the calls do that count bytes
// and not rows.
class RowCursor {
 public:
  RowCursor(size_t row_bytes, size_t x, size_t y) : row_bytes_(row_bytes), x_(x), y_(y) {}
  size_t x() const { return x_; }
  size_t y() const { return y_; }
  size_t rest_of_row() const { return row_bytes_ - x_; }
  void Advance(size_t bytes) {
    x_ += bytes;
    if (x_ == row_bytes_) {
      x_ = 0;
      ++y_;
    }
  }

 private:
  const size_t row_bytes_;
  size_t x_;
  size_t y_;
};

cudaError_t RowBytes(const Driver& driver, cudaArray_const_t array, size_t x, size_t* bytes) {
  if (array == nullptr) return cudaErrorInvalidResourceHandle;
  CUDA_ARRAY3D_DESCRIPTOR descriptor{};
  if (const CUresult result = driver.cuArray3DGetDescriptor(&descriptor, Array(array)); result != CUDA_SUCCESS) {
    return FromDriver(result);
  }
  size_t element = 0;
  if (const cudaError_t error = ElementSize(driver, array, &element); error != cudaSuccess) return error;
  *bytes = descriptor.Width * element;
  return x < *bytes ? cudaSuccess : cudaErrorInvalidValue;
}

cudaError_t CopyBytesToArray(cudaArray_t destination, size_t x, size_t y, const void* source, size_t count,
                             cudaMemcpyKind kind, const CopyOrder& order) {
  return InContext([&](const Driver& driver) {
    if (!IsCopyKind(kind)) return cudaErrorInvalidMemcpyDirection;
    size_t row = 0;
    if (const cudaError_t error = RowBytes(driver, destination, x, &row); error != cudaSuccess) return error;
    RowCursor cursor(row, x, y);
    const auto* from = static_cast<const char*>(source);
    while (count > 0) {
      const size_t piece = std::min(count, cursor.rest_of_row());
      CUDA_MEMCPY2D copy{};
      SetSource(copy, from, piece, kind);
      SetDestination(copy, destination, cursor.x(), cursor.y());
      copy.WidthInBytes = piece;
      copy.Height = 1;
      if (const cudaError_t error = Copy2D(driver, copy, order); error != cudaSuccess) return error;
      cursor.Advance(piece);
      from += piece;
      count -= piece;
    }
    return cudaSuccess;
  });
}

cudaError_t CopyBytesFromArray(void* destination, cudaArray_const_t source, size_t x, size_t y, size_t count,
                               cudaMemcpyKind kind, const CopyOrder& order) {
  return InContext([&](const Driver& driver) {
    if (!IsCopyKind(kind)) return cudaErrorInvalidMemcpyDirection;
    size_t row = 0;
    if (const cudaError_t error = RowBytes(driver, source, x, &row); error != cudaSuccess) return error;
    RowCursor cursor(row, x, y);
    auto* to = static_cast<char*>(destination);
    while (count > 0) {
      const size_t piece = std::min(count, cursor.rest_of_row());
      CUDA_MEMCPY2D copy{};
      SetSource(copy, source, cursor.x(), cursor.y());
      SetDestination(copy, to, piece, kind);
      copy.WidthInBytes = piece;
      copy.Height = 1;
      if (const cudaError_t error = Copy2D(driver, copy, order); error != cudaSuccess) return error;
      cursor.Advance(piece);
      to += piece;
      count -= piece;
    }
    return cudaSuccess;
  });
}

cudaError_t CopyBox(const cudaMemcpy3DParms* parameters, const CopyOrder& order) {
  return InContext([&](const Driver& driver) {
    if (parameters == nullptr) return cudaErrorInvalidValue;
    CUDA_MEMCPY3D copy;
    if (const cudaError_t error = ToDriverCopy(driver, *parameters, &copy); error != cudaSuccess) return error;
    return Copy3D(driver, copy, order);
  });
}

cudaError_t CopyPeerBox(const cudaMemcpy3DPeerParms* parameters, const CopyOrder& order) {
  return InContext([&](const Driver& driver) {
    if (parameters == nullptr) return cudaErrorInvalidValue;
    Device* source = Runtime::Get().device(parameters->srcDevice);
    Device* destination = Runtime::Get().device(parameters->dstDevice);
    if (source == nullptr || destination == nullptr) return cudaErrorInvalidDevice;
    const cudaMemcpy3DParms same = {parameters->srcArray, parameters->srcPos, parameters->srcPtr, parameters->dstArray,
                                    parameters->dstPos,   parameters->dstPtr, parameters->extent, cudaMemcpyDefault};
    CUDA_MEMCPY3D copy;
    if (const cudaError_t error = ToDriverCopy(driver, same, &copy); error != cudaSuccess) return error;
    CUDA_MEMCPY3D_PEER peer{};
    peer.srcXInBytes = copy.srcXInBytes;
    peer.srcY = copy.srcY;
    peer.srcZ = copy.srcZ;
    peer.srcMemoryType = copy.srcMemoryType;
    peer.srcDevice = copy.srcDevice;
    peer.srcArray = copy.srcArray;
    peer.srcPitch = copy.srcPitch;
    peer.srcHeight = copy.srcHeight;
    peer.dstXInBytes = copy.dstXInBytes;
    peer.dstY = copy.dstY;
    peer.dstZ = copy.dstZ;
    peer.dstMemoryType = copy.dstMemoryType;
    peer.dstDevice = copy.dstDevice;
    peer.dstArray = copy.dstArray;
    peer.dstPitch = copy.dstPitch;
    peer.dstHeight = copy.dstHeight;
    peer.WidthInBytes = copy.WidthInBytes;
    peer.Height = copy.Height;
    peer.Depth = copy.Depth;
    if (const cudaError_t error = source->Primary(&peer.srcContext); error != cudaSuccess) return error;
    if (const cudaError_t error = destination->Primary(&peer.dstContext); error != cudaSuccess) return error;
    const CUresult result =
        order.legacy_wait() ? driver.cuMemcpy3DPeer(&peer) : driver.cuMemcpy3DPeerAsync(&peer, order.stream());
    return FromDriver(order.Finish(driver, result));
  });
}

cudaError_t FillBytes(void* pointer, int value, size_t count, const CopyOrder& order) {
  return InContext([&](const Driver& driver) {
    if (count == 0) return CUDA_SUCCESS;
    if (pointer == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const auto byte = static_cast<unsigned char>(value);
    const CUresult result = order.legacy_wait() ? driver.cuMemsetD8(Address(pointer), byte, count)
                                                : driver.cuMemsetD8Async(Address(pointer), byte, count, order.stream());
    return order.Finish(driver, result);
  });
}

CUresult FillRows(const Driver& driver, CUdeviceptr address, size_t pitch, int value, size_t width, size_t height,
                  const CopyOrder& order) {
  const auto byte = static_cast<unsigned char>(value);
  const CUresult result = order.legacy_wait()
                              ? driver.cuMemsetD2D8(address, pitch, byte, width, height)
                              : driver.cuMemsetD2D8Async(address, pitch, byte, width, height, order.stream());
  return order.Finish(driver, result);
}

cudaError_t FillRect(void* pointer, size_t pitch, int value, size_t width, size_t height, const CopyOrder& order) {
  return InContext([&](const Driver& driver) {
    if (width == 0 || height == 0) return cudaSuccess;
    if (pointer == nullptr) return cudaErrorInvalidValue;
    if (width > pitch && height > 1) return cudaErrorInvalidPitchValue;
    return FromDriver(FillRows(driver, Address(pointer), pitch, value, width, height, order));
  });
}

cudaError_t FillBox(const cudaPitchedPtr& box, int value, const cudaExtent& extent, const CopyOrder& order) {
  return InContext([&](const Driver& driver) {
    if (extent.width == 0 || extent.height == 0 || extent.depth == 0) return cudaSuccess;
    if (box.ptr == nullptr) return cudaErrorInvalidValue;
    if (extent.width > box.pitch) return cudaErrorInvalidPitchValue;
    // Full slices lie one behind the other: one fill of all their rows.
    if (extent.height == box.ysize || extent.depth == 1) {
      return FromDriver(
          FillRows(driver, Address(box.ptr), box.pitch, value, extent.width, extent.height * extent.depth, order));
    }
    for (size_t slice = 0; slice < extent.depth; ++slice) {
      const CUdeviceptr address = Address(box.ptr) + slice * box.pitch * box.ysize;
      const CUresult result = FillRows(driver, address, box.pitch, value, extent.width, extent.height, order);
      if (result != CUDA_SUCCESS) return FromDriver(result);
    }
    return cudaSuccess;
  });
}

// The part of a variable that a copy names; it must lie inside.
cudaError_t FindPart(const void* symbol, size_t offset, size_t count, void** part) {
  CUdeviceptr address = 0;
  size_t size = 0;
  if (const cudaError_t error = ResolveSymbol(symbol, &address, &size); error != cudaSuccess) return error;
  if (offset > size || count > size - offset) return cudaErrorInvalidValue;
  *part = reinterpret_cast<void*>(address + offset);
  return cudaSuccess;
}

cudaError_t CopyToSymbol(const void* symbol, const void* source, size_t count, size_t offset, cudaMemcpyKind kind,
                         const CopyOrder& order) {
  return InContext([&](const Driver& driver) {
    if (kind != cudaMemcpyHostToDevice && kind != cudaMemcpyDeviceToDevice && kind != cudaMemcpyDefault) {
      return cudaErrorInvalidMemcpyDirection;
    }
    void* part = nullptr;
    if (const cudaError_t error = FindPart(symbol, offset, count, &part); error != cudaSuccess) return error;
    return Copy(driver, part, source, count, kind, order);
  });
}

cudaError_t CopyFromSymbol(void* destination, const void* symbol, size_t count, size_t offset, cudaMemcpyKind kind,
                           const CopyOrder& order) {
  return InContext([&](const Driver& driver) {
    if (kind != cudaMemcpyDeviceToHost && kind != cudaMemcpyDeviceToDevice && kind != cudaMemcpyDefault) {
      return cudaErrorInvalidMemcpyDirection;
    }
    void* part = nullptr;
    if (const cudaError_t error = FindPart(symbol, offset, count, &part); error != cudaSuccess) return error;
    return Copy(driver, destination, part, count, kind, order);
  });
}

cudaError_t CopyPeer(void* destination, int destination_device, const void* source, int source_device, size_t count,
                     const CopyOrder& order) {
  return InContext([&](const Driver& driver) {
    Device* from = Runtime::Get().device(source_device);
    Device* to = Runtime::Get().device(destination_device);
    if (from == nullptr || to == nullptr) return cudaErrorInvalidDevice;
    if (count == 0) return cudaSuccess;
    if (destination == nullptr || source == nullptr) return cudaErrorInvalidValue;
    CUcontext from_context = nullptr;
    CUcontext to_context = nullptr;
    if (const cudaError_t error = from->Primary(&from_context); error != cudaSuccess) return error;
    if (const cudaError_t error = to->Primary(&to_context); error != cudaSuccess) return error;
    const CUresult result =
        order.legacy_wait()
            ? driver.cuMemcpyPeer(Address(destination), to_context, Address(source), from_context, count)
            : driver.cuMemcpyPeerAsync(Address(destination), to_context, Address(source), from_context, count,
                                       order.stream());
    return FromDriver(order.Finish(driver, result));
  });
}

}  // namespace

extern "C" {

cudaError_t cudaMemcpy(void* destination, const void* source, size_t count, cudaMemcpyKind kind) {
  return InContext(
      [&](const Driver& driver) { return Copy(driver, destination, source, count, kind, CopyOrder::Wait()); });
}

cudaError_t cudaMemcpyAsync(void* destination, const void* source, size_t count, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  return InContext(
      [&](const Driver& driver) { return Copy(driver, destination, source, count, kind, CopyOrder::In(stream)); });
}

cudaError_t cudaMemcpy2D(void* destination, size_t destination_pitch, const void* source, size_t source_pitch,
                         size_t width, size_t height, cudaMemcpyKind kind) {
  return CopyRows(destination, destination_pitch, source, source_pitch, width, height, kind, CopyOrder::Wait());
}

cudaError_t cudaMemcpy2DAsync(void* destination, size_t destination_pitch, const void* source, size_t source_pitch,
                              size_t width, size_t height, cudaMemcpyKind kind, cudaStream_t stream) {
  return CopyRows(destination, destination_pitch, source, source_pitch, width, height, kind, CopyOrder::In(stream));
}

cudaError_t cudaMemcpy2DToArray(cudaArray_t destination, size_t x, size_t y, const void* source, size_t pitch,
                                size_t width, size_t height, cudaMemcpyKind kind) {
  return CopyRowsToArray(destination, x, y, source, pitch, width, height, kind, CopyOrder::Wait());
}

cudaError_t cudaMemcpy2DToArrayAsync(cudaArray_t destination, size_t x, size_t y, const void* source, size_t pitch,
                                     size_t width, size_t height, cudaMemcpyKind kind, cudaStream_t stream) {
  return CopyRowsToArray(destination, x, y, source, pitch, width, height, kind, CopyOrder::In(stream));
}

cudaError_t cudaMemcpy2DFromArray(void* destination, size_t pitch, cudaArray_const_t source, size_t x, size_t y,
                                  size_t width, size_t height, cudaMemcpyKind kind) {
  return CopyRowsFromArray(destination, pitch, source, x, y, width, height, kind, CopyOrder::Wait());
}

cudaError_t cudaMemcpy2DFromArrayAsync(void* destination, size_t pitch, cudaArray_const_t source, size_t x, size_t y,
                                       size_t width, size_t height, cudaMemcpyKind kind, cudaStream_t stream) {
  return CopyRowsFromArray(destination, pitch, source, x, y, width, height, kind, CopyOrder::In(stream));
}

cudaError_t cudaMemcpy2DArrayToArray(cudaArray_t destination, size_t to_x, size_t to_y, cudaArray_const_t source,
                                     size_t from_x, size_t from_y, size_t width, size_t height, cudaMemcpyKind kind) {
  return InContext([&](const Driver& driver) {
    if (kind != cudaMemcpyDeviceToDevice && kind != cudaMemcpyDefault) return cudaErrorInvalidMemcpyDirection;
    if (destination == nullptr || source == nullptr) return cudaErrorInvalidResourceHandle;
    CUDA_MEMCPY2D copy{};
    SetSource(copy, source, from_x, from_y);
    SetDestination(copy, destination, to_x, to_y);
    copy.WidthInBytes = width;
    copy.Height = height;
    return Copy2D(driver, copy, CopyOrder::Wait());
  });
}

cudaError_t cudaMemcpyToArray(cudaArray_t destination, size_t x, size_t y, const void* source, size_t count,
                              cudaMemcpyKind kind) {
  return CopyBytesToArray(destination, x, y, source, count, kind, CopyOrder::Wait());
}

cudaError_t cudaMemcpyToArrayAsync(cudaArray_t destination, size_t x, size_t y, const void* source, size_t count,
                                   cudaMemcpyKind kind, cudaStream_t stream) {
  return CopyBytesToArray(destination, x, y, source, count, kind, CopyOrder::In(stream));
}

cudaError_t cudaMemcpyFromArray(void* destination, cudaArray_const_t source, size_t x, size_t y, size_t count,
                                cudaMemcpyKind kind) {
  return CopyBytesFromArray(destination, source, x, y, count, kind, CopyOrder::Wait());
}

cudaError_t cudaMemcpyFromArrayAsync(void* destination, cudaArray_const_t source, size_t x, size_t y, size_t count,
                                     cudaMemcpyKind kind, cudaStream_t stream) {
  return CopyBytesFromArray(destination, source, x, y, count, kind, CopyOrder::In(stream));
}

cudaError_t cudaMemcpyArrayToArray(cudaArray_t destination, size_t to_x, size_t to_y, cudaArray_const_t source,
                                   size_t from_x, size_t from_y, size_t count, cudaMemcpyKind kind) {
  return InContext([&](const Driver& driver) {
    if (kind != cudaMemcpyDeviceToDevice && kind != cudaMemcpyDefault) return cudaErrorInvalidMemcpyDirection;
    size_t to_row = 0;
    size_t from_row = 0;
    if (const cudaError_t error = RowBytes(driver, destination, to_x, &to_row); error != cudaSuccess) return error;
    if (const cudaError_t error = RowBytes(driver, source, from_x, &from_row); error != cudaSuccess) return error;
    RowCursor to(to_row, to_x, to_y);
    RowCursor from(from_row, from_x, from_y);
    while (count > 0) {
      const size_t piece = std::min({count, to.rest_of_row(), from.rest_of_row()});
      CUDA_MEMCPY2D copy{};
      SetSource(copy, source, from.x(), from.y());
      SetDestination(copy, destination, to.x(), to.y());
      copy.WidthInBytes = piece;
      copy.Height = 1;
      if (const cudaError_t error = Copy2D(driver, copy, CopyOrder::Wait()); error != cudaSuccess) return error;
      to.Advance(piece);
      from.Advance(piece);
      count -= piece;
    }
    return cudaSuccess;
  });
}

cudaError_t cudaMemcpy3D(const cudaMemcpy3DParms* parameters) { return CopyBox(parameters, CopyOrder::Wait()); }
cudaError_t cudaMemcpy3DAsync(const cudaMemcpy3DParms* parameters, cudaStream_t stream) {
  return CopyBox(parameters, CopyOrder::In(stream));
}
cudaError_t cudaMemcpy3DPeer(const cudaMemcpy3DPeerParms* parameters) {
  return CopyPeerBox(parameters, CopyOrder::Wait());
}
cudaError_t cudaMemcpy3DPeerAsync(const cudaMemcpy3DPeerParms* parameters, cudaStream_t stream) {
  return CopyPeerBox(parameters, CopyOrder::In(stream));
}

cudaError_t cudaMemcpyPeer(void* destination, int destination_device, const void* source, int source_device,
                           size_t count) {
  return CopyPeer(destination, destination_device, source, source_device, count, CopyOrder::Wait());
}
cudaError_t cudaMemcpyPeerAsync(void* destination, int destination_device, const void* source, int source_device,
                                size_t count, cudaStream_t stream) {
  return CopyPeer(destination, destination_device, source, source_device, count, CopyOrder::In(stream));
}

cudaError_t cudaMemcpyToSymbol(const void* symbol, const void* source, size_t count, size_t offset,
                               cudaMemcpyKind kind) {
  return CopyToSymbol(symbol, source, count, offset, kind, CopyOrder::Wait());
}
cudaError_t cudaMemcpyToSymbolAsync(const void* symbol, const void* source, size_t count, size_t offset,
                                    cudaMemcpyKind kind, cudaStream_t stream) {
  return CopyToSymbol(symbol, source, count, offset, kind, CopyOrder::In(stream));
}
cudaError_t cudaMemcpyFromSymbol(void* destination, const void* symbol, size_t count, size_t offset,
                                 cudaMemcpyKind kind) {
  return CopyFromSymbol(destination, symbol, count, offset, kind, CopyOrder::Wait());
}
cudaError_t cudaMemcpyFromSymbolAsync(void* destination, const void* symbol, size_t count, size_t offset,
                                      cudaMemcpyKind kind, cudaStream_t stream) {
  return CopyFromSymbol(destination, symbol, count, offset, kind, CopyOrder::In(stream));
}

cudaError_t cudaGetSymbolAddress(void** pointer, const void* symbol) {
  return InContext([&](const Driver&) {
    if (pointer == nullptr) return cudaErrorInvalidValue;
    return FindPart(symbol, 0, 0, pointer);
  });
}

cudaError_t cudaGetSymbolSize(size_t* size, const void* symbol) {
  return InContext([&](const Driver&) {
    if (size == nullptr) return cudaErrorInvalidValue;
    CUdeviceptr address = 0;
    return ResolveSymbol(symbol, &address, size);
  });
}

cudaError_t cudaMemset(void* pointer, int value, size_t count) {
  return FillBytes(pointer, value, count, CopyOrder::Wait());
}
cudaError_t cudaMemsetAsync(void* pointer, int value, size_t count, cudaStream_t stream) {
  return FillBytes(pointer, value, count, CopyOrder::In(stream));
}
cudaError_t cudaMemset2D(void* pointer, size_t pitch, int value, size_t width, size_t height) {
  return FillRect(pointer, pitch, value, width, height, CopyOrder::Wait());
}
cudaError_t cudaMemset2DAsync(void* pointer, size_t pitch, int value, size_t width, size_t height,
                              cudaStream_t stream) {
  return FillRect(pointer, pitch, value, width, height, CopyOrder::In(stream));
}
cudaError_t cudaMemset3D(cudaPitchedPtr box, int value, cudaExtent extent) {
  return FillBox(box, value, extent, CopyOrder::Wait());
}
cudaError_t cudaMemset3DAsync(cudaPitchedPtr box, int value, cudaExtent extent, cudaStream_t stream) {
  return FillBox(box, value, extent, CopyOrder::In(stream));
}

}  // extern "C"
