// SPDX-License-Identifier: Apache-2.0
// hawser run [--server URI | --device soft] [--no-check] [--] program args…
#ifndef HAWSER_TOOLS_RUN_COMMAND_H_
#define HAWSER_TOOLS_RUN_COMMAND_H_

#include <string>
#include <utility>
#include <vector>

#include "tools/command.h"
#include "tools/install_layout.h"

namespace hawser::tools {

class RunCommand : public Command {
 public:
  explicit RunCommand(InstallLayout layout) : layout_(std::move(layout)) {}

  /// Of a command line without its first word: takes the program and its arguments away when the command
  /// is `run`, and returns the words that are Hawser's. The program begins after "--" or with the first
  /// word that is no option; from there on dashes are its own business.
  std::vector<std::string> TakeProgram(std::vector<std::string> words);

  void Register(CLI::App& app) override;
  bool Chosen() const override;
  /// Replaces this process by the program; returns only when that failed.
  int Run() override;

 private:
  /// Checks what the run needs, and sets the environment. False when it complained.
  bool Prepare();

  InstallLayout layout_;
  CLI::App* parser_ = nullptr;
  std::string server_;
  std::string device_ = "server";
  bool no_check_ = false;
  std::vector<std::string> program_;
};

/// Points this process's environment, and so what it executes, at Hawser's platform and this server.
void EnterGuestEnvironment(const InstallLayout& layout, const std::string& server);

enum class CudaDevice { kServer, kSoft };

/// The same for CUDA: its driver and runtime are looked for in Hawser's directories first, and runtimes that programs
/// embed or bring along are redirected. Does nothing where the CUDA guest is not installed.
void EnterCudaEnvironment(const InstallLayout& layout, CudaDevice device);

}  // namespace hawser::tools

#endif  // HAWSER_TOOLS_RUN_COMMAND_H_
