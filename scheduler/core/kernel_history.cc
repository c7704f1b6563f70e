// SPDX-License-Identifier: Apache-2.0
#include "scheduler/core/kernel_history.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <vector>

#include "wire/sha256.h"
#include "wire/socket.h"

namespace hawser::scheduler {
namespace {

using wire::Bytes;
using wire::Code;
using wire::Fd;
using wire::Status;

// The file: this, a count, the entries from the least to the most recently used (key, rate), and the first bytes of the
// SHA-256 of all that. Little-endian, packed.
constexpr std::string_view kMagic = "hawser kernel history 1\n";
constexpr size_t kEntrySize = sizeof(KernelKey) + sizeof(double);
constexpr size_t kDigestSize = 16;
constexpr size_t kMostEntries = 1u << 20;

// Work-items per nanosecond beyond these come from no device.
constexpr double kSlowest = 1e-15, kFastest = 1e9;
// How much the newest launch counts: a kernel whose data changes is followed within a few launches.
constexpr double kNewest = 0.3;

bool IsRate(double rate) { return rate >= kSlowest && rate <= kFastest; }  // Not for NaN either.

void AddText(wire::Sha256* hash, std::string_view text) {
  const uint64_t size = text.size();  // Before it, so that no two texts run into each other.
  hash->Add(wire::AsBytes(&size, sizeof(size)));
  hash->Add(wire::AsBytes(text));
}

template <typename T>
void Put(std::string* out, const T& value) {
  char raw[sizeof(T)];
  std::memcpy(raw, &value, sizeof(T));
  out->append(raw, sizeof(T));
}

}  // namespace

KernelKey KernelKey::Of(std::string_view device, std::string_view program, std::string_view kernel) {
  wire::Sha256 hash;
  AddText(&hash, device);
  AddText(&hash, program);
  AddText(&hash, kernel);
  const wire::Sha256Digest digest = hash.Finish();
  KernelKey key;
  std::copy_n(digest.begin(), key.bytes.size(), key.bytes.begin());
  return key;
}

std::string ProgramHash(std::string_view source, std::string_view options) {
  wire::Sha256 hash;
  AddText(&hash, source);
  AddText(&hash, options);
  const wire::Sha256Digest digest = hash.Finish();
  return std::string(reinterpret_cast<const char*>(digest.data()), digest.size());
}

double KernelHistory::Rate(const KernelKey& key) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = entries_.find(key);
  if (found == entries_.end()) return 0;
  found->second.used = ++clock_;
  return found->second.rate;
}

std::optional<uint64_t> KernelHistory::Estimate(const KernelKey& key, uint64_t items) {
  const double rate = Rate(key);
  if (rate <= 0) return std::nullopt;
  return static_cast<uint64_t>(std::min(std::ceil(static_cast<double>(items) / rate), 1e18));
}

void KernelHistory::Learn(const KernelKey& key, uint64_t items, uint64_t nanoseconds) {
  if (items == 0 || nanoseconds == 0) return;
  const double rate = static_cast<double>(items) / static_cast<double>(nanoseconds);
  if (!IsRate(rate)) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = entries_.find(key);
  if (found == entries_.end()) {
    Keep(key, rate);
  } else {
    found->second.rate += kNewest * (rate - found->second.rate);
    found->second.used = ++clock_;
  }
  changed_ = true;
}

void KernelHistory::Keep(const KernelKey& key, double rate) {
  if (capacity_ == 0) return;
  if (entries_.size() >= capacity_) {
    const auto older = [](const auto& a, const auto& b) { return a.second.used < b.second.used; };
    entries_.erase(std::min_element(entries_.begin(), entries_.end(), older));
  }
  entries_[key] = {rate, ++clock_};
}

size_t KernelHistory::size() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return entries_.size();
}

bool KernelHistory::changed() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return changed_;
}

std::string KernelHistory::Encode() const {
  std::vector<std::pair<KernelKey, Entry>> entries;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    entries.assign(entries_.begin(), entries_.end());
  }
  std::sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) { return a.second.used < b.second.used; });
  std::string out(kMagic);
  Put(&out, static_cast<uint32_t>(entries.size()));
  for (const auto& [key, entry] : entries) {
    Put(&out, key.bytes);
    Put(&out, entry.rate);
  }
  const wire::Sha256Digest digest = wire::Sha256Of(wire::AsBytes(out));
  out.append(reinterpret_cast<const char*>(digest.data()), kDigestSize);
  return out;
}

Status KernelHistory::Decode(Bytes bytes) {
  const auto damaged = [](const char* what) {
    return Status(Code::kInvalid, std::string("the kernel history is not used: ") + what);
  };
  const size_t head = kMagic.size() + sizeof(uint32_t);
  if (bytes.size() < head + kDigestSize) return damaged("too short");
  if (std::memcmp(bytes.data(), kMagic.data(), kMagic.size()) != 0) return damaged("another format");
  uint32_t count = 0;
  std::memcpy(&count, bytes.data() + kMagic.size(), sizeof(count));
  if (count > kMostEntries || bytes.size() != head + count * kEntrySize + kDigestSize) return damaged("another size");
  const size_t covered = bytes.size() - kDigestSize;
  const wire::Sha256Digest digest = wire::Sha256Of(bytes.first(covered));
  if (std::memcmp(bytes.data() + covered, digest.data(), kDigestSize) != 0) return damaged("damaged");
  const std::lock_guard<std::mutex> lock(mutex_);
  for (uint32_t i = 0; i < count; ++i) {
    const std::byte* const at = bytes.data() + head + i * kEntrySize;
    KernelKey key;
    double rate = 0;
    std::memcpy(key.bytes.data(), at, key.bytes.size());
    std::memcpy(&rate, at + key.bytes.size(), sizeof(rate));
    if (IsRate(rate) && entries_.find(key) == entries_.end()) Keep(key, rate);
  }
  return {};
}

Status KernelHistory::Load(const std::string& path) {
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (file.get() < 0) return errno == ENOENT ? Status() : Status::FromErrno("cannot read the kernel history " + path);
  struct stat info {};
  if (::fstat(file.get(), &info) != 0) return Status::FromErrno("cannot read the kernel history " + path);
  const size_t most = kMagic.size() + sizeof(uint32_t) + kMostEntries * kEntrySize + kDigestSize;
  if (!S_ISREG(info.st_mode) || info.st_size < 0 || static_cast<uint64_t>(info.st_size) > most) {
    return Status(Code::kInvalid, "the kernel history " + path + " is not used: no file of ours");
  }
  std::vector<std::byte> bytes(static_cast<size_t>(info.st_size));
  size_t have = 0;
  while (have < bytes.size()) {
    const ssize_t got = ::pread(file.get(), bytes.data() + have, bytes.size() - have, static_cast<off_t>(have));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    have += static_cast<size_t>(got);
  }
  Status status = Decode(Bytes(bytes).first(have));
  const std::lock_guard<std::mutex> lock(mutex_);
  changed_ = false;
  return status;
}

Status KernelHistory::Save(const std::string& path) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    changed_ = false;
  }
  const std::string contents = Encode();
  const std::string fresh = path + "." + std::to_string(::getpid());
  // O_EXCL: never through a link that somebody else put there.
  ::unlink(fresh.c_str());
  bool good = false;
  {
    const Fd file(::open(fresh.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (file.get() < 0) return Status::FromErrno("cannot write the kernel history " + fresh);
    good = ::write(file.get(), contents.data(), contents.size()) == static_cast<ssize_t>(contents.size());
  }
  if (good && ::rename(fresh.c_str(), path.c_str()) == 0) return {};
  Status status = Status::FromErrno("cannot write the kernel history " + path);
  ::unlink(fresh.c_str());
  return status;
}

}  // namespace hawser::scheduler
