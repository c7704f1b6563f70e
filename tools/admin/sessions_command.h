// SPDX-License-Identifier: Apache-2.0
// hawser sessions [list] | stop ID
#ifndef HAWSER_TOOLS_ADMIN_SESSIONS_COMMAND_H_
#define HAWSER_TOOLS_ADMIN_SESSIONS_COMMAND_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tools/admin/options.h"
#include "tools/command.h"

namespace hawser::tools {

class SessionsCommand : public Command {
 public:
  void Register(CLI::App& app) override;
  bool Chosen() const override;
  int Run() override;

 private:
  wire::Status Do();

  CLI::App* parser_ = nullptr;
  CLI::App* stop_ = nullptr;
  AdminOptions options_;
  std::string tenant_;
  std::vector<uint64_t> ids_;
  std::string reason_;
};

}  // namespace hawser::tools

#endif  // HAWSER_TOOLS_ADMIN_SESSIONS_COMMAND_H_
