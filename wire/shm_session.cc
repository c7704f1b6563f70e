// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <new>
#include <string>
#include <utility>

#include "wire/shm.h"
#include "wire/shm_channel.h"
#include "wire/shm_layout.h"

namespace hawser::wire {
namespace {

constexpr unsigned kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

/// A memfd whose size can never change again.
Result<Fd> CreateSealed(size_t size, const char* name) {
  Fd fd(::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd.valid()) return Status::FromErrno(std::string("cannot create shared memory '") + name + "'");
  if (::ftruncate(fd.get(), static_cast<off_t>(size)) != 0) {
    return Status::FromErrno(std::string("cannot size shared memory '") + name + "' to " + std::to_string(size) +
                             " bytes");
  }
  if (::fcntl(fd.get(), F_ADD_SEALS, kSeals) != 0) {
    return Status::FromErrno(std::string("cannot seal shared memory '") + name + "'");
  }
  return fd;
}

class MappedSession final : public ShmSession {
 public:
  explicit MappedSession(std::shared_ptr<ShmMapping> mapping) : mapping_(std::move(mapping)) {}

  int memfd() const override { return mapping_->memfd(); }

  std::unique_ptr<Channel> CommandChannel(Side side, int liveness) override {
    const ShmLayout& layout = mapping_->layout();
    return MakeChannel(side, liveness, &mapping_->header()->command, mapping_->data(), layout.command_up,
                       layout.command_down);
  }
  std::unique_ptr<Channel> BulkChannel(Side side, int liveness) override {
    const ShmLayout& layout = mapping_->layout();
    return MakeChannel(side, liveness, &mapping_->header()->bulk,
                       mapping_->data() + layout.command_up + layout.command_down, layout.bulk_up, layout.bulk_down);
  }

 private:
  std::unique_ptr<Channel> MakeChannel(Side side, int liveness, ChannelControl* control, std::byte* data, uint32_t up,
                                       uint32_t down) {
    ShmChannel::RingPlace in{&control->up, data, up};
    ShmChannel::RingPlace out{&control->down, data + up, down};
    if (side == Side::kGuest) std::swap(in, out);
    return std::make_unique<ShmChannel>(mapping_, control, in, out, liveness);
  }

  const std::shared_ptr<ShmMapping> mapping_;
};

}  // namespace

Status CheckLayout(const ShmLayout& layout) {
  for (const uint32_t size : {layout.command_up, layout.command_down, layout.bulk_up, layout.bulk_down}) {
    if (size < kMinRing || size > kMaxRing || (size & (size - 1)) != 0) {
      return Status(Code::kInvalid, "a ring of " + std::to_string(size) +
                                        " bytes cannot be; sizes are powers of two from 4 KiB to 1 GiB");
    }
  }
  return {};
}

ShmMapping::ShmMapping(Fd memfd, const ShmLayout& layout, std::byte* base)
    : memfd_(std::move(memfd)), layout_(layout), base_(base) {}

Result<std::shared_ptr<ShmMapping>> ShmMapping::Map(Fd memfd, const ShmLayout& layout, Fork fork) {
  const size_t size = ShmSize(layout);
  void* base = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, memfd.get(), 0);
  if (base == MAP_FAILED) return Status::FromErrno("cannot map " + std::to_string(size) + " bytes of shared memory");
  std::shared_ptr<ShmMapping> mapping(new ShmMapping(std::move(memfd), layout, static_cast<std::byte*>(base)));
  if (fork == Fork::kDoNotInherit) {
    if (::madvise(base, size, MADV_DONTFORK) != 0) {
      return Status::FromErrno("cannot keep shared memory out of children of fork()");
    }
    mapping->owner_ = ::getpid();
  }
  return mapping;
}

ShmMapping::~ShmMapping() {
  // In a child that did not inherit the mapping its addresses may already belong to something else.
  if (MappedHere()) ::munmap(base_, ShmSize(layout_));
}

bool ShmMapping::MappedHere() const { return owner_ == 0 || owner_ == ::getpid(); }

Result<std::unique_ptr<ShmSession>> ShmSession::Create(const ShmLayout& layout) {
  if (Status status = CheckLayout(layout); !status.ok()) return status;
  Result<Fd> memfd = CreateSealed(ShmSize(layout), "hawser-rings");
  if (!memfd.ok()) return memfd.status();
  auto mapping = ShmMapping::Map(std::move(*memfd), layout, ShmMapping::Fork::kInherit);
  if (!mapping.ok()) return mapping.status();
  ShmHeader* header = new ((*mapping)->header()) ShmHeader();
  header->layout = layout;
  header->magic = kShmMagic;
  return std::unique_ptr<ShmSession>(std::make_unique<MappedSession>(std::move(*mapping)));
}

Result<std::unique_ptr<ShmSession>> ShmSession::Open(Fd memfd) {
  struct stat info {};
  if (::fstat(memfd.get(), &info) != 0) return Status::FromErrno("cannot inspect the server's shared memory");
  const int seals = ::fcntl(memfd.get(), F_GET_SEALS);
  if (seals < 0 || (static_cast<unsigned>(seals) & F_SEAL_SHRINK) == 0) {
    return Status(Code::kProtocol, "the server's shared memory is not sealed against shrinking");
  }
  // The fields before the rings' control words; the atomics are not touched here.
  struct {
    uint64_t magic;
    ShmLayout layout;
  } head{};
  static_assert(offsetof(ShmHeader, layout) == sizeof(uint64_t) && sizeof(head) == 24);
  if (::pread(memfd.get(), &head, sizeof(head), 0) != static_cast<ssize_t>(sizeof(head)) || head.magic != kShmMagic) {
    return Status(Code::kProtocol, "the server's shared memory has an unknown layout");
  }
  if (Status status = CheckLayout(head.layout); !status.ok()) return Status(Code::kProtocol, status.text());
  if (info.st_size < 0 || static_cast<size_t>(info.st_size) != ShmSize(head.layout)) {
    return Status(Code::kProtocol, "the server's shared memory has " + std::to_string(info.st_size) +
                                       " bytes where its layout needs " + std::to_string(ShmSize(head.layout)));
  }
  auto mapping = ShmMapping::Map(std::move(memfd), head.layout, ShmMapping::Fork::kDoNotInherit);
  if (!mapping.ok()) return mapping.status();
  return std::unique_ptr<ShmSession>(std::make_unique<MappedSession>(std::move(*mapping)));
}

Result<Fd> CreateHeap(size_t size, const char* name) {
  const size_t page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  if (size == 0 || size % page != 0) {
    return Status(Code::kInvalid, "a heap of " + std::to_string(size) + " bytes is not whole pages");
  }
  return CreateSealed(size, name);
}

}  // namespace hawser::wire
