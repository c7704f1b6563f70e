// SPDX-License-Identifier: Apache-2.0
#include "softcuda/driver/shared_event.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <atomic>
#include <chrono>

#include "wire/futex.h"

namespace hawser::soft {
namespace {

constexpr uint32_t kMagic = 0x54564557;  // "WEVT"
constexpr uint64_t kBytes = 4096;
/// Records that are told apart while none of them is over. A record shares its place with the one so many before it.
constexpr uint64_t kPlaces = 64;
/// How often a waiter looks for the life of whom it waits for.
constexpr std::chrono::milliseconds kLook{5};

struct flock LockOf(uint32_t number) {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = number;
  lock.l_len = 1;
  return lock;
}

void Raise(std::atomic<uint64_t>& value, uint64_t to) {
  uint64_t known = value.load(std::memory_order_relaxed);
  while (known < to && !value.compare_exchange_weak(known, to, std::memory_order_acq_rel)) {
  }
}

}  // namespace

struct SharedEvent::Page {
  struct Place {
    std::atomic<uint64_t> done;   ///< Highest record of this place that is over.
    std::atomic<uint32_t> maker;  ///< Process of the latest record of this place.
  };

  std::atomic<uint32_t> magic;
  std::atomic<uint32_t> processes;  ///< Numbers that were given out.
  std::atomic<uint64_t> begun;      ///< Records that were begun.
  std::atomic<uint64_t> last;       ///< The last whose place says who makes it.
  std::atomic<uint32_t> bell;       ///< Changes whenever a record is over.
  Place places[kPlaces];
};

std::shared_ptr<SharedEvent> SharedEvent::Create() {
  static_assert(sizeof(Page) <= kBytes && std::atomic<uint64_t>::is_always_lock_free);
  SharedFile file;
  if (!file.Create("hawser-soft-event", kBytes)) return nullptr;
  std::shared_ptr<SharedEvent> event(new SharedEvent(std::move(file), true));
  if (!event->Map()) return nullptr;
  event->page_->magic.store(kMagic);
  return event->Join() ? event : nullptr;
}

CUresult SharedEvent::Open(const SharedHandle& handle, std::shared_ptr<SharedEvent>* event) {
  SharedFile file;
  if (handle.size != kBytes) return CUDA_ERROR_INVALID_HANDLE;
  if (const CUresult result = file.Open(handle, SharedHandle::Kind::kEvent); result != CUDA_SUCCESS) return result;
  std::shared_ptr<SharedEvent> opened(new SharedEvent(std::move(file), false));
  if (!opened->Map()) return CUDA_ERROR_MAP_FAILED;
  if (opened->page_->magic.load() != kMagic) return CUDA_ERROR_INVALID_HANDLE;
  if (!opened->Join()) return CUDA_ERROR_MAP_FAILED;
  *event = std::move(opened);
  return CUDA_SUCCESS;
}

SharedEvent::~SharedEvent() {
  if (page_ != nullptr) ::munmap(page_, kBytes);
}

bool SharedEvent::Map() {
  void* const got = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file_.fd(), 0);
  if (got == MAP_FAILED) return false;
  page_ = static_cast<Page*>(got);
  return true;
}

bool SharedEvent::Join() {
  number_ = page_->processes.fetch_add(1);
  struct flock lock = LockOf(number_);
  // Of the open file, not of the process: it goes when the process dies, and not when another descriptor is closed.
  return ::fcntl(file_.fd(), F_OFD_SETLK, &lock) == 0;
}

CUresult SharedEvent::Describe(int device, SharedHandle* handle) const {
  if (!own_) return CUDA_ERROR_INVALID_HANDLE;
  return file_.Describe(SharedHandle::Kind::kEvent, kBytes, device, handle);
}

uint64_t SharedEvent::Begin() {
  const uint64_t record = page_->begun.fetch_add(1) + 1;
  page_->places[record % kPlaces].maker.store(number_);
  Raise(page_->last, record);
  return record;
}

void SharedEvent::End(uint64_t record) {
  Raise(page_->places[record % kPlaces].done, record);
  page_->bell.fetch_add(1);
  wire::FutexWake(page_->bell);
}

uint64_t SharedEvent::last() const { return page_->last.load(std::memory_order_acquire); }

bool SharedEvent::Done(uint64_t record) const {
  return page_->places[record % kPlaces].done.load(std::memory_order_acquire) >= record;
}

bool SharedEvent::MakerIsAlive(uint64_t record) const {
  const uint32_t maker = page_->places[record % kPlaces].maker.load();
  if (maker == number_) return true;
  struct flock lock = LockOf(maker);
  return ::fcntl(file_.fd(), F_OFD_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
}

bool SharedEvent::Over(uint64_t record) const { return Done(record) || !MakerIsAlive(record); }

void SharedEvent::Await(uint64_t record, const std::function<bool()>& give_up) const {
  for (;;) {
    const uint32_t bell = page_->bell.load();
    if (Done(record)) return;
    wire::FutexWait(page_->bell, bell, kLook);
    if (Done(record) || give_up() || !MakerIsAlive(record)) return;
  }
}

}  // namespace hawser::soft
