// SPDX-License-Identifier: Apache-2.0
// `hawser bench cuda` without the hawser command, for the minimal build.
//
//   hawser-gpu-bench BUILD nvidia|soft quick|full shm,unix,tcp
#include <iostream>
#include <sstream>
#include <string>

#include "bench/cuda_suite.h"
#include "bench/report.h"

namespace hawser::bench {
namespace {

int Main(int argc, char** argv) {
  if (argc != 5) {
    std::cerr << "usage: hawser-gpu-bench BUILD nvidia|soft quick|full TRANSPORTS\n";
    return 2;
  }
  const std::string build = argv[1];
  CudaSuiteOptions options;
  options.worker = build + "/bench/hawser-bench-cuda";
  options.hawserd = build + "/server/hawserd";
  options.guest_directory = build + "/guest";
  options.device = argv[2];
  if (options.device == "soft") options.native_directory = build + "/soft";
  options.quick = std::string(argv[3]) == "quick";
  options.transports.clear();
  std::istringstream names(argv[4]);
  for (std::string name; std::getline(names, name, ',');) {
    options.transports.push_back(name == "tcp"    ? wire::Transport::kTcp
                                 : name == "unix" ? wire::Transport::kUnix
                                                  : wire::Transport::kShm);
  }
  auto results = RunCudaSuite(options, [](const std::string& line) { std::cerr << "bench: " << line << std::endl; });
  if (!results.ok()) {
    std::cerr << "bench: " << results.status().text() << "\n";
    return 1;
  }
  results->command = "tests/gpu/run";
  std::cout << ReportText(*results);
  return 0;
}

}  // namespace
}  // namespace hawser::bench

int main(int argc, char** argv) { return hawser::bench::Main(argc, argv); }
