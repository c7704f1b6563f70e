// SPDX-License-Identifier: Apache-2.0
// hawser tenants [list] | set NAME --weight N ... | reset NAME
#ifndef HAWSER_TOOLS_ADMIN_TENANTS_COMMAND_H_
#define HAWSER_TOOLS_ADMIN_TENANTS_COMMAND_H_

#include <optional>
#include <string>

#include "tools/admin/options.h"
#include "tools/command.h"

namespace hawser::tools {

/// What `set` was given, as typed.
struct TenantWords {
  std::string name;
  bool reset = false;
  std::optional<uint32_t> weight;
  std::optional<int32_t> priority;
  std::optional<uint32_t> sessions;
  std::string memory;     ///< "512MiB", "device"
  std::string min_share;  ///< "25%"
  std::string max_share;
  std::optional<double> slo_ms;
};
/// kInvalid, naming the option, when something cannot be understood.
wire::Result<pb::SetTenantRequest> ToRequest(const TenantWords& words);

class TenantsCommand : public Command {
 public:
  void Register(CLI::App& app) override;
  bool Chosen() const override;
  int Run() override;

 private:
  wire::Status Do();

  CLI::App* parser_ = nullptr;
  CLI::App* set_ = nullptr;
  CLI::App* reset_ = nullptr;
  AdminOptions options_;
  TenantWords words_;
};

}  // namespace hawser::tools

#endif  // HAWSER_TOOLS_ADMIN_TENANTS_COMMAND_H_
