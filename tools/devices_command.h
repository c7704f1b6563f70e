// SPDX-License-Identifier: Apache-2.0
// hawser devices [--server URI] [--local] [--json]
#ifndef HAWSER_TOOLS_DEVICES_COMMAND_H_
#define HAWSER_TOOLS_DEVICES_COMMAND_H_

#include <string>
#include <vector>

#include "tools/command.h"
#include "tools/cuda_inventory.h"
#include "tools/install_layout.h"
#include "tools/opencl_inventory.h"

namespace hawser::tools {

class DevicesCommand : public Command {
 public:
  explicit DevicesCommand(InstallLayout layout) : layout_(std::move(layout)) {}

  void Register(CLI::App& app) override;
  bool Chosen() const override;
  int Run() override;

 private:
  /// The guest's driver, or what this machine has of its own.
  std::vector<CudaDriverEntry> CudaDrivers(bool remote) const;

  InstallLayout layout_;
  CLI::App* parser_ = nullptr;
  std::string server_;
  bool json_ = false;
};

}  // namespace hawser::tools

#endif  // HAWSER_TOOLS_DEVICES_COMMAND_H_
