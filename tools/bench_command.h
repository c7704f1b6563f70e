// SPDX-License-Identifier: Apache-2.0
// hawser bench opencl …
#ifndef HAWSER_TOOLS_BENCH_COMMAND_H_
#define HAWSER_TOOLS_BENCH_COMMAND_H_

#include <string>
#include <vector>

#include "bench/cuda_suite.h"
#include "bench/opencl_suite.h"
#include "tools/command.h"
#include "tools/install_layout.h"
#include "wire/status.h"

namespace hawser::tools {

class BenchCommand : public Command {
 public:
  explicit BenchCommand(InstallLayout layout) : layout_(std::move(layout)) {}

  void Register(CLI::App& app) override;
  bool Chosen() const override;
  int Run() override;

 private:
  wire::Result<bench::SuiteOptions> Options() const;
  wire::Result<bench::CudaSuiteOptions> CudaOptions() const;
  void AddCommon(CLI::App* parser);
  std::string ReproducingCommand() const;

  InstallLayout layout_;
  CLI::App* parser_ = nullptr;
  CLI::App* opencl_ = nullptr;
  CLI::App* cuda_ = nullptr;
  std::string server_;
  std::vector<std::string> transports_;
  std::vector<std::string> only_;
  std::string device_;
  std::string cuda_device_ = "auto";
  bool quick_ = false;
  bool native_only_ = false;
  int rounds_ = 0;
  std::string json_file_, svg_file_, markdown_file_;
};

/// The transports named by words such as "shm" or "tcp"; the status names the first bad one.
wire::Result<std::vector<wire::Transport>> ParseTransports(const std::vector<std::string>& names);

}  // namespace hawser::tools

#endif  // HAWSER_TOOLS_BENCH_COMMAND_H_
