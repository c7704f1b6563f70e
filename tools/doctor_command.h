// SPDX-License-Identifier: Apache-2.0
// hawser doctor [--server URI] [--api opencl|cuda]
#ifndef HAWSER_TOOLS_DOCTOR_COMMAND_H_
#define HAWSER_TOOLS_DOCTOR_COMMAND_H_

#include <string>

#include "tools/command.h"
#include "tools/install_layout.h"

namespace hawser::tools {

/// Checks, one line each, everything between a program and the server's device.
class DoctorCommand : public Command {
 public:
  explicit DoctorCommand(InstallLayout layout) : layout_(std::move(layout)) {}

  void Register(CLI::App& app) override;
  bool Chosen() const override;
  /// 0 when all is well, otherwise 1.
  int Run() override;

 private:
  /// Whether programs of that interface will run.
  bool LookAtOpenCl(const std::string& server, bool answers) const;
  bool LookAtCuda(const std::string& server, bool answers) const;

  InstallLayout layout_;
  CLI::App* parser_ = nullptr;
  std::string server_;
  std::string api_;  ///< Empty: both.
};

}  // namespace hawser::tools

#endif  // HAWSER_TOOLS_DOCTOR_COMMAND_H_
