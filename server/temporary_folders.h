// SPDX-License-Identifier: Apache-2.0
// A folder for each worker's temporary files, so that none reaches what others, hawserd among them, have in /tmp.
//
// A worker that its guest has taken over may fill its folder with anything, so a thread of its own removes it
// (remove_tree.h), and for a limited time. What hawserd leaves behind, because it was killed or the time was over, the
// next one removes: a folder is locked (flock) while its hawserd lives.
//
// Threading: the event loop's, but for that thread, which has what is queued and nothing else.
#ifndef HAWSER_SERVER_TEMPORARY_FOLDERS_H_
#define HAWSER_SERVER_TEMPORARY_FOLDERS_H_

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "wire/socket.h"
#include "wire/status.h"

namespace hawser::server {

/// A worker's; the lock on it ends with the object.
struct TemporaryFolder {
  std::string path;  ///< Empty: there is none.
  wire::Fd lock;     ///< The open folder.
};

class TemporaryFolders {
 public:
  /// Hears, on any thread, of folders that cannot be made or removed.
  using Complain = std::function<void(const std::string& text)>;

  /// `base`: the folder they are in. `grace`: how long the end waits for what is still to be removed. `longest`: how
  /// long removing one may take, or everybody's would wait for a guest that has made very many files.
  TemporaryFolders(std::string base, Complain complain, std::chrono::seconds grace = std::chrono::seconds(2),
                   std::chrono::seconds longest = std::chrono::seconds(30))
      : base_(std::move(base)), complain_(std::move(complain)), grace_(grace), longest_(longest) {}
  /// Waits for that.
  ~TemporaryFolders();

  /// Makes one, with mode 0700. Where that is impossible it is empty; of the first time complain() hears.
  TemporaryFolder Make(uid_t owner, gid_t group);
  /// Removes it soon, with all that is in it.
  void Discard(TemporaryFolder folder);
  /// Removes soon what `owner` has there of a hawserd that is gone.
  void DiscardStale(uid_t owner);

  /// $TMPDIR, or /tmp.
  static std::string DefaultBase();

 private:
  wire::Result<TemporaryFolder> TryMake(uid_t owner, gid_t group) const;
  void Queue(std::function<void()> task);
  void Work();
  void Remove(const TemporaryFolder& folder);
  void RemoveStale(uid_t owner);

  const std::string base_;
  const Complain complain_;
  const std::chrono::seconds grace_;
  const std::chrono::seconds longest_;
  bool complained_ = false;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_;  ///< The first one is being worked on.
  bool stopping_ = false;
  std::atomic<bool> leave_{false};  ///< What is not removed by now stays.
  std::thread thread_;              ///< From the first task on.
};

}  // namespace hawser::server

#endif  // HAWSER_SERVER_TEMPORARY_FOLDERS_H_
