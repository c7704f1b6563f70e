// SPDX-License-Identifier: Apache-2.0
// hawser devices [--server URI] [--local] [--json]
#ifndef HAWSER_TOOLS_DEVICES_COMMAND_H_
#define HAWSER_TOOLS_DEVICES_COMMAND_H_

#include <string>

#include "tools/command.h"
#include "tools/install_layout.h"

namespace hawser::tools {

class DevicesCommand : public Command {
 public:
  explicit DevicesCommand(InstallLayout layout) : layout_(std::move(layout)) {}

  void Register(CLI::App& app) override;
  bool Chosen() const override;
  int Run() override;

 private:
  InstallLayout layout_;
  CLI::App* parser_ = nullptr;
  std::string server_;
  bool json_ = false;
};

}  // namespace hawser::tools

#endif  // HAWSER_TOOLS_DEVICES_COMMAND_H_
