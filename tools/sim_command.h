// SPDX-License-Identifier: Apache-2.0
// hawser sim sched --policy NAME|FILE.so --scenario NAME|FILE.json [--isolated] [--json FILE] [--svg FILE]
#ifndef HAWSER_TOOLS_SIM_COMMAND_H_
#define HAWSER_TOOLS_SIM_COMMAND_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tools/command.h"

namespace hawser::tools {

class SimCommand : public Command {
 public:
  void Register(CLI::App& app) override;
  bool Chosen() const override;
  int Run() override;

 private:
  CLI::App* parser_ = nullptr;
  std::string policy_ = "fair";
  std::string scenario_;
  std::vector<std::string> settings_;  ///< "key=value"
  std::string json_file_, svg_file_;
  double seconds_ = 0;
  bool list_ = false, isolated_ = false;
};

}  // namespace hawser::tools

#endif  // HAWSER_TOOLS_SIM_COMMAND_H_
