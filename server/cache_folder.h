// SPDX-License-Identifier: Apache-2.0
// Where hawserd lets workers keep things on disk: modules that guests have uploaded
// (server/backends/cuda/image_store.h), and what drivers keep. Which folder that is by default, and that it is there
// before a worker is told of it.
//
// Threading: the event loop's.
#ifndef HAWSER_SERVER_CACHE_FOLDER_H_
#define HAWSER_SERVER_CACHE_FOLDER_H_

#include <sys/types.h>

#include <functional>
#include <string>
#include <utility>

#include "wire/status.h"

namespace hawser::server {

/// $XDG_CACHE_HOME/hawser/WHAT; without that /var/cache/hawser/WHAT as root, and ~/.cache/hawser/WHAT for others.
/// Empty: there is no such place.
std::string DefaultCache(const std::string& what);
/// The same of these: who the server is, and its variables (null: not set).
std::string DefaultCache(const std::string& what, uid_t user, const char* cache_home, const char* home);

/// Makes the folder, for its owner alone, where it is not there yet; what leads to it as usual. An error: it cannot be
/// made, or the owner cannot write there.
wire::Status MakeCache(const std::string& folder, uid_t owner, gid_t group);

class CacheFolder {
 public:
  using Complain = std::function<void(const std::string& text)>;
  /// `consequence`: what is so if the folder cannot be used; a complaint begins with it.
  CacheFolder(std::string consequence, Complain complain)
      : consequence_(std::move(consequence)), complain_(std::move(complain)) {}

  /// The folder, made where it is not there; empty where that is impossible, of which complain() hears once.
  std::string Use(const std::string& folder, uid_t owner, gid_t group);

 private:
  const std::string consequence_;
  const Complain complain_;
  std::string unusable_;  ///< The one that complain() has heard of.
};

}  // namespace hawser::server

#endif  // HAWSER_SERVER_CACHE_FOLDER_H_
