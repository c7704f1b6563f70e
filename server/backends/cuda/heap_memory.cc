// SPDX-License-Identifier: Apache-2.0
#include "server/backends/cuda/heap_memory.h"

#include <fcntl.h>
#include <unistd.h>

namespace hawser::server::cuda_backend {

bool HeapMemory::Usable(CUcontext current, std::string* why) {
  if (heap_.file < 0) return false;
  const auto [entry, added] = imported_.try_emplace(current, nullptr);
  if (!added) return entry->second != nullptr;
  if (driver_->cuImportExternalMemory == nullptr || driver_->cuExternalMemoryGetMappedBuffer == nullptr ||
      driver_->cuDestroyExternalMemory == nullptr) {
    *why = "the driver has no external memory";
    return false;
  }
  CUDA_EXTERNAL_MEMORY_HANDLE_DESC description{};
  description.type = CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD;
  description.handle.fd = ::fcntl(heap_.file, F_DUPFD_CLOEXEC, 0);  // The driver's, when it takes it.
  description.size = heap_.size;
  if (description.handle.fd < 0) {
    *why = "no descriptor is left";
    return false;
  }
  CUexternalMemory memory = nullptr;
  if (const CUresult result = driver_->cuImportExternalMemory(&memory, &description); result != CUDA_SUCCESS) {
    ::close(description.handle.fd);
    *why = ErrorText(*driver_, result);
    return false;
  }
  entry->second = memory;
  return true;
}

bool HeapMemory::Fits(const HeapPages& pages, uint64_t size) const {
  return size != 0 && size <= pages.size && pages.size - size < kPage && pages.offset % kPage == 0 &&
         pages.size % kPage == 0 && pages.offset <= heap_.size && pages.size <= heap_.size - pages.offset;
}

CUresult HeapMemory::Allocate(CUcontext current, const HeapPages& pages, uint64_t size, CUdeviceptr* address) {
  const auto entry = imported_.find(current);
  if (entry == imported_.end() || entry->second == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  CUDA_EXTERNAL_MEMORY_BUFFER_DESC description{};
  description.offset = pages.offset;
  description.size = size;
  return driver_->cuExternalMemoryGetMappedBuffer(address, entry->second, &description);
}

void HeapMemory::EndContext(CUcontext context) {
  const auto entry = imported_.find(context);
  if (entry == imported_.end()) return;
  if (entry->second != nullptr) (void)driver_->cuDestroyExternalMemory(entry->second);
  imported_.erase(entry);
}

}  // namespace hawser::server::cuda_backend
