// SPDX-License-Identifier: Apache-2.0
#include "interposer/cuda/heap_memory.h"

#include <cstring>
#include <mutex>

#include "interposer/cuda/transfer.h"

namespace hawser::cu {
namespace {

/// Gives pages back when the server has answered.
class PagesOnTheirWay final : public guest::ReplySink {
 public:
  explicit PagesOnTheirWay(const HeapPages& pages) : pages_(pages) {}
  void OnReply(wire::Bytes) override { End(); }
  void OnLost() override { End(); }

 private:
  void End() {
    HeapMemory::Get().Give(pages_);
    delete this;
  }
  const HeapPages pages_;
};

/// The allocation around all of the range, if its bytes lie in the heap.
std::optional<PointerRange> FindInHeap(CUdeviceptr address, uint64_t size) {
  auto range = Client::Get().pointers().Find(address);
  if (!range || !range->in_heap) return std::nullopt;
  const uint64_t offset = address - range->begin;
  if (offset > range->size || size > range->size - offset) return std::nullopt;
  return range;
}

}  // namespace

HeapMemory& HeapMemory::Get() {
  static auto* memory = new HeapMemory;
  return *memory;
}

HeapPages HeapMemory::PagesOf(const PointerRange& range) {
  return range.has_heap_pages() ? HeapPages{range.heap_pages, (range.size + kPage - 1) / kPage * kPage} : HeapPages{};
}

HeapPages HeapMemory::Take(uint64_t size) {
  const Client& client = Client::Get();
  guest::Session* const session = client.session();
  if (!client.memory_in_heap() || size < kLeast || size > session->heap_size()) return {};
  const uint64_t bytes = (size + kPage - 1) / kPage * kPage;
  const uint64_t most = session->heap_size() / 4 * 3;
  if (taken_.fetch_add(bytes, std::memory_order_relaxed) + bytes <= most) {
    const uint64_t offset = session->HeapAllocate(bytes);
    if (offset != guest::Session::kNoHeap) return {offset, bytes};
  }
  taken_.fetch_sub(bytes, std::memory_order_relaxed);
  return {};
}

void HeapMemory::Give(const HeapPages& pages) {
  if (pages.size == 0) return;
  Client::Get().session()->HeapFree(pages.offset, pages.size);
  taken_.fetch_sub(pages.size, std::memory_order_relaxed);
}

CUresult HeapMemory::Free(wire::Id context, const PointerRange& range) {
  cuda::FreeInHeap message;
  message.context = context;
  message.address = range.begin;
  auto* sink = new PagesOnTheirWay(PagesOf(range));
  const int32_t error = Client::Get().session()->SendForReply(cuda::FreeInHeap::kOpcode, message, sink);
  if (error != 0) sink->OnLost();
  return FromWire(error);
}

CUresult HeapMemory::GiveAfter(StreamCommand& command, const HeapPages& pages) {
  if (pages.size == 0) return CUDA_SUCCESS;
  cuda::SynchronizeStream message;
  command.Address(message);
  auto* sink = new PagesOnTheirWay(pages);
  const int32_t error = command.session()->SendForReply(cuda::SynchronizeStream::kOpcode, message, sink);
  if (error != 0) sink->OnLost();
  return FromWire(error);
}

bool HeapMemory::IsIdle(StreamCommand& command) {
  CUstream_st* const stream = command.stream();
  // Whatever the stream waits for was sent. When all that was sent since it was waited for is that one command, there
  // is nothing new.
  return stream->idle_at.load(std::memory_order_relaxed) ==
             command.session()->stats().commands.load(std::memory_order_relaxed) ||
         IsKnownIdle(stream);
}

CUresult HeapMemory::AwaitWork(StreamCommand& command) {
  CUstream_st* const stream = command.stream();
  const uint64_t sent = command.session()->stats().commands.load(std::memory_order_relaxed);
  const CUresult error = SynchronizeStream(stream, Until::kTurn);
  if (error == CUDA_SUCCESS) stream->idle_at.store(sent + 1, std::memory_order_relaxed);
  return error;
}

template <typename CopyFunction>
std::optional<CUresult> HeapMemory::Copy(StreamCommand& command, CUdeviceptr address, uint64_t size, Wait wait,
                                         const Head* head, CopyFunction&& copy) {
  if (!FindInHeap(address, size)) return std::nullopt;
  const bool idle = IsIdle(command);
  if (!idle && wait == Wait::kNo) return std::nullopt;
  const CUresult error = idle ? AfterWork(command.stream(), Mirrors::Get().Mark()) : AwaitWork(command);
  if (error != CUDA_SUCCESS) return error;
  const std::shared_lock lock(copying_);
  const auto range = FindInHeap(address, size);  // It may have left meanwhile.
  if (!range) return std::nullopt;
  if (head != nullptr) {
    if (const CUresult failed = head->give_rest(); failed != CUDA_SUCCESS) return failed;
  }
  copy(command.session()->heap_base() + range->heap_pages + (address - range->begin),
       head != nullptr ? head->size : size);
  return CUDA_SUCCESS;
}

std::optional<CUresult> HeapMemory::Write(StreamCommand& command, CUdeviceptr to, const std::byte* from, uint64_t size,
                                          Wait wait, const Head* head) {
  return Copy(command, to, size, wait, head, [&](std::byte* heap, uint64_t part) { std::memcpy(heap, from, part); });
}

std::optional<CUresult> HeapMemory::Read(StreamCommand& command, std::byte* to, CUdeviceptr from, uint64_t size,
                                         Wait wait, const Head* head) {
  return Copy(command, from, size, wait, head,
              [&](const std::byte* heap, uint64_t part) { std::memcpy(to, heap, part); });
}

void HeapMemory::Leave(CUdeviceptr begin) {
  Client::Get().pointers().LeaveHeap(begin);
  const std::unique_lock lock(copying_);  // The last copy that has found it there is over.
}

}  // namespace hawser::cu
