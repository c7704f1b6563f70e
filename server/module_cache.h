// SPDX-License-Identifier: Apache-2.0
// Where hawserd lets workers keep modules that guests have uploaded (server/backends/cuda/image_store.h): which folder
// that is by default, and that it is there before a worker is told of it.
//
// Threading: the event loop's.
#ifndef HAWSER_SERVER_MODULE_CACHE_H_
#define HAWSER_SERVER_MODULE_CACHE_H_

#include <sys/types.h>

#include <functional>
#include <string>
#include <utility>

#include "wire/status.h"

namespace hawser::server {

/// $XDG_CACHE_HOME/hawser/images; without that /var/cache/hawser/images as root, and ~/.cache/hawser/images for others.
/// Empty: there is no such place.
std::string DefaultModuleCache();
/// The same of these: who the server is, and its variables (null: not set).
std::string DefaultModuleCache(uid_t user, const char* cache_home, const char* home);

/// Makes the folder, for its owner alone, where it is not there yet; what leads to it as usual. An error: it cannot be
/// made, or the owner cannot write there.
wire::Status MakeModuleCache(const std::string& folder, uid_t owner, gid_t group);

class ModuleCache {
 public:
  using Complain = std::function<void(const std::string& text)>;
  explicit ModuleCache(Complain complain) : complain_(std::move(complain)) {}

  /// The folder, made where it is not there; empty where that is impossible, of which complain() hears once.
  std::string Use(const std::string& folder, uid_t owner, gid_t group);

 private:
  const Complain complain_;
  std::string unusable_;  ///< The one that complain() has heard of.
};

}  // namespace hawser::server

#endif  // HAWSER_SERVER_MODULE_CACHE_H_
