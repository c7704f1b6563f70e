// SPDX-License-Identifier: Apache-2.0
// Copies between guest and device. Data travels in the command, in the reply or on the bulk channel; staging memory is
// registered with the driver, so that no copy waits.
#include <cstring>
#include <utility>

#include "server/backends/cuda/backend.h"

namespace hawser::server::cuda_backend {
namespace {

/// Small writes of a stream share a block of this size.
constexpr uint64_t kSlab = 256u << 10;
constexpr const char* kForeign = "the memory is not the session's";
constexpr const char* kNoStaging = "the session has no staging memory left";
constexpr const char* kUsedTransfer = "the transfer's name was used before, or it is too large";

bool IsHost(CUmemorytype type) { return type == CU_MEMORYTYPE_HOST || type == CU_MEMORYTYPE_UNIFIED; }

}  // namespace

int32_t CudaBackend::KeepUntilDone(const Place& at, StagingPool::Block block) {
  return KeepUntilDone(at, std::make_shared<StagingPool::Block>(std::move(block)));
}

int32_t CudaBackend::KeepUntilDone(const Place& at, std::shared_ptr<StagingPool::Block> kept) {
  const CUresult result = waits_->After(&at.stream->lane, at.native(), at.context->events, false,
                                        [kept](CUresult) mutable { kept.reset(); });
  if (result != CUDA_SUCCESS) {
    // The context is broken; whether the device still uses the memory nobody can say.
    new std::shared_ptr<StagingPool::Block>(std::move(kept));
  }
  return result;
}

std::byte* CudaBackend::Slab(const Place& at, wire::Bytes data) {
  StreamState& stream = *at.stream;
  if (!stream.slab || stream.slab_used + data.size() > stream.slab.capacity()) {
    if (stream.slab) (void)KeepUntilDone(at, std::move(stream.slab));
    stream.slab = at.context->staging->Take(data.size() > kSlab ? data.size() : kSlab);
    stream.slab_used = 0;
    if (!stream.slab) return nullptr;
  }
  std::byte* room = stream.slab.data() + stream.slab_used;
  std::memcpy(room, data.data(), data.size());
  stream.slab_used += (data.size() + 63) & ~uint64_t{63};
  if (stream.slab_used > stream.slab.capacity()) stream.slab_used = stream.slab.capacity();
  return room;
}

void CudaBackend::DrainTransfer(uint64_t transfer, uint64_t size) {
  if (transfer == 0 || size == 0) return;
  if (expected_.erase(transfer) != 0) return;  // It was announced already; the memory stays until it has come.
  (void)services_.bulk_in->Drop(transfer, size);
}

int32_t CudaBackend::Expect(const cuda::Call& call, const Context& at, wire::Id context, uint64_t transfer,
                            uint64_t size, Expected* expected) {
  expected->size = size;
  StagingPool::Block taken = at.staging->Take(size);
  if (!taken) {
    DrainTransfer(transfer, size);
    return Explain(CUDA_ERROR_OUT_OF_MEMORY, kNoStaging);
  }
  expected->block = std::make_shared<StagingPool::Block>(std::move(taken));
  expected->gate = std::make_shared<Gate>();
  // It holds the memory until the data is there, whatever becomes of the command.
  const auto opened = [this, transfer, gate = expected->gate, call, context, block = expected->block](int32_t status) {
    NoteCome(transfer, *gate);
    if (status == 0) return;
    cuda::CommandFailed notice;
    notice.seq = call.seq;
    notice.opcode = call.opcode;
    notice.status = status;
    notice.context = context;
    notice.text = "the data did not come";
    Notify(notice);
  };
  if (!services_.bulk_in->Expect(transfer, size, expected->block->data(), opened)) {
    return Explain(CUDA_ERROR_INVALID_VALUE, kUsedTransfer);
  }
  return 0;
}

int32_t CudaBackend::TakeCome(uint64_t transfer, uint64_t size, std::shared_ptr<StagingPool::Block>* block) {
  auto node = expected_.extract(transfer);
  if (node.empty() || node.mapped().size != size) return CUDA_ERROR_INVALID_VALUE;
  *block = std::move(node.mapped().block);
  return node.mapped().status;
}

template <typename CopyFunction>
int32_t CudaBackend::WriteWith(const cuda::Call& call, const Place& at, wire::Id context, uint64_t size,
                               uint64_t transfer, wire::Bytes data, CopyFunction&& copy) {
  if (transfer == 0) {
    if (data.size() != size) {
      return Fail(call, Explain(CUDA_ERROR_INVALID_VALUE, "the data has another size than it says"), {}, context);
    }
    std::byte* room = Slab(at, data);
    if (room == nullptr) return Fail(call, Explain(CUDA_ERROR_OUT_OF_MEMORY, kNoStaging), {}, context);
    return Finish(call, copy(room, at.native()), context);
  }
  std::shared_ptr<StagingPool::Block> block;
  if (const int32_t status = TakeCome(transfer, size, &block); status != 0) {
    return Finish(call, static_cast<CUresult>(status), context);
  }
  const CUresult result = copy(block->data(), at.native());
  (void)KeepUntilDone(at, std::move(block));
  return Finish(call, result, context);
}

int32_t CudaBackend::FailRead(const cuda::Call& call, uint64_t transfer, int32_t status) {
  if (transfer != 0) {
    services_.bulk_out->Abort(transfer, status);
  } else {
    ReplyWith(call, cuda::ReadReply(), status);
  }
  return 0;
}

void CudaBackend::Land(const cuda::Call& call, uint64_t size, uint64_t transfer,
                       std::shared_ptr<StagingPool::Block> block, CUresult result) {
  if (transfer == 0) {
    cuda::ReadReply reply;
    reply.status = result;
    if (result == CUDA_SUCCESS) reply.data = wire::Bytes(block->data(), size);
    Reply(call, reply);
  } else if (result != CUDA_SUCCESS) {
    services_.bulk_out->Abort(transfer, result);
  } else {
    const wire::Bytes data(block->data(), size);
    services_.bulk_out->Send(transfer, data, [block = std::move(block)]() mutable { block.reset(); });
  }
}

template <typename CopyFunction>
int32_t CudaBackend::ReadWith(const cuda::Call& call, const Place& at, wire::Id context, uint64_t size,
                              uint64_t transfer, CopyFunction&& copy) {
  StagingPool::Block taken = at.context->staging->Take(size);
  if (!taken) return FailRead(call, transfer, CUDA_ERROR_OUT_OF_MEMORY);
  if (const CUresult result = copy(taken.data(), at.native()); result != CUDA_SUCCESS) {
    Note(context, result);
    return FailRead(call, transfer, result);
  }
  auto block = std::make_shared<StagingPool::Block>(std::move(taken));
  const auto landed = [this, call, size, transfer, block](CUresult result) mutable {
    Land(call, size, transfer, std::move(block), result);
  };
  if (const CUresult result = waits_->After(&at.stream->lane, at.native(), at.context->events, true, landed);
      result != CUDA_SUCCESS) {
    Note(context, result);
    return FailRead(call, transfer, result);
  }
  return 0;
}

int32_t CudaBackend::Write(const cuda::Call& call, const cuda::Write& message) {
  const Place at = At(message.context, message.stream, message.transfer == 0 ? Gives::kPlain : Gives::kMore);
  int32_t status = at.status;
  if (status == 0 && !Owns(message.address, message.size)) status = Explain(CUDA_ERROR_INVALID_VALUE, kForeign);
  if (status != 0) {
    DrainTransfer(message.transfer, message.size);
    return Fail(call, status, {}, message.context);
  }
  if (message.size == 0) return 0;
  if (message.transfer != 0 &&
      AwaitData(call, at, message.transfer, message.size, [this, call, message] { return Write(call, message); })) {
    return 0;
  }
  return WriteWith(call, at, message.context, message.size, message.transfer, message.data,
                   [&](const std::byte* from, CUstream stream) {
                     services_.stats->copied_in.Add(message.size);
                     return InPieces(message.size, CopyPiece(at, message.size), [&](uint64_t offset, uint64_t size) {
                       return driver_.cuMemcpyHtoDAsync(message.address + offset, from + offset, size, stream);
                     });
                   });
}

int32_t CudaBackend::Read(const cuda::Call& call, const cuda::Read& message) {
  const Place at = At(message.context, message.stream);
  if (!at.ok()) return FailRead(call, message.transfer, at.status);
  if (message.size == 0 || !Owns(message.address, message.size)) {
    return FailRead(call, message.transfer, message.size == 0 ? 0 : CUDA_ERROR_INVALID_VALUE);
  }
  return ReadWith(call, at, message.context, message.size, message.transfer, [&](std::byte* to, CUstream stream) {
    services_.stats->copied_out.Add(message.size);
    return InPieces(message.size, CopyPiece(at, message.size), [&](uint64_t offset, uint64_t size) {
      return driver_.cuMemcpyDtoHAsync(to + offset, message.address + offset, size, stream);
    });
  });
}

int32_t CudaBackend::CopyLinear(const cuda::Call& call, const cuda::CopyLinear& message) {
  const Place at = At(message.context, message.stream);
  if (!at.ok()) return Fail(call, at.status, {}, message.context);
  if (!Owns(message.destination, message.size) || !Owns(message.source, message.size)) {
    return Fail(call, Explain(CUDA_ERROR_INVALID_VALUE, kForeign), {}, message.context);
  }
  if (message.size == 0) return 0;
  // Either side may be pinned host memory, under its device address.
  const MemoryRange* to = memory_.Around(message.destination);
  const MemoryRange* from = memory_.Around(message.source);
  if ((to->kind == MemoryKind::kHeap || from->kind == MemoryKind::kHeap) && driver_.cuMemcpyAsync != nullptr) {
    if (from->kind != MemoryKind::kHeap) services_.stats->copied_out.Add(message.size);
    if (to->kind != MemoryKind::kHeap) services_.stats->copied_in.Add(message.size);
    const CUresult result = InPieces(message.size, CopyPiece(at, message.size), [&](uint64_t offset, uint64_t size) {
      return driver_.cuMemcpyAsync(message.destination + offset, message.source + offset, size, at.native());
    });
    return Finish(call, result, message.context);
  }
  return Finish(call, driver_.cuMemcpyDtoDAsync(message.destination, message.source, message.size, at.native()),
                message.context);
}

int32_t CudaBackend::CopyHeap(const cuda::Call& call, const cuda::CopyHeap& message) {
  const Place at = At(message.context, message.stream);
  if (!at.ok()) return Fail(call, at.status, {}, message.context);
  if (!Owns(message.address, message.size) || !OwnsHeap(message.heap_offset, message.size)) {
    return Fail(call, Explain(CUDA_ERROR_INVALID_VALUE, kForeign), {}, message.context);
  }
  if (message.size == 0) return 0;
  std::byte* heap = services_.heap.base + message.heap_offset;
  (message.to_heap != 0 ? services_.stats->copied_out : services_.stats->copied_in).Add(message.size);
  const CUresult result = InPieces(message.size, CopyPiece(at, message.size), [&](uint64_t offset, uint64_t size) {
    return message.to_heap != 0 ? driver_.cuMemcpyDtoHAsync(heap + offset, message.address + offset, size, at.native())
                                : driver_.cuMemcpyHtoDAsync(message.address + offset, heap + offset, size, at.native());
  });
  return Finish(call, result, message.context);
}

// --- 2D and 3D

void CudaBackend::DescribeHost(std::byte* host, uint64_t width, uint64_t height, bool destination,
                               CUDA_MEMCPY3D* copy) {
  if (destination) {
    copy->dstMemoryType = CU_MEMORYTYPE_HOST;
    copy->dstHost = host;
    copy->dstPitch = width;
    copy->dstHeight = height;
  } else {
    copy->srcMemoryType = CU_MEMORYTYPE_HOST;
    copy->srcHost = host;
    copy->srcPitch = width;
    copy->srcHeight = height;
  }
}

bool CudaBackend::DescribeSide(const cuda::CopySide& side, uint64_t width, uint64_t height, uint64_t depth,
                               bool destination, CUDA_MEMCPY3D* copy, int32_t* status) {
  enum : uint32_t { kAddress = 0, kArray = 1, kHeap = 2, kStaging = 3 };
  if (side.kind == kArray) {
    CUarray array = nullptr;
    if (const Array* object = Use<Array>(side.object, status); object != nullptr) array = object->native;
    if (array == nullptr) return false;
    (destination ? copy->dstMemoryType : copy->srcMemoryType) = CU_MEMORYTYPE_ARRAY;
    (destination ? copy->dstArray : copy->srcArray) = array;
    (destination ? copy->dstXInBytes : copy->srcXInBytes) = side.x_bytes;
    (destination ? copy->dstY : copy->srcY) = side.y;
    (destination ? copy->dstZ : copy->srcZ) = side.z;
    return true;
  }
  const auto wrong = [&](const char* why) {
    *status = Explain(CUDA_ERROR_INVALID_VALUE, why);
    return false;
  };
  // From here on offsets become part of the address: then one range says what is touched.
  const uint64_t pitch = side.pitch != 0 ? side.pitch : side.x_bytes + width;
  const uint64_t rows = side.height != 0 ? side.height : side.y + height;
  uint64_t slice = 0, offset = 0, part = 0;
  if (__builtin_add_overflow(side.x_bytes, width, &part) || (height > 1 && part > pitch) ||
      __builtin_mul_overflow(pitch, rows, &slice) || __builtin_mul_overflow(side.z, slice, &offset) ||
      __builtin_mul_overflow(side.y, pitch, &part) || __builtin_add_overflow(offset, part, &offset) ||
      __builtin_add_overflow(offset, side.x_bytes, &offset)) {
    return wrong("the region is larger than the address space");
  }
  const auto extent = [&](uint64_t* bytes) {
    uint64_t slices = 0, lines = 0;
    return !__builtin_mul_overflow(depth - 1, slice, &slices) && !__builtin_mul_overflow(height - 1, pitch, &lines) &&
           !__builtin_add_overflow(slices, lines, bytes) && !__builtin_add_overflow(*bytes, width, bytes);
  };
  uint64_t bytes = 0;
  if (!extent(&bytes)) return wrong("the region is larger than the address space");
  (destination ? copy->dstPitch : copy->srcPitch) = pitch;
  (destination ? copy->dstHeight : copy->srcHeight) = rows;
  if (side.kind == kAddress) {
    if (side.address > UINT64_MAX - offset || !Owns(side.address + offset, bytes)) return wrong(kForeign);
    const MemoryRange* range = memory_.Around(side.address + offset);
    // Pinned host memory under its device address: the driver finds out.
    const CUmemorytype type =
        range != nullptr && range->kind == MemoryKind::kHeap ? CU_MEMORYTYPE_UNIFIED : CU_MEMORYTYPE_DEVICE;
    (destination ? copy->dstMemoryType : copy->srcMemoryType) = type;
    (destination ? copy->dstDevice : copy->srcDevice) = side.address + offset;
    return true;
  }
  std::byte* host = nullptr;
  if (side.kind == kHeap) {
    if (side.address > UINT64_MAX - offset || !OwnsHeap(side.address + offset, bytes)) return wrong(kForeign);
    host = services_.heap.base + side.address + offset;
  } else {
    const Staging* staging = Use<Staging>(side.object, status);
    if (staging == nullptr) return false;
    uint64_t first = 0, end = 0;
    if (__builtin_add_overflow(side.address, offset, &first) || __builtin_add_overflow(first, bytes, &end) ||
        end > staging->size) {
      return wrong("the region is outside of the staging memory");
    }
    host = staging->block.data() + first;
  }
  (destination ? copy->dstMemoryType : copy->srcMemoryType) = CU_MEMORYTYPE_HOST;
  if (destination) {
    copy->dstHost = host;
  } else {
    copy->srcHost = host;
  }
  return true;
}

int32_t CudaBackend::CopyRegion(const cuda::Call& call, const cuda::CopyRegion& message) {
  const Place at = At(message.context, message.stream);
  if (!at.ok()) return Fail(call, at.status, {}, message.context);
  if (driver_.cuMemcpy3DAsync == nullptr) return Fail(call, kNotSupported, {}, message.context);
  if (message.width_bytes == 0 || message.height == 0 || message.depth == 0) return 0;
  CUDA_MEMCPY3D copy{};
  int32_t status = 0;
  if (!DescribeSide(message.destination, message.width_bytes, message.height, message.depth, true, &copy, &status) ||
      !DescribeSide(message.source, message.width_bytes, message.height, message.depth, false, &copy, &status)) {
    return Fail(call, status, {}, message.context);
  }
  copy.WidthInBytes = message.width_bytes;
  copy.Height = message.height;
  copy.Depth = message.depth;
  const uint64_t bytes = message.width_bytes * message.height * message.depth;  // Only to be shown.
  const bool from_host = IsHost(copy.srcMemoryType), to_host = IsHost(copy.dstMemoryType);
  if (from_host && !to_host) services_.stats->copied_in.Add(bytes);
  if (to_host && !from_host) services_.stats->copied_out.Add(bytes);
  const CUresult result =
      InPieces(copy, from_host != to_host ? CopyPiece(at, bytes) : UINT64_MAX,
               [&](const CUDA_MEMCPY3D& part) { return driver_.cuMemcpy3DAsync(&part, at.native()); });
  return Finish(call, result, message.context);
}

namespace {

/// True when `size` is width * height * depth, and not 0.
bool IsProduct(uint64_t size, uint64_t width, uint64_t height, uint64_t depth) {
  uint64_t product = 0;
  return size != 0 && !__builtin_mul_overflow(width, height, &product) &&
         !__builtin_mul_overflow(product, depth, &product) && product == size;
}

}  // namespace

int32_t CudaBackend::WriteRegion(const cuda::Call& call, const cuda::WriteRegion& message) {
  const Place at = At(message.context, message.stream);
  int32_t status = at.status;
  CUDA_MEMCPY3D copy{};
  if (status == 0 && driver_.cuMemcpy3DAsync == nullptr) status = kNotSupported;
  if (status == 0 && !IsProduct(message.size, message.width_bytes, message.height, message.depth)) {
    status = Explain(CUDA_ERROR_INVALID_VALUE, "the data has another size than its region");
  }
  if (status == 0) {
    (void)DescribeSide(message.destination, message.width_bytes, message.height, message.depth, true, &copy, &status);
  }
  if (status != 0) {
    DrainTransfer(message.transfer, message.size);
    return Fail(call, status, {}, message.context);
  }
  if (message.transfer != 0 && AwaitData(call, at, message.transfer, message.size,
                                         [this, call, message] { return WriteRegion(call, message); })) {
    return 0;
  }
  copy.WidthInBytes = message.width_bytes;
  copy.Height = message.height;
  copy.Depth = message.depth;
  return WriteWith(call, at, message.context, message.size, message.transfer, message.data,
                   [&](std::byte* from, CUstream stream) {
                     DescribeHost(from, message.width_bytes, message.height, false, &copy);
                     services_.stats->copied_in.Add(message.size);
                     return InPieces(copy, CopyPiece(at, message.size),
                                     [&](const CUDA_MEMCPY3D& part) { return driver_.cuMemcpy3DAsync(&part, stream); });
                   });
}

int32_t CudaBackend::ReadRegion(const cuda::Call& call, const cuda::ReadRegion& message) {
  const Place at = At(message.context, message.stream);
  int32_t status = at.status;
  CUDA_MEMCPY3D copy{};
  if (status == 0 && driver_.cuMemcpy3DAsync == nullptr) status = kNotSupported;
  if (status == 0 && !IsProduct(message.size, message.width_bytes, message.height, message.depth)) {
    status = CUDA_ERROR_INVALID_VALUE;
  }
  if (status == 0) {
    (void)DescribeSide(message.source, message.width_bytes, message.height, message.depth, false, &copy, &status);
  }
  if (status != 0) return FailRead(call, message.transfer, status);
  copy.WidthInBytes = message.width_bytes;
  copy.Height = message.height;
  copy.Depth = message.depth;
  return ReadWith(call, at, message.context, message.size, message.transfer, [&](std::byte* to, CUstream stream) {
    DescribeHost(to, message.width_bytes, message.height, true, &copy);
    services_.stats->copied_out.Add(message.size);
    return InPieces(copy, CopyPiece(at, message.size),
                    [&](const CUDA_MEMCPY3D& part) { return driver_.cuMemcpy3DAsync(&part, stream); });
  });
}

// --- host memory of graphs

int32_t CudaBackend::CreateStaging(const cuda::Call& call, const cuda::CreateStaging& message) {
  int32_t status = 0;
  const Context* context = Enter(message.context, &status);
  if (context == nullptr) return Fail(call, status, message.staging);
  Staging staging;
  staging.context = message.context;
  staging.size = message.size;
  staging.block = context->staging->Take(message.size);
  if (!staging.block) return Fail(call, Explain(CUDA_ERROR_OUT_OF_MEMORY, kNoStaging), message.staging);
  status = Keep(message.staging, std::move(staging));
  return status == 0 ? 0 : Fail(call, status);
}

void CudaBackend::KeepForGraphs(wire::Id context_id, StagingPool::Block block) {
  int32_t status = 0;
  Context* const context = Enter(context_id, &status);
  if (context == nullptr) return;
  if (context->parked == nullptr) context->parked = std::make_shared<std::vector<StagingPool::Block>>();
  context->parked->push_back(std::move(block));
  if (captures()) return;  // To ask a stream that captures would end that: with the next one.
  const auto parked = std::exchange(context->parked, nullptr);
  const auto keep = [&](StreamState& stream) {
    if (QueryEnd(stream) == CUDA_ERROR_NOT_READY) (void)TellEnd(*context, stream, [parked](CUresult) {});
  };
  keep(*context->legacy);
  ForEachStream(context_id, keep);
}

int32_t CudaBackend::WriteStaging(const cuda::Call& call, const cuda::WriteStaging& message) {
  const Place at = At(message.context, message.stream);
  int32_t status = at.status;
  const Staging* staging = status == 0 ? Use<Staging>(message.staging, &status) : nullptr;
  if (staging != nullptr && (message.offset > staging->size || message.size > staging->size - message.offset)) {
    status = Explain(CUDA_ERROR_INVALID_VALUE, "the range is outside of the staging memory");
  }
  if (status != 0) {
    DrainTransfer(message.transfer, message.size);
    return Fail(call, status, {}, message.context);
  }
  if (message.size == 0) return 0;
  if (message.transfer != 0 && AwaitData(call, at, message.transfer, message.size,
                                         [this, call, message] { return WriteStaging(call, message); })) {
    return 0;
  }
  std::shared_ptr<StagingPool::Block> block;
  if (message.transfer != 0) {
    status = TakeCome(message.transfer, message.size, &block);
  } else if (message.data.size() != message.size) {
    status = Explain(CUDA_ERROR_INVALID_VALUE, "the data has another size than it says");
  } else {
    block = std::make_shared<StagingPool::Block>(at.context->staging->Take(message.size));
    if (*block) {
      std::memcpy(block->data(), message.data.data(), message.size);
    } else {
      status = Explain(CUDA_ERROR_OUT_OF_MEMORY, kNoStaging);
    }
  }
  if (status != 0) return Fail(call, status, {}, message.context);
  // By nobody's host function (pending.cc): the stream stands still meanwhile.
  std::byte* const to = staging->block.data() + message.offset;
  const Deferral::Ticket hold = HoldStream(*at.stream);
  const CUresult result = waits_->After(&at.stream->lane, at.native(), at.context->events, false,
                                        [this, to, block, size = message.size, hold](CUresult end) mutable {
                                          if (end == CUDA_SUCCESS) std::memcpy(to, block->data(), size);
                                          block.reset();
                                          ReleaseLater(hold);
                                        });
  if (result != CUDA_SUCCESS) ReleaseNow(hold);
  return Finish(call, result, message.context);
}

int32_t CudaBackend::ReadStaging(const cuda::Call& call, const cuda::ReadStaging& message) {
  const Place at = At(message.context, message.stream);
  int32_t status = at.status;
  const Staging* staging = status == 0 ? Use<Staging>(message.staging, &status) : nullptr;
  if (staging != nullptr && (message.offset > staging->size || message.size > staging->size - message.offset)) {
    status = CUDA_ERROR_INVALID_VALUE;
  }
  if (status != 0 || message.size == 0) return FailRead(call, message.transfer, status);
  auto block = std::make_shared<StagingPool::Block>(at.context->staging->Take(message.size));
  if (!*block) return FailRead(call, message.transfer, CUDA_ERROR_OUT_OF_MEMORY);
  const std::byte* const from = staging->block.data() + message.offset;
  const Deferral::Ticket hold = HoldStream(*at.stream);
  const CUresult result =
      waits_->After(&at.stream->lane, at.native(), at.context->events, true,
                    [this, call, size = message.size, transfer = message.transfer, from, block, hold](CUresult end) {
                      if (end == CUDA_SUCCESS) std::memcpy(block->data(), from, size);
                      ReleaseLater(hold);
                      Land(call, size, transfer, block, end);
                    });
  if (result == CUDA_SUCCESS) return 0;
  ReleaseNow(hold);
  Note(message.context, result);
  return FailRead(call, message.transfer, result);
}

}  // namespace hawser::server::cuda_backend
