// SPDX-License-Identifier: Apache-2.0
#include "server/temporary_folders.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string_view>
#include <system_error>
#include <utility>

#include "server/remove_tree.h"

namespace hawser::server {
namespace {

using std::chrono::steady_clock;
using wire::Code;
using wire::Fd;
using wire::Result;
using wire::Status;

constexpr std::string_view kPrefix = "hawser-worker-";
/// The thread's priority: the system's lowest.
constexpr int kNice = 19;

bool Lock(const Fd& folder) { return ::flock(folder.get(), LOCK_EX | LOCK_NB) == 0; }

}  // namespace

std::string TemporaryFolders::DefaultBase() {
  const char* const folder = std::getenv("TMPDIR");
  return folder != nullptr && folder[0] == '/' ? folder : "/tmp";
}

TemporaryFolders::~TemporaryFolders() {
  {
    std::unique_lock lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
    if (!changed_.wait_for(lock, grace_, [this] { return tasks_.empty(); })) leave_ = true;
  }
  if (thread_.joinable()) thread_.join();
}

TemporaryFolder TemporaryFolders::Make(uid_t owner, gid_t group) {
  Result<TemporaryFolder> made = TryMake(owner, group);
  if (made.ok()) return std::move(*made);
  if (!complained_) complain_("workers have no place for temporary files: " + made.status().text());
  complained_ = true;
  return {};
}

Result<TemporaryFolder> TemporaryFolders::TryMake(uid_t owner, gid_t group) const {
  TemporaryFolder folder;
  // Another hawserd that starts may take a new one that is not locked yet for one that was left behind.
  for (int tries = 0; tries < 100; ++tries) {
    folder.path = base_ + "/" + std::string(kPrefix) + "XXXXXX";
    if (::mkdtemp(folder.path.data()) == nullptr) return Status::FromErrno("cannot create a folder in '" + base_ + "'");
    folder.lock = OpenToEmpty(AT_FDCWD, folder.path.c_str());
    struct stat info {};
    if (!folder.lock.valid() || !Lock(folder.lock) || ::fstat(folder.lock.get(), &info) != 0 || info.st_nlink == 0) {
      continue;
    }
    if (owner == ::geteuid() || ::fchown(folder.lock.get(), owner, group) == 0) return folder;
    const Status status = Status::FromErrno("cannot give '" + folder.path + "' to user " + std::to_string(owner));
    ::rmdir(folder.path.c_str());
    return status;
  }
  return Status(Code::kSystem, "others remove what is created in '" + base_ + "'");
}

void TemporaryFolders::Discard(TemporaryFolder folder) {
  if (folder.path.empty()) return;
  // A task is copied, a lock is not.
  Queue([this, kept = std::make_shared<TemporaryFolder>(std::move(folder))] { Remove(*kept); });
}

void TemporaryFolders::DiscardStale(uid_t owner) {
  Queue([this, owner] { RemoveStale(owner); });
}

void TemporaryFolders::Queue(std::function<void()> task) {
  const std::lock_guard lock(mutex_);
  tasks_.push_back(std::move(task));
  if (!thread_.joinable()) thread_ = std::thread([this] { Work(); });
  changed_.notify_all();
}

void TemporaryFolders::Work() {
  ::setpriority(PRIO_PROCESS, static_cast<id_t>(::syscall(SYS_gettid)), kNice);
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stopping_ || !tasks_.empty(); });
    if (tasks_.empty()) return;
    const std::function<void()> task = tasks_.front();
    lock.unlock();
    if (!leave_) task();
    lock.lock();
    tasks_.pop_front();
    changed_.notify_all();
  }
}

void TemporaryFolders::Remove(const TemporaryFolder& folder) {
  const auto deadline = steady_clock::now() + longest_;
  const Status emptied =
      EmptyFolder(folder.lock.get(), [this, deadline] { return leave_ || steady_clock::now() >= deadline; });
  if (emptied.ok() && ::rmdir(folder.path.c_str()) == 0) return;
  if (leave_) return;
  complain_("'" + folder.path + "', a worker's temporary files, was not removed: " +
            (emptied.ok() ? Status::FromErrno("the folder itself") : emptied).text());
}

void TemporaryFolders::RemoveStale(uid_t owner) {
  std::error_code error;
  std::filesystem::directory_iterator entries(base_, error);
  for (; !error && entries != std::filesystem::directory_iterator(); entries.increment(error)) {
    const std::string path = entries->path().string();
    struct stat info {};
    if (!entries->path().filename().string().starts_with(kPrefix) || ::lstat(path.c_str(), &info) != 0) continue;
    if (info.st_uid != owner && info.st_uid != ::geteuid()) continue;
    const TemporaryFolder folder{path, OpenToEmpty(AT_FDCWD, path.c_str())};
    if (folder.lock.valid() && Lock(folder.lock)) Remove(folder);
  }
}

}  // namespace hawser::server
