// SPDX-License-Identifier: Apache-2.0
#include "softcuda/driver/work.h"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>
#include <thread>

#include "softcuda/driver/driver.h"
#include "softcuda/driver/kernel_runner.h"
#include "softcuda/driver/log.h"

namespace hawser::soft {
namespace {

/// One side of a copy: where (0, 0, 0) of the copied box lies, and the steps from row to row and slice to slice.
struct Side {
  uint8_t* data = nullptr;
  uint64_t row = 0;
  uint64_t slice = 0;
};

Side LinearSide(uint64_t base, size_t x, size_t y, size_t z, size_t pitch, size_t height) {
  Side side;
  side.row = pitch;
  side.slice = pitch * height;
  side.data = reinterpret_cast<uint8_t*>(base + x + y * side.row + z * side.slice);
  return side;
}

Side ArraySide(const Array& array, size_t x, size_t y, size_t z) {
  Side side;
  side.row = array.row_pitch;
  side.slice = array.slice_pitch;
  side.data = array.data + x + y * side.row + z * side.slice;
  return side;
}

/// A graph may be launched long after memory of its nodes is gone. False: so it is, and the context has failed.
bool IsThere(uint64_t first, uint64_t bytes, bool writing, const char* who, Context* context) {
  const MemoryMap& memory = GetDriver()->memory;
  if (writing ? memory.CoversForWriting(first, bytes) : memory.Covers(first, bytes)) return true;
  char text[160];
  std::snprintf(text, sizeof(text), "a %s %s %llu bytes at 0x%llx, where its memory is no more", who,
                writing ? "writes" : "reads", static_cast<unsigned long long>(bytes),
                static_cast<unsigned long long>(first));
  Log(text);
  context->Fail(CUDA_ERROR_ILLEGAL_ADDRESS);
  return false;
}

bool IsThere(const Side& side, const CUDA_MEMCPY3D& c, bool writing, Context* context) {
  const uint64_t bytes = (c.Depth - 1) * side.slice + (c.Height - 1) * side.row + c.WidthInBytes;
  return IsThere(reinterpret_cast<uint64_t>(side.data), bytes, writing, "copy", context);
}

Side SourceOf(const CopyWork& work) {
  const CUDA_MEMCPY3D& c = work.copy;
  if (work.source != nullptr) return ArraySide(*work.source, c.srcXInBytes, c.srcY, c.srcZ);
  const uint64_t from = c.srcMemoryType == CU_MEMORYTYPE_HOST ? reinterpret_cast<uint64_t>(c.srcHost) : c.srcDevice;
  return LinearSide(from, c.srcXInBytes, c.srcY, c.srcZ, c.srcPitch, c.srcHeight);
}

Side TargetOf(const CopyWork& work) {
  const CUDA_MEMCPY3D& c = work.copy;
  if (work.target != nullptr) return ArraySide(*work.target, c.dstXInBytes, c.dstY, c.dstZ);
  const uint64_t to = c.dstMemoryType == CU_MEMORYTYPE_HOST ? reinterpret_cast<uint64_t>(c.dstHost) : c.dstDevice;
  return LinearSide(to, c.dstXInBytes, c.dstY, c.dstZ, c.dstPitch, c.dstHeight);
}

void CopyBox(const CopyWork& work) {
  const CUDA_MEMCPY3D& c = work.copy;
  const Side source = SourceOf(work), target = TargetOf(work);
  for (size_t z = 0; z < c.Depth; ++z) {
    for (size_t y = 0; y < c.Height; ++y) {
      std::memmove(target.data + z * target.slice + y * target.row, source.data + z * source.slice + y * source.row,
                   c.WidthInBytes);
    }
  }
}

void RunCopy(const CopyWork& work, Context* context) {
  if (work.copy.Depth == 0) return;
  if (work.known_source && !IsThere(SourceOf(work), work.copy, /*writing=*/false, context)) return;
  if (work.known_target && !IsThere(TargetOf(work), work.copy, /*writing=*/true, context)) return;
  CopyBox(work);
}

template <typename T>
void FillRow(uint8_t* row, T value, size_t count) {
  for (size_t i = 0; i < count; ++i) std::memcpy(row + i * sizeof(T), &value, sizeof(T));
}

void RunMemset(const CUDA_MEMSET_NODE_PARAMS& set, Context* context) {
  if (set.height == 0) return;
  const uint64_t bytes = (set.height - 1) * set.pitch + set.width * set.elementSize;
  if (!IsThere(set.dst, bytes, /*writing=*/true, "memset", context)) return;
  for (size_t y = 0; y < set.height; ++y) {
    auto* const row = reinterpret_cast<uint8_t*>(set.dst) + y * set.pitch;
    if (set.elementSize == 1) {
      std::memset(row, static_cast<int>(set.value & 0xff), set.width);
    } else if (set.elementSize == 2) {
      FillRow(row, static_cast<uint16_t>(set.value), set.width);
    } else {
      FillRow(row, static_cast<uint32_t>(set.value), set.width);
    }
  }
}

template <typename T>
bool Met(CUdeviceptr address, T wanted, unsigned flags) {
  const T value = std::atomic_ref<T>(*reinterpret_cast<T*>(address)).load(std::memory_order_acquire);
  switch (flags & 3) {
    case CU_STREAM_WAIT_VALUE_GEQ:
      return static_cast<std::make_signed_t<T>>(value - wanted) >= 0;
    case CU_STREAM_WAIT_VALUE_EQ:
      return value == wanted;
    case CU_STREAM_WAIT_VALUE_AND:
      return (value & wanted) != 0;
    default:
      return static_cast<T>(~(value | wanted)) != 0;  // NOR
  }
}

template <typename T>
void WaitForValue(CUdeviceptr address, T wanted, unsigned flags, const Context& context) {
  for (int turn = 0; !Met(address, wanted, flags); ++turn) {
    if (context.cancelled().load(std::memory_order_relaxed) || context.error() != CUDA_SUCCESS) return;
    if (turn < 64) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  }
}

template <typename T>
void WriteValue(CUdeviceptr address, T value) {
  std::atomic_ref<T>(*reinterpret_cast<T*>(address)).store(value, std::memory_order_release);
}

void RunMemoryOperations(const MemoryOperationsWork& work, Context& context) {
  for (const CUstreamBatchMemOpParams& op : work.operations) {
    const bool waits = op.operation == CU_STREAM_MEM_OP_WAIT_VALUE_32 || op.operation == CU_STREAM_MEM_OP_WAIT_VALUE_64;
    const bool writes =
        op.operation == CU_STREAM_MEM_OP_WRITE_VALUE_32 || op.operation == CU_STREAM_MEM_OP_WRITE_VALUE_64;
    const bool wide = op.operation == CU_STREAM_MEM_OP_WAIT_VALUE_64 || op.operation == CU_STREAM_MEM_OP_WRITE_VALUE_64;
    const uint64_t address = waits ? op.waitValue.address : op.writeValue.address;
    if ((waits || writes) && !IsThere(address, wide ? 8 : 4, writes, "stream's value", &context)) return;
    switch (op.operation) {
      case CU_STREAM_MEM_OP_WAIT_VALUE_32:
        WaitForValue<uint32_t>(op.waitValue.address, op.waitValue.value, op.waitValue.flags, context);
        break;
      case CU_STREAM_MEM_OP_WAIT_VALUE_64:
        WaitForValue<uint64_t>(op.waitValue.address, op.waitValue.value64, op.waitValue.flags, context);
        break;
      case CU_STREAM_MEM_OP_WRITE_VALUE_32:
        WriteValue<uint32_t>(op.writeValue.address, op.writeValue.value);
        break;
      case CU_STREAM_MEM_OP_WRITE_VALUE_64:
        WriteValue<uint64_t>(op.writeValue.address, op.writeValue.value64);
        break;
      default:
        break;  // Barriers and flushes: memory here is coherent.
    }
  }
}

struct Executor {
  Context* context;
  bool failed;
  exec::ConditionSink* conditions;

  void operator()(const EmptyWork&) const {}
  void operator()(const KernelWork& work) const {
    if (!failed) RunKernel(work, context, conditions);
  }
  void operator()(const CopyWork& work) const {
    if (!failed) RunCopy(work, context);
  }
  void operator()(const MemsetWork& work) const {
    if (!failed) RunMemset(work.set, context);
  }
  void operator()(const HostWork& work) const {
    if (!failed) work.function(work.data);
  }
  void operator()(const CallbackWork& work) const {
    // Who is told that work is over finds what its kernels printed.
    context->print.Flush();
    work.function(work.stream, context->error(), work.data);
  }
  void operator()(const EventRecordWork&) const {}
  void operator()(const EventWaitWork&) const {}
  void operator()(const ChildWork&) const {}
  void operator()(const ConditionalWork&) const {}
  void operator()(const AllocWork&) const {}
  void operator()(const FreeWork& work) const {
    Driver* const driver = GetDriver();
    const AllocationPtr allocation = driver->memory.Find(work.address);
    if (allocation == nullptr || allocation->begin != work.address || allocation->graph) return;
    driver->ReleaseLater(allocation, context);
  }
  void operator()(const MemoryOperationsWork& work) const {
    if (!failed) RunMemoryOperations(work, *context);
  }
};

}  // namespace

void Stage(CopyWork* work) {
  CUDA_MEMCPY3D& c = work->copy;
  work->staged = std::make_shared<std::vector<uint8_t>>(c.WidthInBytes * c.Height * c.Depth);
  CopyWork taking = *work;
  taking.target = nullptr;
  taking.copy.dstMemoryType = CU_MEMORYTYPE_HOST;
  taking.copy.dstHost = work->staged->data();
  taking.copy.dstXInBytes = taking.copy.dstY = taking.copy.dstZ = 0;
  taking.copy.dstPitch = c.WidthInBytes;
  taking.copy.dstHeight = c.Height;
  CopyBox(taking);
  c.srcMemoryType = CU_MEMORYTYPE_HOST;
  c.srcHost = work->staged->data();
  c.srcXInBytes = c.srcY = c.srcZ = 0;
  c.srcPitch = c.WidthInBytes;
  c.srcHeight = c.Height;
  work->pageable_source = work->known_source = false;
}

void Execute(const Work& work, Context* context, exec::ConditionSink* conditions) {
  std::visit(Executor{context, context->error() != CUDA_SUCCESS || context->destroyed(), conditions}, work);
}

}  // namespace hawser::soft
