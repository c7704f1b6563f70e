// SPDX-License-Identifier: Apache-2.0
#include "tools/bench_command.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

#include "bench/chart.h"
#include "bench/report.h"
#include "tools/server_uri.h"
#include "wire/endpoint.h"

namespace hawser::tools {

using wire::Code;
using wire::Result;
using wire::Status;
using wire::Transport;

namespace {

Status WriteFile(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::trunc);
  file << text;
  file.close();
  return file ? Status::Ok() : Status::FromErrno("writing " + path);
}

}  // namespace

Result<std::vector<Transport>> ParseTransports(const std::vector<std::string>& names) {
  std::vector<Transport> transports;
  for (const std::string& name : names) {
    Transport transport;
    if (name == "shm") {
      transport = Transport::kShm;
    } else if (name == "unix") {
      transport = Transport::kUnix;
    } else if (name == "tcp") {
      transport = Transport::kTcp;
    } else {
      return Status(Code::kInvalid, "bench: '" + name + "' is no transport; choose among shm, unix and tcp");
    }
    if (std::find(transports.begin(), transports.end(), transport) == transports.end()) {
      transports.push_back(transport);
    }
  }
  return transports;
}

void BenchCommand::Register(CLI::App& app) {
  parser_ = app.add_subcommand("bench", "Measure native and remote side by side");
  parser_->require_subcommand(1);
  opencl_ = parser_->add_subcommand("opencl", "OpenCL: latency, rates, bandwidth, program builds");
  AddCommon(opencl_);
  opencl_->add_option("--device", device_, "Part of the device's name (default: the first device)");
  opencl_->add_flag("--native-only", native_only_, "Measure this machine's own device only");
  cuda_ = parser_->add_subcommand("cuda", "CUDA: latency, rates, bandwidth, streams, module loads");
  AddCommon(cuda_);
  cuda_->add_option("--device", cuda_device_, "nvidia, soft, or auto: NVIDIA's where there is one")
      ->check(CLI::IsMember({"auto", "nvidia", "soft"}));
}

void BenchCommand::AddCommon(CLI::App* parser) {
  parser->add_option("--server", server_, "Measure this server instead of one started for the run");
  parser->add_option("--transport", transports_, "shm, unix, tcp, or several with commas (default: shm)")
      ->delimiter(',')
      ->excludes("--server");
  parser->add_flag("--quick", quick_, "Be done soon (OpenCL: within 40 seconds with one transport)");
  parser->add_option("--rounds", rounds_, "Interleaved rounds (default: 5; quick: 3)")->check(CLI::Range(1, 1000));
  parser->add_option("--only", only_, "Only rows whose id begins so; several with commas (ids: see --json)")
      ->delimiter(',');
  parser->add_option("--json", json_file_, "Write everything measured to this file");
  parser->add_option("--svg", svg_file_, "Write an image of the results to this file");
  parser->add_option("--markdown", markdown_file_, "Write the tables to this file");
}

bool BenchCommand::Chosen() const { return parser_->parsed(); }

Result<bench::SuiteOptions> BenchCommand::Options() const {
  bench::SuiteOptions options;
  options.worker = layout_.bench_worker;
  options.hawserd = layout_.hawserd;
  options.icd_directory = layout_.icd_directory;
  options.client_library = layout_.client_library;
  options.server = server_.empty() ? "" : ChosenServer(server_);
  options.only = only_;
  options.device = device_;
  options.quick = quick_;
  options.native_only = native_only_;
  options.rounds = rounds_;
  if (options.worker.empty()) {
    return Status(Code::kInvalid, "hawser-bench-opencl is missing; build everything (./hawser build) or install again");
  }
  if (!server_.empty()) {
    auto endpoint = wire::Endpoint::Parse(options.server);
    if (!endpoint.ok()) return endpoint.status();
    options.transports = {endpoint->transport};
  } else if (!transports_.empty()) {
    auto transports = ParseTransports(transports_);
    if (!transports.ok()) return transports.status();
    options.transports = *transports;
  }
  if (native_only_) return options;
  if (Status s = CheckGuestSide(layout_); !s.ok()) return s;
  if (server_.empty() && layout_.hawserd.empty()) {
    return Status(Code::kInvalid, "hawserd is not on this machine; name a running server with --server URI");
  }
  return options;
}

Result<bench::CudaSuiteOptions> BenchCommand::CudaOptions() const {
  bench::CudaSuiteOptions options;
  options.worker = layout_.cuda_bench_worker;
  options.hawserd = layout_.hawserd;
  options.guest_directory = layout_.cuda_guest_directory;
  options.server = server_.empty() ? "" : ChosenServer(server_);
  options.only = only_;
  options.quick = quick_;
  options.rounds = rounds_;
  options.device = cuda_device_;
  // The device file tells whether there is a driver, without loading one.
  if (options.device == "auto") options.device = ::access("/dev/nvidiactl", F_OK) == 0 ? "nvidia" : "soft";
  if (options.device == "soft") options.native_directory = layout_.cuda_soft_directory;
  if (options.worker.empty() || options.guest_directory.empty()) {
    return Status(Code::kInvalid,
                  "hawser-bench-cuda or the guest's libcuda.so.1 is missing; build everything "
                  "(./hawser build) or install again");
  }
  if (options.device == "soft" && options.native_directory.empty()) {
    return Status(Code::kInvalid, "the software device is missing; build everything (./hawser build) or install again");
  }
  if (!server_.empty()) {
    auto endpoint = wire::Endpoint::Parse(options.server);
    if (!endpoint.ok()) return endpoint.status();
    options.transports = {endpoint->transport};
  } else if (layout_.hawserd.empty()) {
    return Status(Code::kInvalid, "hawserd is not on this machine; name a running server with --server URI");
  } else if (!transports_.empty()) {
    auto transports = ParseTransports(transports_);
    if (!transports.ok()) return transports.status();
    options.transports = *transports;
  }
  return options;
}

std::string BenchCommand::ReproducingCommand() const {
  const bool cuda = cuda_->parsed();
  std::string command = cuda ? "hawser bench cuda" : "hawser bench opencl";
  if (cuda && cuda_device_ != "auto") command += " --device " + cuda_device_;
  if (!server_.empty()) command += " --server " + server_;
  if (!transports_.empty()) {
    command += " --transport ";
    for (size_t i = 0; i < transports_.size(); ++i) command += (i > 0 ? "," : "") + transports_[i];
  }
  if (quick_) command += " --quick";
  if (rounds_ > 0) command += " --rounds " + std::to_string(rounds_);
  if (!only_.empty()) {
    command += " --only ";
    for (size_t i = 0; i < only_.size(); ++i) command += (i > 0 ? "," : "") + only_[i];
  }
  if (!device_.empty()) command += " --device '" + device_ + "'";
  if (native_only_) command += " --native-only";
  return command;
}

int BenchCommand::Run() {
  const auto progress = [](const std::string& line) { std::cerr << "bench: " << line << std::endl; };
  Result<bench::OpenClResults> results = Status();
  if (cuda_->parsed()) {
    auto options = CudaOptions();
    if (!options.ok()) {
      Complain(options.status().text());
      return 1;
    }
    results = bench::RunCudaSuite(*options, progress);
  } else {
    auto options = Options();
    if (!options.ok()) {
      Complain(options.status().text());
      return 1;
    }
    results = bench::RunOpenClSuite(*options, progress);
  }
  if (!results.ok()) {
    Complain("bench: " + results.status().text());
    return 1;
  }
  results->hawser_version = HAWSER_VERSION;
  results->command = ReproducingCommand();
  std::cout << bench::ReportText(*results);
  Status written = Status::Ok();
  if (!json_file_.empty()) written = WriteFile(json_file_, bench::ReportJson(*results).dump(2) + "\n");
  if (written.ok() && !svg_file_.empty()) written = WriteFile(svg_file_, bench::ChartSvg(*results));
  if (written.ok() && !markdown_file_.empty()) written = WriteFile(markdown_file_, bench::ReportMarkdown(*results));
  if (!written.ok()) {
    Complain("bench: " + written.text());
    return 1;
  }
  return 0;
}

}  // namespace hawser::tools
