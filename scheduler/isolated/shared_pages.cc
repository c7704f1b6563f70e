// SPDX-License-Identifier: Apache-2.0
#include "scheduler/isolated/shared_pages.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <type_traits>

using hawser::wire::Fd;
using hawser::wire::Result;
using hawser::wire::Status;

#ifndef F_SEAL_FUTURE_WRITE  // C libraries older than the kernel's interface.
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

namespace hawser::scheduler {
namespace {

// Nothing is constructed in the memory: it comes zeroed, which is what the pages begin with.
static_assert(std::is_trivially_copyable_v<Request> && std::is_trivially_copyable_v<Reply> &&
              std::is_trivially_copyable_v<SharedTenant> && std::atomic<uint32_t>::is_always_lock_free);

/// A memfd of this size, mapped, and then sealed.
Status Make(const char* name, size_t size, int seals, Fd* fd, void** memory) {
  *fd = Fd(::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd->valid()) return Status::FromErrno("cannot create memory to share with a policy's process");
  if (::ftruncate(fd->get(), static_cast<off_t>(size)) != 0) {
    return Status::FromErrno("cannot size the memory to share with a policy's process");
  }
  *memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd->get(), 0);
  if (*memory == MAP_FAILED) {
    *memory = nullptr;
    return Status::FromErrno("cannot map the memory to share with a policy's process");
  }
  if (::fcntl(fd->get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | seals | F_SEAL_SEAL) != 0) {
    return Status::FromErrno("cannot seal the memory to share with a policy's process (Linux 5.1 or newer is needed)");
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<SharedPages>> SharedPages::Create() {
  std::unique_ptr<SharedPages> pages(new SharedPages);
  void* memory = nullptr;
  Status made = Make("hawser-policy-request", sizeof(RequestPage), F_SEAL_FUTURE_WRITE, &pages->request_fd_, &memory);
  pages->request_ = static_cast<RequestPage*>(memory);
  if (!made.ok()) return made;
  made = Make("hawser-policy-reply", sizeof(ReplyPage), 0, &pages->reply_fd_, &memory);
  pages->reply_ = static_cast<ReplyPage*>(memory);
  if (!made.ok()) return made;
  pages->request_->version = kPageVersion;
  return pages;
}

SharedPages::~SharedPages() {
  if (request_ != nullptr) ::munmap(request_, sizeof(RequestPage));
  if (reply_ != nullptr) ::munmap(reply_, sizeof(ReplyPage));
}

}  // namespace hawser::scheduler
