// SPDX-License-Identifier: Apache-2.0
// hawser trace --out FILE [--seconds N]
#ifndef HAWSER_TOOLS_ADMIN_TRACE_COMMAND_H_
#define HAWSER_TOOLS_ADMIN_TRACE_COMMAND_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tools/admin/options.h"
#include "tools/command.h"

namespace hawser::tools {

class TraceCommand : public Command {
 public:
  void Register(CLI::App& app) override;
  bool Chosen() const override;
  int Run() override;

 private:
  wire::Status Do();

  CLI::App* parser_ = nullptr;
  AdminOptions options_;
  std::string out_;
  double seconds_ = 0;
  std::vector<uint64_t> sessions_;
  bool commands_ = false;
};

}  // namespace hawser::tools

#endif  // HAWSER_TOOLS_ADMIN_TRACE_COMMAND_H_
