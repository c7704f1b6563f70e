// SPDX-License-Identifier: Apache-2.0
#include "softcuda/driver/sharing.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "softcuda/driver/driver.h"
#include "softcuda/driver/standstill.h"

namespace hawser::soft {
namespace {

/// Bytes that are moved at once: both copies exist that long.
constexpr uint64_t kPiece = uint64_t{2} << 20;

bool AllZero(const uint8_t* data, uint64_t size) {
  return size == 0 || (data[0] == 0 && std::memcmp(data, data + 1, size - 1) == 0);
}

bool WriteAll(int file, const uint8_t* data, uint64_t size, uint64_t offset) {
  while (size != 0) {
    const ssize_t written = ::pwrite(file, data, size, static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    data += written;
    size -= static_cast<uint64_t>(written);
    offset += static_cast<uint64_t>(written);
  }
  return true;
}

}  // namespace

CUresult Sharing::MoveIntoFile(const AllocationPtr& allocation) {
  const uint64_t size = AddressRange::RoundToPage(allocation->size);
  SharedFile file;
  if (!file.Create("hawser-soft-memory", size)) return CUDA_ERROR_OUT_OF_MEMORY;
  const Standstill standstill;
  // Freed meanwhile by another thread.
  if (GetDriver()->memory.Find(allocation->begin) != allocation) return CUDA_ERROR_INVALID_VALUE;
  for (uint64_t offset = 0; offset < size; offset += kPiece) {
    const uint64_t piece = std::min(kPiece, size - offset);
    const auto* const data = reinterpret_cast<const uint8_t*>(allocation->begin + offset);
    // Pages that were never written have no memory behind them, here and there.
    const bool moved =
        (AllZero(data, piece) || WriteAll(file.fd(), data, piece, offset)) &&
        AddressRange::CommitFile(allocation->begin + offset, piece, file.fd(), offset, PROT_READ | PROT_WRITE);
    // What has moved so far stays usable.
    if (!moved) return CUDA_ERROR_OUT_OF_MEMORY;
  }
  allocation->file = std::move(file);
  return CUDA_SUCCESS;
}

CUresult Sharing::Export(const AllocationPtr& allocation, SharedHandle* handle) {
  if (!SharedFile::Possible()) return CUDA_ERROR_NOT_SUPPORTED;
  const std::lock_guard lock(mutex_);
  if (!allocation->file.valid()) {
    if (const CUresult result = MoveIntoFile(allocation); result != CUDA_SUCCESS) return result;
  }
  return allocation->file.Describe(SharedHandle::Kind::kMemory, allocation->size, allocation->device, handle);
}

CUresult Sharing::Import(const SharedHandle& handle, Context* context, uint64_t* address) {
  Driver* const driver = GetDriver();
  SharedFile file;
  const std::lock_guard lock(mutex_);
  if (const CUresult result = file.Open(handle, SharedHandle::Kind::kMemory); result != CUDA_SUCCESS) return result;
  std::erase_if(imported_, [](const auto& entry) { return entry.second.allocation.expired(); });
  for (auto& [begin, known] : imported_) {
    const AllocationPtr allocation = known.allocation.lock();
    if (known.file_system != handle.file_system || known.file != handle.file || allocation == nullptr ||
        allocation->context != context->handle || driver->memory.Find(begin) != allocation) {
      continue;
    }
    ++known.count;
    *address = begin;
    return CUDA_SUCCESS;
  }
  const uint64_t size = AddressRange::RoundToPage(handle.size);
  const uint64_t begin = driver->addresses.Take(size, 0);
  if (begin == 0) return CUDA_ERROR_MAP_FAILED;
  if (!AddressRange::CommitFile(begin, size, file.fd(), 0, PROT_READ | PROT_WRITE)) {
    driver->addresses.Give(begin, size);
    return CUDA_ERROR_MAP_FAILED;
  }
  auto allocation = std::make_shared<Allocation>();
  allocation->begin = begin;
  allocation->size = handle.size;
  allocation->kind = MemoryKind::kImported;
  allocation->device = driver->FindDevice(static_cast<CUdevice>(handle.device)) != nullptr
                           ? static_cast<int>(handle.device)
                           : context->device()->ordinal();
  allocation->context = context->handle;
  driver->memory.Add(allocation);
  imported_[begin] = {allocation, handle.file_system, handle.file, 1};
  *address = begin;
  return CUDA_SUCCESS;
}

CUresult Sharing::Close(uint64_t address, AllocationPtr* last) {
  const std::lock_guard lock(mutex_);
  const auto found = imported_.find(address);
  if (found == imported_.end()) return CUDA_ERROR_INVALID_VALUE;
  const AllocationPtr allocation = found->second.allocation.lock();
  if (allocation == nullptr || GetDriver()->memory.Find(address) != allocation) {
    imported_.erase(found);
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (--found->second.count != 0) return CUDA_SUCCESS;
  imported_.erase(found);
  *last = allocation;
  return CUDA_SUCCESS;
}

}  // namespace hawser::soft
