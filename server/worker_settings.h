// SPDX-License-Identifier: Apache-2.0
// What hawserd tells a worker when it starts it. Travels as lines of key=value in a memfd, never on
// the command line or in the environment, where other processes could read it.
#ifndef HAWSER_SERVER_WORKER_SETTINGS_H_
#define HAWSER_SERVER_WORKER_SETTINGS_H_

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "wire/api.h"
#include "wire/endpoint.h"
#include "wire/status.h"

namespace hawser::server {

/// Descriptors a worker starts with, besides stdin (/dev/null), stdout and stderr (hawserd's log).
inline constexpr int kSettingsFd = 3;
inline constexpr int kCommandFd = 4;
inline constexpr int kBulkFd = 5;    ///< Closed for shared-memory sessions.
inline constexpr int kStatsFd = 6;   ///< A SessionStatsPage; mapped and closed at once.
inline constexpr int kGrantFd = 7;   ///< A GrantSharePage, where there is a scheduler; mapped and closed at once.
inline constexpr int kBellFd = 8;    ///< An eventfd to wake the schedulers with; kept, as another descriptor.
inline constexpr int kExportFd = 9;  ///< For what sessions share (server/exported.h); kept likewise.
inline constexpr int kAskFd = 10;    ///< An eventfd to tell hawserd of a device that is used first; kept likewise.

/// How a worker ends, as its exit status. hawserd turns it into words.
enum WorkerExit : int {
  kGuestLeft = 0,
  kStopped = 10,        ///< hawserd asked for it.
  kProtocolError = 11,  ///< The guest broke the protocol, or did not read its answers.
  kStartFailed = 12,    ///< No OpenCL platform, no memory, ...: the log has the reason.
  kOrphaned = 13,       ///< hawserd was gone before the worker had started.
};

/// Whose CUDA driver a worker loads.
enum class CudaDevice : uint8_t {
  kAuto,    ///< NVIDIA's where it works and has a device, else the software device.
  kNvidia,  ///< NVIDIA's libcuda.so.1, or the session is refused.
  kSoft,    ///< The software device that is installed beside the worker.
};
/// Where a CUDA session's linear memory comes from.
enum class CudaMemory : uint8_t {
  kAuto,    ///< kChunks on NVIDIA's driver; on the software device, which checks each allocation's bounds, kHeap.
  kChunks,  ///< Physical chunks under reserved addresses, so that they can be moved; small allocations share one.
  kDriver,  ///< The driver's own cuMemAlloc.
  kHeap,    ///< Large allocations in memory shared with the guest, which copies there by itself; else as kDriver.
};
std::string_view CudaMemoryName(CudaMemory memory);  ///< "auto", "chunks", "driver", "heap"
wire::Result<CudaMemory> ParseCudaMemory(std::string_view name);
std::string_view CudaDeviceName(CudaDevice device);  ///< "auto", "nvidia", "soft"
wire::Result<CudaDevice> ParseCudaDevice(std::string_view name);

struct WorkerSettings {
  uint64_t session = 0;
  std::string tenant;
  std::string program;     ///< As the guest says; only for the log.
  uint32_t guest_pid = 0;  ///< As the guest says; only for the log.
  wire::Transport transport = wire::Transport::kUnix;
  wire::Api api = wire::Api::kOpenCl;
  pid_t server_pid = 0;  ///< The worker ends when this is not its parent.

  uint64_t device_memory = 0;  ///< Bytes; 0: as the device.
  uint64_t staging_memory = 1u << 30;
  uint32_t max_objects = 1u << 20;
  uint32_t inline_limit = 32u << 10;
  uint64_t address_space = 0;  ///< Bytes of RLIMIT_AS; 0: unlimited.
  uint64_t open_files = 1024;

  bool grants = false;               ///< There is a scheduler: kGrantFd, kBellFd and kAskFd are there.
  bool exports = false;              ///< kExportFd is there.
  bool share_memory = true;          ///< Offer a heap to shared-memory guests when a device can use it.
  bool syscall_filter = true;        ///< Refuse system calls that no worker needs.
  bool confine = true;               ///< Where the kernel and the driver let it: see worker/confinement.h.
  std::string writable;              ///< More places to write to, with colons between them.
  std::string driver_cache;          ///< XDG_CACHE_HOME of this tenant's drivers; empty: as hawserd has it.
  std::string temporary;             ///< TMPDIR of this worker alone; empty: as hawserd has it.
  uint32_t spin_us = 50;             ///< How long an idle executor looks before it sleeps.
  uint32_t run_as_uid = UINT32_MAX;  ///< UINT32_MAX: as hawserd.
  uint32_t run_as_gid = UINT32_MAX;

  // CUDA sessions only.
  CudaDevice cuda_device = CudaDevice::kAuto;
  CudaMemory cuda_memory = CudaMemory::kAuto;
  std::string cuda_driver;                ///< Path of a driver library; empty: as cuda_device says.
  std::string cuda_cache;                 ///< Directory with a folder for each tenant's modules; empty: none is kept.
  uint64_t cuda_cache_size = 4ull << 30;  ///< Bytes that the directory may take.

  std::string Serialize() const;
  static wire::Result<WorkerSettings> Parse(std::string_view text);
};

/// The name of a tenant's folder among those of others: never the same for two, whatever their names are.
std::string TenantFolderName(std::string_view tenant);

/// Replaces control characters, so that a name from outside stays on one line of a log.
std::string OneLine(std::string_view text);

}  // namespace hawser::server

#endif  // HAWSER_SERVER_WORKER_SETTINGS_H_
