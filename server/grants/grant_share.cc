// SPDX-License-Identifier: Apache-2.0
#include "server/grants/grant_share.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <string>
#include <utility>

namespace hawser::server {

using wire::Code;
using wire::Fd;
using wire::Result;
using wire::Status;

namespace {

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

static_assert(std::is_standard_layout_v<GrantSharePage>);
static_assert(std::atomic<uint32_t>::is_always_lock_free);
static_assert(sizeof(std::atomic<uint32_t>) == sizeof(uint32_t));

long Futex(std::atomic<uint32_t>& word, int operation, uint32_t value, const timespec* timeout) {
  return ::syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), operation, value, timeout, nullptr, 0);
}

}  // namespace

void FutexBell::Ring() {
  // Either this sees the waiter, or the waiter sees the new count.
  words_.rings.fetch_add(1, std::memory_order_seq_cst);
  if (words_.waiters.load(std::memory_order_seq_cst) != 0) Futex(words_.rings, FUTEX_WAKE, INT_MAX, nullptr);
}

void FutexBell::Wait(uint64_t ticket, std::chrono::nanoseconds at_most) {
  if (at_most <= std::chrono::nanoseconds(0)) return;
  // A system call with more than a year in it may be refused.
  const auto bounded = std::min<std::chrono::nanoseconds>(at_most, std::chrono::hours(24));
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(bounded);
  const timespec timeout{seconds.count(), (bounded - seconds).count()};
  words_.waiters.fetch_add(1, std::memory_order_seq_cst);
  Futex(words_.rings, FUTEX_WAIT, static_cast<uint32_t>(ticket), &timeout);
  words_.waiters.fetch_sub(1, std::memory_order_seq_cst);
}

void EventBell::Ring() {
  const uint64_t one = 1;
  // Full: then it has been rung often enough.
  (void)!::write(fd_.get(), &one, sizeof(one));
}

Result<GrantShare> GrantShare::Create() {
  GrantShare share;
  share.fd_ = Fd(::memfd_create("hawser-grants", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!share.fd_.valid() || ::ftruncate(share.fd_.get(), sizeof(GrantSharePage)) != 0 ||
      ::fcntl(share.fd_.get(), F_ADD_SEALS, kSeals) != 0) {
    return Status::FromErrno("cannot create memory for a worker's grants");
  }
  void* base = ::mmap(nullptr, sizeof(GrantSharePage), PROT_READ | PROT_WRITE, MAP_SHARED, share.fd_.get(), 0);
  if (base == MAP_FAILED) return Status::FromErrno("cannot map a worker's grants");
  // Fresh memory is zero, and all zero is what every part begins with.
  share.page_ = static_cast<GrantSharePage*>(base);
  share.page_->magic = GrantSharePage::kMagic;
  share.page_->version = GrantSharePage::kVersion;
  share.page_->size = sizeof(GrantSharePage);
  for (GrantSlot& slot : share.page_->slots) slot.tenants.store(1, std::memory_order_relaxed);
  return share;
}

Result<GrantShare> GrantShare::Attach(int fd) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) return Status::FromErrno("there is no page for the worker's grants");
  if (info.st_size != static_cast<off_t>(sizeof(GrantSharePage))) {
    return Status(Code::kInvalid, "the page for the worker's grants has " + std::to_string(info.st_size) +
                                      " bytes and not " + std::to_string(sizeof(GrantSharePage)) +
                                      "; hawserd and hawser-worker must be of one build");
  }
  void* base = ::mmap(nullptr, sizeof(GrantSharePage), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (base == MAP_FAILED) return Status::FromErrno("cannot map the worker's grants");
  GrantShare share;
  share.page_ = static_cast<GrantSharePage*>(base);
  const GrantSharePage& page = *share.page_;
  if (page.magic != GrantSharePage::kMagic || page.version != GrantSharePage::kVersion ||
      page.size != sizeof(GrantSharePage)) {
    return Status(Code::kInvalid, "the page for the worker's grants is of another version");
  }
  return share;
}

GrantShare& GrantShare::operator=(GrantShare&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(page_, other.page_);
  return *this;
}

GrantShare::~GrantShare() {
  if (page_ != nullptr) ::munmap(page_, sizeof(GrantSharePage));
}

}  // namespace hawser::server
