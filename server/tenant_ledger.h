// SPDX-License-Identifier: Apache-2.0
// What operators changed about tenants at run time, and what tenants have used since the server began.
#ifndef HAWSER_SERVER_TENANT_LEDGER_H_
#define HAWSER_SERVER_TENANT_LEDGER_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "server/admin/state.h"
#include "server/device_findings.h"
#include "server/tenants.h"
#include "wire/status.h"

namespace hawser::server {

/// Changes lie on top of the configuration, also of one that is read later, until they are reset or the server ends.
/// Threading: none; belongs to hawserd's one thread. Grows with the number of names that ever came, which are users,
/// tenants and sockets of this machine, never words of a guest. Names of devices are of workers: of each tenant so many
/// are kept, and what comes beyond is one.
class TenantLedger {
 public:
  static constexpr size_t kMostDevices = 64;
  static constexpr const char* kOtherDevices = "others";

  struct Totals {
    uint64_t commands = 0;
    uint64_t bytes_up = 0;
    uint64_t bytes_down = 0;
    std::map<std::string, uint64_t> device_ns;  ///< By device.
    uint64_t copied_in = 0;
    uint64_t copied_out = 0;
  };

  /// kInvalid: the outcome would not be legal on top of `configured`; nothing was changed.
  wire::Status Change(const Tenant& configured, const admin::TenantChange& change);
  bool Changed(const std::string& name) const;
  /// The tenant with what was changed. Should that not fit to a configuration that was read since, the configuration
  /// wins.
  Tenant Effective(Tenant configured) const;

  /// A session began: its tenant is known from here on.
  void Meet(const std::string& name) { entries_[name]; }
  /// Adds what a session used that has ended.
  void Add(const std::string& name, const Totals& used);
  Totals Used(const std::string& name) const;
  std::vector<std::string> Names() const;
  bool Knows(const std::string& name) const { return entries_.count(name) != 0; }
  /// What workers of the tenant found out of devices. Never another tenant's: a guest may have had its worker lie.
  DeviceFindings& Findings(const std::string& name) { return entries_[name].findings; }

 private:
  struct Entry {
    std::optional<admin::TenantChange> change;
    Totals used;
    DeviceFindings findings;
  };
  std::map<std::string, Entry> entries_;
};

/// The part of a tenant that operators see and change.
admin::TenantSettings SettingsOf(const Tenant& tenant);

}  // namespace hawser::server

#endif  // HAWSER_SERVER_TENANT_LEDGER_H_
