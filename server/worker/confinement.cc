// SPDX-License-Identifier: Apache-2.0
#include "server/worker/confinement.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "wire/socket.h"

namespace hawser::server {
namespace {

using wire::Fd;
using wire::Result;
using wire::Status;

// The kernel's interface (Documentation/userspace-api/landlock.rst). Headers of older systems lack some or all of it.
constexpr long kCreateRuleset = 444;
constexpr long kAddRule = 445;
constexpr long kRestrictSelf = 446;
constexpr unsigned kAskVersion = 1;
constexpr int kPathBeneath = 1;
constexpr uint64_t kWriteFile = 1 << 1;
constexpr uint64_t kRemoveFolder = 1 << 4;
constexpr uint64_t kRemoveFile = 1 << 5;
constexpr uint64_t kMakeCharacterDevice = 1 << 6;
constexpr uint64_t kMakeFolder = 1 << 7;
constexpr uint64_t kMakeFile = 1 << 8;
constexpr uint64_t kMakeSocket = 1 << 9;
constexpr uint64_t kMakePipe = 1 << 10;
constexpr uint64_t kMakeBlockDevice = 1 << 11;
constexpr uint64_t kMakeLink = 1 << 12;
constexpr uint64_t kMoveElsewhere = 1 << 13;  ///< Since version 2.
constexpr uint64_t kTruncate = 1 << 14;       ///< Since version 3.
constexpr uint64_t kScopeSignals = 1 << 1;    ///< Since version 6.

struct RulesetAttributes {
  uint64_t files;
  uint64_t network;
  uint64_t scopes;
};
struct [[gnu::packed]] PathAttributes {
  uint64_t allowed;
  int32_t path;
};

/// Nodes of /dev that drivers of devices, and every program, write to; by how their names begin.
constexpr std::array<std::string_view, 12> kDevices{"nvidia", "nvhost", "nvmap", "dri",  "kfd",    "dxg",
                                                    "accel",  "mali",   "null",  "zero", "random", "urandom"};

std::string Variable(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr && value[0] == '/' ? value : "";
}

void AddDevices(std::vector<std::string>* files) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/dev", error)) {
    const std::string name = entry.path().filename().string();
    if (std::any_of(kDevices.begin(), kDevices.end(), [&](std::string_view begin) { return name.starts_with(begin); }))
      files->push_back(entry.path().string());
  }
}

void AddCache(const std::string& folder, std::vector<std::string>* folders) {
  if (folder.empty()) return;
  std::error_code error;  // What cannot be made the driver does without.
  std::filesystem::create_directories(std::filesystem::path(folder).parent_path(), error);
  (void)::mkdir(folder.c_str(), 0700);
  folders->push_back(folder);
}

/// Of the file that a variable names: it is written anew and renamed.
void AddFolderOf(const char* variable, std::vector<std::string>* folders) {
  const char* const file = std::getenv(variable);
  if (file == nullptr || *file == '\0') return;
  std::error_code error;
  folders->push_back(std::filesystem::absolute(file, error).parent_path().string());
}

Status Allow(int ruleset, const std::string& place, uint64_t rights) {
  const Fd path(::open(place.c_str(), O_PATH | O_CLOEXEC));
  if (!path.valid()) return {};
  struct stat info {};
  if (::fstat(path.get(), &info) != 0) return {};
  if (!S_ISDIR(info.st_mode)) rights &= kWriteFile | kTruncate;
  const PathAttributes attributes{rights, path.get()};
  if (::syscall(kAddRule, ruleset, kPathBeneath, &attributes, 0) == 0) return {};
  return Status::FromErrno("cannot let the worker write to '" + place + "'");
}

}  // namespace

int LandlockVersion() {
  const long version = ::syscall(kCreateRuleset, nullptr, 0, kAskVersion);
  return version > 0 ? static_cast<int>(version) : 0;
}

bool CanBeConfined(const WorkerSettings& settings) {
  if (settings.api != wire::Api::kCuda) return true;
  // There the system keeps /proc shut in any case, and the software device knows. A driver given by its path may be
  // that.
  if (settings.run_as_uid != UINT32_MAX) return true;
  if (settings.cuda_device == CudaDevice::kSoft || !settings.cuda_driver.empty()) return false;
  return ::access("/dev/nvidiactl", F_OK) == 0 || ::access("/dev/dxg", F_OK) == 0;
}

WritablePlaces PlacesOf(const WorkerSettings& settings) {
  WritablePlaces places;
  AddDevices(&places.files);
  // NVIDIA's driver names its threads there, since version 570, and takes it for an error of the system if it may not.
  places.files.emplace_back("/proc/self");
  const std::string temporary = Variable("TMPDIR"), home = Variable("HOME"), caches = Variable("XDG_CACHE_HOME");
  places.folders.emplace_back("/dev/shm");
  if (!temporary.empty()) places.folders.push_back(temporary);
  AddCache(!caches.empty() || home.empty() ? caches : home + "/.cache", &places.folders);
  AddCache(Variable("POCL_CACHE_DIR"), &places.folders);
  if (settings.api == wire::Api::kCuda) {
    AddCache(Variable("CUDA_CACHE_PATH"), &places.folders);
    if (settings.cuda_cache.empty()) {
      if (!home.empty()) places.folders.push_back(home + "/.nv");
    } else {
      AddCache(settings.cuda_cache + "/" + TenantFolderName(settings.tenant), &places.folders);
    }
  }
  AddFolderOf("HAWSER_OPENCL_SPLIT_HISTORY", &places.folders);
  AddFolderOf("HAWSER_CUDA_SPLIT_HISTORY", &places.folders);
  std::string_view more(settings.writable);
  while (!more.empty()) {
    const size_t colon = more.find(':');
    if (colon != 0) places.folders.emplace_back(more.substr(0, colon));
    more.remove_prefix(colon == std::string_view::npos ? more.size() : colon + 1);
  }
  return places;
}

Result<bool> Confine(const WritablePlaces& places) {
  const int version = LandlockVersion();
  if (version == 0) return false;
  uint64_t all = kWriteFile | kRemoveFolder | kRemoveFile | kMakeFolder | kMakeFile | kMakePipe | kMakeLink;
  if (version >= 2) all |= kMoveElsewhere;
  if (version >= 3) all |= kTruncate;
  RulesetAttributes attributes{all | kMakeCharacterDevice | kMakeBlockDevice | kMakeSocket, 0, 0};
  size_t size = sizeof(attributes.files);
  if (version >= 6) {
    attributes.scopes = kScopeSignals;
    size = sizeof(attributes);
  }
  const Fd ruleset(static_cast<int>(::syscall(kCreateRuleset, &attributes, size, 0)));
  if (!ruleset.valid()) return Status::FromErrno("cannot confine the worker");
  for (const std::string& place : places.files) {
    if (Status status = Allow(ruleset.get(), place, all & (kWriteFile | kTruncate)); !status.ok()) return status;
  }
  for (const std::string& place : places.folders) {
    if (Status status = Allow(ruleset.get(), place, all); !status.ok()) return status;
  }
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || ::syscall(kRestrictSelf, ruleset.get(), 0) != 0) {
    return Status::FromErrno("cannot confine the worker");
  }
  return true;
}

}  // namespace hawser::server
