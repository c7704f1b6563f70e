// SPDX-License-Identifier: Apache-2.0
// What a worker gives up before it reads a guest's first command.
//
// A kernel of a guest runs as machine code inside the worker on CPU devices, so a guest may end up
// controlling it. What it must not gain: privileges, the network, other processes, hawserd's files.
#ifndef HAWSER_SERVER_WORKER_SANDBOX_H_
#define HAWSER_SERVER_WORKER_SANDBOX_H_

#include <initializer_list>

#include "server/worker_settings.h"
#include "wire/status.h"

namespace hawser::server {

/// Asks the kernel to kill this process when its parent dies. kClosed when `parent` is gone already.
wire::Status DieWithParent(pid_t parent);

/// No core dumps, a bound on descriptors.
wire::Status ApplyResourceLimits(const WorkerSettings& settings);

/// A bound on memory if configured. After the driver is known: some reserve far more addresses than they use.
wire::Status LimitAddressSpace(const WorkerSettings& settings);

/// Closes every descriptor from `first` on, but `kept`, which are in ascending order (less than `first`: none).
void CloseFrom(int first, std::initializer_list<int> kept = {});

/// No new privileges through execve; another user and group if configured; no capabilities, also of root.
wire::Status DropPrivileges(const WorkerSettings& settings);

/// Refuses (EPERM), for all threads of this process and its children, the system calls that no
/// worker needs: network, tracing, signals and limits of other processes, mounting, namespaces, kernel administration,
/// typing on a terminal. Everything that drivers need stays, including the processes in which they link kernels. After
/// the driver has begun: NVIDIA's binds a socket then (cuda-uvmfd), and does not begin without.
wire::Status InstallSyscallFilter();

}  // namespace hawser::server

#endif  // HAWSER_SERVER_WORKER_SANDBOX_H_
