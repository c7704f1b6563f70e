// SPDX-License-Identifier: Apache-2.0
#include "softcuda/driver/driver.h"

#include <pthread.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <mutex>

#include "softcuda/driver/pool.h"

namespace hawser::soft {
namespace {

constexpr uint64_t kAlignment = 512;  ///< Of cuMemAlloc; every allocation begins a page of its own anyway.

std::atomic<Driver*> the_driver{nullptr};
std::atomic<bool> forked{false};

}  // namespace

Driver::Driver(const Settings& from)
    : settings(from),
      addresses(from.base, from.range),
      queue([this] { settings.processors.Join(); }),
      engine(from.threads - 1, [this] { settings.processors.Join(); }) {
  for (int i = 0; i < settings.devices; ++i) {
    auto device = std::make_unique<Device>(i, settings);
    device->default_pool = std::make_shared<Pool>();
    device->default_pool->device = device.get();
    device->default_pool->is_default = true;
    pools.Add(device->default_pool);
    device->current_pool = device->default_pool;
    devices.push_back(std::move(device));
  }
}

Device* Driver::FindDevice(CUdevice device) {
  return device < 0 || static_cast<size_t>(device) >= devices.size() ? nullptr
                                                                     : devices[static_cast<size_t>(device)].get();
}

CUresult Driver::Allocate(Device* device, uint64_t size, uint64_t alignment, MemoryKind kind, uint64_t context,
                          AllocationPtr* allocation, FileWindow window) {
  if (size == 0 || size > addresses.end() - addresses.begin()) {
    return size == 0 ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_OUT_OF_MEMORY;
  }
  const uint64_t charged = AddressRange::RoundToPage(size);
  if (!device->Charge(charged)) return CUDA_ERROR_OUT_OF_MEMORY;
  const uint64_t address = addresses.Take(size, std::max(alignment, kAlignment));
  const auto commit = [&] {
    return window.file < 0
               ? AddressRange::Commit(address, size)
               : AddressRange::CommitFile(address, charged, window.file, window.offset, PROT_READ | PROT_WRITE);
  };
  if (address == 0 || !commit()) {
    if (address != 0) addresses.Give(address, size);
    device->Discharge(charged);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  auto made = std::make_shared<Allocation>();
  made->begin = address;
  made->size = size;
  made->kind = kind;
  made->device = device->ordinal();
  made->context = context;
  made->charged = charged;
  memory.Add(made);
  *allocation = std::move(made);
  return CUDA_SUCCESS;
}

bool Driver::Forget(const AllocationPtr& allocation) {
  if (memory.Remove(allocation->begin) == nullptr) return false;
  if (!allocation->on_host()) devices[static_cast<size_t>(allocation->device)]->Discharge(allocation->charged);
  if (allocation->kind == MemoryKind::kPool) {
    if (const PoolPtr pool = pools.Find(allocation->owner)) pool->used -= allocation->size;
  }
  return true;
}

void Driver::Release(const AllocationPtr& allocation) {
  if (!Forget(allocation)) return;
  if (allocation->kind == MemoryKind::kRegistered) return;  // The program's own.
  if (allocation->kind == MemoryKind::kHost) {
    FreeHost(allocation);
  } else {
    addresses.Give(allocation->begin, allocation->size);
  }
}

void Driver::ReleaseLater(const AllocationPtr& allocation, Context* context) {
  if (!Forget(allocation)) return;
  const std::lock_guard lock(context->mutex);
  queue.Submit([this, allocation] { addresses.Give(allocation->begin, allocation->size); }, context->AllTails());
}

Driver* GetDriver() {
  return forked.load(std::memory_order_relaxed) ? nullptr : the_driver.load(std::memory_order_acquire);
}

CUresult StartDriver() {
  static std::mutex mutex;
  if (forked.load()) return CUDA_ERROR_NOT_INITIALIZED;
  const std::lock_guard lock(mutex);
  if (the_driver.load() == nullptr) {
    if (GetSettings().devices == 0) return CUDA_ERROR_NO_DEVICE;
    the_driver.store(new Driver(GetSettings()), std::memory_order_release);
    ::pthread_atfork(nullptr, nullptr, [] { forked.store(true); });
  }
  return CUDA_SUCCESS;
}

}  // namespace hawser::soft
