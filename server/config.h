// SPDX-License-Identifier: Apache-2.0
// hawserd's configuration: a TOML file. deploy/hawserd.toml shows every key.
#ifndef HAWSER_SERVER_CONFIG_H_
#define HAWSER_SERVER_CONFIG_H_

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/log.h"
#include "server/scheduler_settings.h"
#include "server/size.h"
#include "server/tenant_share.h"
#include "server/worker_settings.h"
#include "wire/status.h"

namespace hawser::server {

/// What a session may use. Bytes, unless the name says otherwise.
struct SessionLimits {
  uint64_t device_memory = 0;  ///< Buffers and images; 0: as the device.
  uint64_t staging_memory = 1u << 30;
  uint32_t max_objects = 1u << 20;
  uint32_t inline_limit = 32u << 10;
  uint64_t address_space = 0;  ///< 0: unlimited.
  uint64_t open_files = 1024;
};

/// Who a guest can be.
struct TenantConfig {
  std::string name;
  std::vector<uid_t> uids;           ///< Of guests on the same machine.
  std::vector<uint32_t> cids;        ///< Of virtual machines.
  std::vector<std::string> sockets;  ///< Hybrid vsock: paths of listeners that are this tenant's.
  std::string token;                 ///< Empty: none.
  uint32_t max_sessions = 0;         ///< 0: limits.max_sessions_per_tenant.
  SessionLimits limits;              ///< Those of [limits], with the tenant's own on top.
  TenantShare share;
};

struct Config {
  /// The value of tcp.allow_unauthenticated_remote that means yes.
  static constexpr std::string_view kTrustWords = "yes, I trust this network";

  /// The value of admin.allow_tcp that means yes.
  static constexpr std::string_view kAdminTcpWords = "yes, whoever can connect may control this server";
  /// The value of admin.listen that means nowhere.
  static constexpr std::string_view kAdminNone = "none";

  // [server]
  std::vector<std::string> listen;
  mode_t socket_mode = 0600;
  std::string worker;  ///< Path of hawser-worker; empty: beside hawserd.
  std::string worker_user;
  bool syscall_filter = true;
  bool confine = true;                ///< Workers, where the kernel can (worker/confinement.h).
  std::vector<std::string> writable;  ///< Where confined workers may write, beside what they always may.
  /// Directory for what drivers keep, one folder for each tenant; empty: they keep it where they always do, for all
  /// tenants. Not said: DefaultCache("drivers").
  std::optional<std::string> driver_cache;
  uint32_t spin_us = 50;
  LogLevel log_level = LogLevel::kInfo;
  std::string log_file;

  // [admin]
  std::string admin_listen;  ///< URI or kAdminNone; empty: beside the first unix listener, if that can be.
  bool admin_allow_tcp = false;

  // [limits]
  uint32_t max_sessions = 256;
  uint32_t max_sessions_per_tenant = 64;
  uint32_t max_pending = 256;
  uint32_t handshake_timeout_ms = 5000;
  SessionLimits limits;

  // [tcp]
  bool require_token = false;  ///< Also on loopback.
  bool allow_unauthenticated_remote = false;

  // [unix]
  bool require_tenant = false;  ///< Users that no tenant lists are refused.

  // [opencl]
  std::string icd_vendors;                 ///< OCL_ICD_VENDORS of workers; empty: the system's.
  std::map<std::string, std::string> env;  ///< Added to the environment of workers.
  bool share_memory = true;

  // [cuda]
  CudaDevice cuda_device = CudaDevice::kAuto;
  CudaMemory cuda_memory = CudaMemory::kAuto;
  std::string cuda_driver;  ///< A driver library; empty: as cuda_device says.
  /// Directory for modules, one folder for each tenant; empty: none is kept. Not said: DefaultCache("images").
  std::optional<std::string> cuda_cache;
  uint64_t cuda_cache_size = 4ull << 30;  ///< Of each tenant.

  // [scheduler]
  SchedulerSettings scheduler;

  // [tenants.NAME]
  std::vector<TenantConfig> tenants;

  /// `file` is named in errors, which say line and key. Reads token files.
  static wire::Result<Config> Parse(std::string_view text, const std::string& file);
  static wire::Result<Config> Load(const std::string& file);
};

}  // namespace hawser::server

#endif  // HAWSER_SERVER_CONFIG_H_
