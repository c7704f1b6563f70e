// SPDX-License-Identifier: Apache-2.0
#include "tools/run_command.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>

#include "tools/server_uri.h"

namespace hawser::tools {

void EnterGuestEnvironment(const InstallLayout& layout, const std::string& server) {
  // A directory, not a file: both ocl-icd and the Khronos loader take one.
  setenv("OCL_ICD_VENDORS", layout.icd_directory.c_str(), 1);
  // ocl-icd looks here too, and would add platforms of this machine.
  unsetenv("OCL_ICD_FILENAMES");
  setenv("HAWSER_SERVER", server.c_str(), 1);
}

namespace {

// Puts `first` before what the variable has already.
void Prepend(const char* variable, const std::string& first) {
  const char* before = std::getenv(variable);
  const bool none = before == nullptr || before[0] == '\0';
  setenv(variable, (none ? first : first + ":" + before).c_str(), 1);
}

}  // namespace

void EnterCudaEnvironment(const InstallLayout& layout, CudaDevice device) {
  if (layout.cuda_guest_directory.empty()) return;
  // Directories rather than the libraries themselves: programs ask for libcuda.so, libcuda.so.1 and libcudart.so.1x.
  Prepend("LD_LIBRARY_PATH", layout.cuda_guest_directory);
  if (device == CudaDevice::kSoft) Prepend("LD_LIBRARY_PATH", layout.cuda_soft_directory);
  Prepend("LD_PRELOAD", layout.cuda_guest_directory + "/libhawser_preload.so");
}

std::vector<std::string> RunCommand::TakeProgram(std::vector<std::string> words) {
  if (words.empty() || words[0] != "run") return words;
  size_t own = 1;
  while (own < words.size() && words[own].size() > 1 && words[own][0] == '-') {
    const bool takes_value = words[own] == "--server" || words[own] == "--device";
    const bool last = words[own] == "--";
    own += takes_value ? 2 : 1;
    if (last) break;
  }
  own = std::min(own, words.size());
  program_.assign(words.begin() + static_cast<ptrdiff_t>(own), words.end());
  if (words[own - 1] == "--") --own;
  words.resize(own);
  return words;
}

void RunCommand::Register(CLI::App& app) {
  parser_ = app.add_subcommand("run", "Run a program on the server's device, or on the software CUDA device");
  parser_->footer(
      "The program and its arguments follow:\n"
      "  hawser run --server tcp:gpubox:9700 -- clinfo -l    OpenCL and CUDA run on the server's devices\n"
      "  hawser run --device soft -- ./cuda_program          CUDA runs on this machine's CPU; no server takes part\n"
      "What a server computes on is chosen there (hawserd --device).");
  parser_->add_option("--server", server_,
                      "shm:/path.sock, unix:/path.sock, tcp:host:port or vsock:cid:port "
                      "(default: $HAWSER_SERVER, else " +
                          DefaultServer() + ")");
  parser_
      ->add_option("--device", device_,
                   "server (default): the server's devices. soft: the software CUDA device in the program's own "
                   "process, without a server")
      ->check(CLI::IsMember({"server", "soft"}));
  parser_->add_flag("--no-check", no_check_, "Do not try the server before the program starts");
}

bool RunCommand::Chosen() const { return parser_->parsed(); }

bool RunCommand::Prepare() {
  if (device_ == "soft") {
    if (!server_.empty()) {
      Complain(
          "run: --device soft computes on this machine without a server, so it does not go with --server. To have a "
          "server compute in software, start it with 'hawserd --device soft'");
      return false;
    }
    if (wire::Status s = CheckSoftDevice(layout_); !s.ok()) {
      Complain(s.text());
      return false;
    }
    EnterCudaEnvironment(layout_, CudaDevice::kSoft);
    return true;
  }
  if (wire::Status s = CheckGuestSide(layout_); !s.ok()) {
    Complain(s.text());
    return false;
  }
  const std::string server = ChosenServer(server_);
  if (!no_check_) {
    if (wire::Status s = CheckServer(server, std::chrono::seconds(5)); !s.ok()) {
      Complain(s.text());
      return false;
    }
  }
  EnterGuestEnvironment(layout_, server);
  EnterCudaEnvironment(layout_, CudaDevice::kServer);
  return true;
}

int RunCommand::Run() {
  if (program_.empty()) {
    Complain("run: which program? For example: hawser run clinfo -l");
    return kExitHawser;
  }
  if (!Prepare()) return kExitHawser;
  std::vector<char*> arguments;
  for (std::string& word : program_) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  execvp(arguments[0], arguments.data());
  const int error = errno;
  Complain("cannot run '" + program_[0] + "': " + std::strerror(error));
  return error == ENOENT ? kExitNotFound : kExitCannotRun;
}

}  // namespace hawser::tools
