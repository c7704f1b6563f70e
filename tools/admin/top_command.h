// SPDX-License-Identifier: Apache-2.0
// hawser top [--once] [--interval SECONDS]
#ifndef HAWSER_TOOLS_ADMIN_TOP_COMMAND_H_
#define HAWSER_TOOLS_ADMIN_TOP_COMMAND_H_

#include "tools/admin/options.h"
#include "tools/command.h"

namespace hawser::tools {

class TopCommand : public Command {
 public:
  void Register(CLI::App& app) override;
  bool Chosen() const override;
  int Run() override;

 private:
  wire::Status Do();
  void Show(const pb::Snapshot& now, const pb::Snapshot* before, const std::string& where) const;

  CLI::App* parser_ = nullptr;
  AdminOptions options_;
  double interval_s_ = 1;
  bool once_ = false;
  bool json_ = false;
  bool screen_ = false;
};

}  // namespace hawser::tools

#endif  // HAWSER_TOOLS_ADMIN_TOP_COMMAND_H_
