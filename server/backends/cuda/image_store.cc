// SPDX-License-Identifier: Apache-2.0
#include "server/backends/cuda/image_store.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "server/worker_settings.h"
#include "wire/socket.h"

namespace hawser::server::cuda_backend {
namespace {

using wire::Bytes;
using wire::Code;
using wire::Fd;
using wire::Sha256Digest;
using wire::Status;

/// Files that a worker was writing when it died are removed after this long, in seconds.
constexpr time_t kAbandoned = 3600;
constexpr std::string_view kUnfinished = ".tmp-";

bool WriteAll(int fd, Bytes bytes) {
  while (!bytes.empty()) {
    const ssize_t wrote = ::write(fd, bytes.data(), bytes.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return false;
    bytes = bytes.subspan(static_cast<size_t>(wrote));
  }
  return true;
}

bool ReadAll(int fd, std::vector<std::byte>* bytes) {
  size_t at = 0;
  while (at < bytes->size()) {
    const ssize_t got = ::read(fd, bytes->data() + at, bytes->size() - at);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    at += static_cast<size_t>(got);
  }
  return true;
}

/// A file of the folder, for making room.
struct File {
  std::string path;
  uint64_t size = 0;
  timespec used{};
  bool unfinished = false;
};

std::vector<File> List(const std::string& folder) {
  std::vector<File> files;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    struct stat info {};
    if (::lstat(entry.path().c_str(), &info) != 0 || !S_ISREG(info.st_mode)) continue;
    files.push_back({entry.path().string(), static_cast<uint64_t>(info.st_size), info.st_mtim,
                     entry.path().filename().string().starts_with(kUnfinished)});
  }
  return files;
}

}  // namespace

ImageStore::ImageStore(Options options, const std::function<void(const std::string&)>& log)
    : options_(std::move(options)) {
  if (options_.directory.empty()) return;
  std::string folder = options_.directory + "/" + TenantFolderName(options_.tenant);
  std::error_code error;
  std::filesystem::create_directories(options_.directory, error);
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
    log("modules are not kept on disk: " + Status::FromErrno("cannot create '" + folder + "'").text());
    return;
  }
  struct stat info {};
  if (::lstat(folder.c_str(), &info) != 0 || !S_ISDIR(info.st_mode) || info.st_uid != ::geteuid() ||
      (info.st_mode & 077) != 0) {
    log("modules are not kept on disk: '" + folder + "' is not a folder that only this worker's user can use");
    return;
  }
  folder_ = std::move(folder);
}

std::string ImageStore::PathOf(const Sha256Digest& hash) const { return folder_ + "/" + wire::HexOf(hash); }

bool ImageStore::Has(const Sha256Digest& hash) const {
  if (memory_.count(hash) != 0) return true;
  if (folder_.empty()) return false;
  struct stat info {};
  return ::lstat(PathOf(hash).c_str(), &info) == 0 && S_ISREG(info.st_mode);
}

Image ImageStore::Get(const Sha256Digest& hash) {
  if (const auto at = memory_.find(hash); at != memory_.end()) {
    uses_.splice(uses_.begin(), uses_, at->second.use);
    return at->second.image;
  }
  Image image = Read(hash);
  if (image != nullptr) Keep(hash, image);
  return image;
}

Image ImageStore::Read(const Sha256Digest& hash) {
  if (folder_.empty()) return nullptr;
  const std::string path = PathOf(hash);
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!fd.valid()) return nullptr;
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode)) return nullptr;
  auto bytes = std::make_shared<std::vector<std::byte>>();
  bool good = info.st_size >= 0 && static_cast<uint64_t>(info.st_size) <= options_.largest;
  if (good) {
    bytes->resize(static_cast<size_t>(info.st_size));
    good = ReadAll(fd.get(), bytes.get()) && wire::Sha256Of(*bytes) == hash;
  }
  if (!good) {
    ::unlink(path.c_str());
    return nullptr;
  }
  ::futimens(fd.get(), nullptr);  // Used now.
  return bytes;
}

Status ImageStore::Put(const Sha256Digest& hash, std::vector<std::byte> bytes) {
  if (bytes.size() > options_.largest) {
    return Status(Code::kInvalid, "an image of " + std::to_string(bytes.size()) + " bytes is larger than is allowed");
  }
  if (wire::Sha256Of(bytes) != hash) return Status(Code::kInvalid, "the image is not what its hash says");
  Save(hash, bytes);
  Keep(hash, std::make_shared<const std::vector<std::byte>>(std::move(bytes)));
  return {};
}

void ImageStore::Save(const Sha256Digest& hash, Bytes bytes) const {
  if (folder_.empty() || bytes.size() > options_.disk) return;
  MakeRoom(bytes.size());
  static std::atomic<uint64_t> next{0};
  const std::string unfinished = folder_ + "/" + std::string(kUnfinished) + std::to_string(::getpid()) + "-" +
                                 std::to_string(next.fetch_add(1, std::memory_order_relaxed));
  ::unlink(unfinished.c_str());  // Of a worker that had our number and died.
  const Fd fd(::open(unfinished.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd.valid()) return;
  if (!WriteAll(fd.get(), bytes) || ::rename(unfinished.c_str(), PathOf(hash).c_str()) != 0) {
    ::unlink(unfinished.c_str());
  }
}

void ImageStore::MakeRoom(uint64_t bytes) const {
  std::vector<File> files = List(folder_);
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  uint64_t used = 0;
  for (File& file : files) {
    if (file.unfinished && now.tv_sec - file.used.tv_sec > kAbandoned) {
      ::unlink(file.path.c_str());
      file.size = 0;
    }
    used += file.size;
  }
  std::sort(files.begin(), files.end(), [](const File& a, const File& b) {
    return std::pair(a.used.tv_sec, a.used.tv_nsec) < std::pair(b.used.tv_sec, b.used.tv_nsec);
  });
  for (const File& file : files) {
    if (used <= options_.disk - bytes) return;
    if (file.unfinished || file.size == 0) continue;
    ::unlink(file.path.c_str());
    used -= file.size;
  }
}

void ImageStore::Keep(const Sha256Digest& hash, Image image) {
  if (memory_.count(hash) != 0) return;
  memory_used_ += image->size();
  uses_.push_front(hash);
  memory_.emplace(hash, Entry{std::move(image), uses_.begin()});
  // The newest stays in any case, so that whoever put it can use it.
  while (memory_used_ > options_.memory && uses_.size() > 1) {
    const auto oldest = memory_.find(uses_.back());
    memory_used_ -= oldest->second.image->size();
    memory_.erase(oldest);
    uses_.pop_back();
  }
}

}  // namespace hawser::server::cuda_backend
