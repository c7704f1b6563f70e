// SPDX-License-Identifier: Apache-2.0
// What a worker can reach outside itself, once it is confined by the kernel (Landlock): it changes files below a few
// places only, and processes that are not its own children are out of its reach: their memory and descriptors in /proc,
// tracing, and from Linux 6.12 on signals. That holds for all that it starts, and for root.
//
// On CPU devices a guest's kernel is machine code in the worker. It may use what the worker's user may use, and where
// hawserd is not root that is hawserd's own user.
//
// Reading files is not restricted: drivers look for libraries, settings and devices in too many places.
#ifndef HAWSER_SERVER_WORKER_CONFINEMENT_H_
#define HAWSER_SERVER_WORKER_CONFINEMENT_H_

#include <string>
#include <vector>

#include "server/worker_settings.h"
#include "wire/status.h"

namespace hawser::server {

/// The version of the kernel's Landlock; 0: it has none, or it is switched off.
int LandlockVersion();

/// Whether this session's driver works in a confined process. The software CUDA device does not where it shares memory
/// between processes, through /proc; its kernels are checked at each access and are no machine code of the guest's.
bool CanBeConfined(const WorkerSettings& settings);

struct WritablePlaces {
  std::vector<std::string> files;    ///< Written; if they are folders, what is in them. Nothing is created.
  std::vector<std::string> folders;  ///< Whatever one likes below these.
};

/// Devices, temporary files, the session's caches, what the configuration adds. Makes the caches that drivers expect
/// to be able to make, and reads the environment.
WritablePlaces PlacesOf(const WorkerSettings& settings);

/// From here on, for this thread and all that it starts; call it while there is one thread, after new privileges were
/// given up. Places that are not there are left out. False: the kernel has no Landlock, and nothing was done.
wire::Result<bool> Confine(const WritablePlaces& places);

}  // namespace hawser::server

#endif  // HAWSER_SERVER_WORKER_CONFINEMENT_H_
