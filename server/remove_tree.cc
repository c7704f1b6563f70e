// SPDX-License-Identifier: Apache-2.0
#include "server/remove_tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "wire/socket.h"

namespace hawser::server {
namespace {

using wire::Code;
using wire::Fd;
using wire::Status;

struct CloseFolder {
  void operator()(DIR* folder) const { ::closedir(folder); }
};
using Listing = std::unique_ptr<DIR, CloseFolder>;

class Emptier {
 public:
  Emptier(int root, const std::function<bool()>& give_up) : root_(root), give_up_(give_up) {}

  Status Run() {
    (void)::fchmod(root_, 0700);
    for (;;) {
      moved_ = false;
      error_ = 0;
      bool left = false;
      Status listed = ForEach(root_, [&](const char* name) {
        if (Remove(root_, name)) return;
        left = true;
        EmptyInto(name);
      });
      if (!listed.ok()) return listed;
      // Those that were emptied go the next time, with what came out of them.
      if (!left && !moved_) return {};
      if (!moved_ && error_ != 0) return Status::FromErrno("cannot remove what is in a folder", error_);
    }
  }

 private:
  template <typename Do>
  Status ForEach(int folder, Do&& act) {
    const int again = ::openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (again < 0) return Status::FromErrno("cannot open a folder to remove it");
    Listing listing(::fdopendir(again));
    if (listing == nullptr) {
      ::close(again);
      return Status::FromErrno("cannot read a folder to remove it");
    }
    while (const dirent* entry = ::readdir(listing.get())) {
      const std::string_view name(entry->d_name);
      if (name == "." || name == "..") continue;
      if (give_up_()) return Status(Code::kTimeout, "removing a folder took too long, and was left");
      act(entry->d_name);
    }
    return {};
  }

  /// A file, or a folder with nothing in it.
  bool Remove(int folder, const char* name) {
    if (::unlinkat(folder, name, 0) == 0) return true;
    const int why = errno;
    if (::unlinkat(folder, name, AT_REMOVEDIR) == 0) return true;
    if (errno == ENOENT) return true;
    reason_ = errno == ENOTDIR ? why : errno;
    return false;
  }

  /// Removes what is in a folder of the root, or moves it into the root.
  void EmptyInto(const char* name) {
    const int reason = reason_;
    const Fd folder = OpenToEmpty(root_, name);
    if (!folder.valid()) {
      error_ = reason;
      return;
    }
    bool done = true;
    const Status listed = ForEach(folder.get(), [&](const char* inner) {
      if (Remove(folder.get(), inner)) {
        moved_ = true;
      } else if (!MoveUp(folder.get(), inner)) {
        done = false;
      }
    });
    if (!listed.ok() || !done) {
      error_ = listed.ok() ? reason_ : EACCES;
    } else if (::unlinkat(root_, name, AT_REMOVEDIR) == 0) {
      moved_ = true;
    } else {
      error_ = errno;
    }
  }

  bool MoveUp(int folder, const char* name) {
    // Who moves a folder changes where its ".." leads, and must be allowed to write to it.
    if (!OpenToEmpty(folder, name).valid()) return false;
    for (;;) {
      // An empty folder of that name is replaced, which is as well.
      const std::string up = "moved-" + std::to_string(next_++);
      if (::renameat(folder, name, root_, up.c_str()) == 0) {
        moved_ = true;
        return true;
      }
      reason_ = errno;
      const bool taken = errno == EEXIST || errno == ENOTEMPTY || errno == ENOTDIR;
      if (!taken || give_up_()) return false;
    }
  }

  const int root_;
  const std::function<bool()>& give_up_;
  uint64_t next_ = 0;
  bool moved_ = false;  ///< This pass changed something, so another one is worth it.
  int error_ = 0;       ///< Of what this pass could not remove.
  int reason_ = 0;      ///< Of what was last tried.
};

}  // namespace

Fd OpenToEmpty(int parent, const char* name) {
  const Fd place(::openat(parent, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!place.valid()) return {};
  (void)::chmod(("/proc/self/fd/" + std::to_string(place.get())).c_str(), 0700);
  return Fd(::openat(place.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

Status EmptyFolder(int root, const std::function<bool()>& give_up) { return Emptier(root, give_up).Run(); }

}  // namespace hawser::server
