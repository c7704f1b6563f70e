// SPDX-License-Identifier: Apache-2.0
#include "server/session_stats.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "server/worker_settings.h"

namespace hawser::server {
namespace {

using wire::Code;
using wire::Fd;
using wire::Result;
using wire::Status;

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

// hawserd and its workers are built together; these say that both compilers agree, and guard against accidents.
static_assert(std::is_standard_layout_v<SessionStatsPage>);
static_assert(sizeof(StatsCounter) == 8);
static_assert(offsetof(SessionStatsPage, trace) == 64);
static_assert(offsetof(SessionStatsPage, commands) == 320);
static_assert(offsetof(SessionStatsPage, reply_bytes) == 384);
static_assert(offsetof(SessionStatsPage, bulk_up_bytes) == 448);
static_assert(offsetof(SessionStatsPage, bulk_down_bytes) == 512);
static_assert(offsetof(SessionStatsPage, device_memory) == 576);
static_assert(offsetof(SessionStatsPage, device_count) == 640);
static_assert(sizeof(SessionStatsPage::Device) == 128);
static_assert(offsetof(SessionStatsPage, findings) == 1728);
static_assert(offsetof(SessionStatsPage, ring) % 64 == 0);

}  // namespace

void SessionStatsPage::AddDevice(std::string_view name, uint64_t memory) {
  const uint32_t at = device_count.load(std::memory_order_relaxed);
  if (at >= kMaxDevices) return;
  Device& device = devices[at];
  std::memset(device.name, 0, sizeof(device.name));
  std::memcpy(device.name, name.data(), std::min(name.size(), sizeof(device.name) - 1));
  device.memory = memory;
  device_count.store(at + 1, std::memory_order_release);
}

std::vector<SessionStatsPage::DeviceInfo> SessionStatsPage::Devices() const {
  std::vector<DeviceInfo> all;
  const size_t count = std::min<size_t>(device_count.load(std::memory_order_acquire), kMaxDevices);
  for (size_t i = 0; i < count; ++i) {
    char name[kDeviceName];
    std::memcpy(name, devices[i].name, sizeof(name));
    all.push_back({OneLine({name, ::strnlen(name, sizeof(name))}), devices[i].memory});
  }
  return all;
}

Result<SessionStats> SessionStats::Create() {
  SessionStats stats;
  stats.fd_ = Fd(::memfd_create("hawser-stats", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!stats.fd_.valid() || ::ftruncate(stats.fd_.get(), sizeof(SessionStatsPage)) != 0 ||
      ::fcntl(stats.fd_.get(), F_ADD_SEALS, kSeals) != 0) {
    return Status::FromErrno("cannot create memory for a session's statistics");
  }
  void* base = ::mmap(nullptr, sizeof(SessionStatsPage), PROT_READ | PROT_WRITE, MAP_SHARED, stats.fd_.get(), 0);
  if (base == MAP_FAILED) return Status::FromErrno("cannot map a session's statistics");
  // Fresh memory is zero, and all zero is what every part begins with.
  stats.page_ = static_cast<SessionStatsPage*>(base);
  stats.page_->magic = SessionStatsPage::kMagic;
  stats.page_->version = SessionStatsPage::kVersion;
  stats.page_->size = sizeof(SessionStatsPage);
  return stats;
}

Result<SessionStats> SessionStats::Attach(int fd) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) return Status::FromErrno("there is no page for the session's statistics");
  if (info.st_size != static_cast<off_t>(sizeof(SessionStatsPage))) {
    return Status(Code::kInvalid, "the page for the session's statistics has " + std::to_string(info.st_size) +
                                      " bytes and not " + std::to_string(sizeof(SessionStatsPage)) +
                                      "; hawserd and hawser-worker must be of one build");
  }
  void* base = ::mmap(nullptr, sizeof(SessionStatsPage), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (base == MAP_FAILED) return Status::FromErrno("cannot map the session's statistics");
  SessionStats stats;
  stats.page_ = static_cast<SessionStatsPage*>(base);
  const SessionStatsPage& page = *stats.page_;
  if (page.magic != SessionStatsPage::kMagic || page.version != SessionStatsPage::kVersion ||
      page.size != sizeof(SessionStatsPage)) {
    return Status(Code::kInvalid, "the page for the session's statistics is of another version");
  }
  return stats;
}

SessionStats& SessionStats::operator=(SessionStats&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(page_, other.page_);
  return *this;
}

SessionStats::~SessionStats() {
  if (page_ != nullptr) ::munmap(page_, sizeof(SessionStatsPage));
}

SessionStatsPage* UncountedSession() {
  static SessionStatsPage page{};
  return &page;
}

}  // namespace hawser::server
