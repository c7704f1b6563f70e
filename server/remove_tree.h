// SPDX-License-Identifier: Apache-2.0
// Removing a folder that somebody hostile has filled.
#ifndef HAWSER_SERVER_REMOVE_TREE_H_
#define HAWSER_SERVER_REMOVE_TREE_H_

#include <functional>

#include "wire/socket.h"
#include "wire/status.h"

namespace hawser::server {

/// A folder of the folder `parent` (AT_FDCWD: of the working folder), open to be emptied; no link is followed. One that
/// is shut is opened if it belongs to this process's user. Invalid: it is no folder, or cannot be had.
wire::Fd OpenToEmpty(int parent, const char* name);

/// Removes all that is in the open folder `root`; the folder itself stays. No links are followed, and folders that are
/// shut are opened if they belong to this process's user. Three descriptors and little memory however deep it is: what
/// is below a folder of `root` is moved up into `root` before it is removed. `give_up`, asked between any two files:
/// true ends it, with an error. So does what cannot be removed, after all else was.
wire::Status EmptyFolder(int root, const std::function<bool()>& give_up);

}  // namespace hawser::server

#endif  // HAWSER_SERVER_REMOVE_TREE_H_
