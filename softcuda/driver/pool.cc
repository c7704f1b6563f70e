// SPDX-License-Identifier: Apache-2.0
#include "softcuda/driver/pool.h"

#include <sys/mman.h>

#include "softcuda/driver/driver.h"

namespace hawser::soft {

CUresult AllocateHost(uint64_t size, unsigned flags, uint64_t context, AllocationPtr* allocation) {
  if (size == 0) return CUDA_ERROR_INVALID_VALUE;
  void* const data =
      ::mmap(nullptr, AddressRange::RoundToPage(size), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
  auto made = std::make_shared<Allocation>();
  made->begin = reinterpret_cast<uint64_t>(data);
  made->size = size;
  made->kind = MemoryKind::kHost;
  made->context = context;
  made->flags = flags;
  GetDriver()->memory.Add(made);
  *allocation = std::move(made);
  return CUDA_SUCCESS;
}

void FreeHost(const AllocationPtr& allocation) {
  ::munmap(reinterpret_cast<void*>(allocation->begin), AddressRange::RoundToPage(allocation->size));
}

}  // namespace hawser::soft
