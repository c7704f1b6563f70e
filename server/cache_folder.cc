// SPDX-License-Identifier: Apache-2.0
#include "server/cache_folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>

namespace hawser::server {

using wire::Code;
using wire::Status;

std::string DefaultCache(const std::string& what) {
  return DefaultCache(what, ::geteuid(), std::getenv("XDG_CACHE_HOME"), std::getenv("HOME"));
}

std::string DefaultCache(const std::string& what, uid_t user, const char* cache_home, const char* home) {
  const auto is_path = [](const char* path) { return path != nullptr && path[0] == '/'; };
  if (is_path(cache_home)) return std::string(cache_home) + "/hawser/" + what;
  if (user == 0) return "/var/cache/hawser/" + what;
  return is_path(home) ? std::string(home) + "/.cache/hawser/" + what : std::string();
}

Status MakeCache(const std::string& folder, uid_t owner, gid_t group) {
  std::error_code error;
  const std::filesystem::path above = std::filesystem::path(folder).parent_path();
  if (!above.empty()) std::filesystem::create_directories(above, error);
  if (error) return Status::FromErrno("cannot create '" + above.string() + "'", error.value());
  if (::mkdir(folder.c_str(), 0700) == 0) {
    if (owner == ::geteuid() || ::lchown(folder.c_str(), owner, group) == 0) return {};
    return Status::FromErrno("cannot give '" + folder + "' to user " + std::to_string(owner));
  }
  if (errno != EEXIST) return Status::FromErrno("cannot create '" + folder + "'");
  struct stat info {};
  if (::stat(folder.c_str(), &info) != 0) return Status::FromErrno("cannot look at '" + folder + "'");
  if (!S_ISDIR(info.st_mode)) return Status(Code::kInvalid, "'" + folder + "' is not a folder");
  if (owner == ::geteuid()) {
    if (::faccessat(AT_FDCWD, folder.c_str(), W_OK | X_OK, AT_EACCESS) == 0) return {};
    return Status::FromErrno("cannot write to '" + folder + "'");
  }
  // Whether a group or a list lets that user write is seen when a worker tries.
  const mode_t writers = owner == info.st_uid ? S_IWUSR : S_IWGRP | S_IWOTH;
  if (owner == 0 || (info.st_mode & writers) != 0) return {};
  return Status(Code::kRefused,
                "user " + std::to_string(owner) + ", as whom workers run, cannot write to '" + folder + "'");
}

std::string CacheFolder::Use(const std::string& folder, uid_t owner, gid_t group) {
  if (folder.empty()) return {};
  const Status made = MakeCache(folder, owner, group);
  if (made.ok()) return folder;
  if (folder != unusable_) complain_(consequence_ + ": " + made.text());
  unusable_ = folder;
  return {};
}

}  // namespace hawser::server
