// SPDX-License-Identifier: Apache-2.0
// One side of `hawser bench opencl`: measures whatever OpenCL device the loader gives it. The same
// program runs natively and as a guest; only its environment differs.
//
// Reads one JSON request per line from stdin, writes one JSON answer per line to the original
// stdout (kernels and libraries that print get stderr instead). Ends at the end of stdin.
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "bench/bandwidth_measures.h"
#include "bench/build_measure.h"
#include "bench/latency_measures.h"
#include "bench/opencl_device.h"
#include "bench/wild_kernel.h"
#include "wire/status.h"

namespace hawser::bench {
namespace {

using nlohmann::json;
using wire::Code;
using wire::Result;
using wire::Status;

class OpenClWorker {
 public:
  Result<json> Answer(const json& request) {
    const auto measure = request.value("measure", std::string());
    if (measure == "open") return Open(request.value("device", std::string()));
    if (device_ == nullptr) return Status(Code::kInvalid, "the first request must be 'open'");
    auto values = Measure(measure, request);
    if (!values.ok()) return values.status();
    return json(*values);
  }

 private:
  Result<json> Open(const std::string& filter) {
    auto device = OpenClDevice::Open(filter);
    if (!device.ok()) return device.status();
    device_ = std::move(*device);
    const DeviceFacts& facts = device_->facts();
    return json{{"platform", facts.platform},
                {"name", facts.name},
                {"version", facts.version},
                {"driver", facts.driver},
                {"hawser", GuestCounters(device_->platform()).available()}};
  }

  Result<Values> Measure(const std::string& measure, const json& request) {
    const int iterations = request.value("iterations", 1);
    if (measure == "prepare_wild") {
      const rlimit no_core{0, 0};  // Natively this process dies of it.
      setrlimit(RLIMIT_CORE, &no_core);
      auto created = WildKernel::Create(*device_);
      if (!created.ok()) return created.status();
      wild_ = std::move(*created);
      return Values{};
    }
    if (measure == "wild" && wild_ != nullptr) return wild_->Run();
    if (measure == "build") return MeasureBuild(*device_, request.value("constant", 0u));
    if (measure == "bandwidth") {
      if (bandwidth_ == nullptr) {
        auto created = BandwidthMeasures::Create(*device_);
        if (!created.ok()) return created.status();
        bandwidth_ = std::move(*created);
      }
      return bandwidth_->Run(
          request.value("direction", "") == "d2h" ? Direction::kDeviceToHost : Direction::kHostToDevice,
          request.value("memory", "") == "mapped" ? HostMemory::kMapped : HostMemory::kPageable,
          request.value("size", size_t{0}), iterations);
    }
    if (latency_ == nullptr) {
      auto created = LatencyMeasures::Create(*device_);
      if (!created.ok()) return created.status();
      latency_ = std::move(*created);
    }
    if (measure == "launch_finish") return latency_->LaunchFinish(iterations);
    if (measure == "longest_finish") {
      return latency_->LongestFinish(std::chrono::milliseconds(request.value("milliseconds", 100)));
    }
    if (measure == "launch_burst") return latency_->LaunchBurst(iterations);
    if (measure == "set_arguments") return latency_->SetArguments(iterations);
    if (measure == "read_small") return latency_->ReadSmall(iterations);
    if (measure == "step") return latency_->Step(iterations);
    if (measure == "write_burst") return latency_->WriteBurst(iterations);
    if (measure == "create_release") return latency_->CreateRelease(iterations);
    return Status(Code::kInvalid, "unknown measure '" + measure + "'");
  }

  std::unique_ptr<OpenClDevice> device_;
  std::unique_ptr<LatencyMeasures> latency_;
  std::unique_ptr<BandwidthMeasures> bandwidth_;
  std::unique_ptr<WildKernel> wild_;
};

int Serve(FILE* answers) {
  OpenClWorker worker;
  for (std::string line; std::getline(std::cin, line);) {
    const json request = json::parse(line, nullptr, /*allow_exceptions=*/false);
    Result<json> result = request.is_object() ? worker.Answer(request)
                                              : Result<json>(Status(Code::kInvalid, "a request is a JSON object"));
    const json answer = result.ok() ? json{{"values", *result}} : json{{"error", result.status().text()}};
    const std::string text = answer.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
    if (std::fputs(text.c_str(), answers) < 0 || std::fflush(answers) != 0) return 1;
  }
  return 0;
}

}  // namespace
}  // namespace hawser::bench

int main() {
  const int original = dup(STDOUT_FILENO);
  if (original < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0) {
    std::perror("hawser-bench-opencl: dup");
    return 1;
  }
  FILE* answers = fdopen(original, "w");
  if (answers == nullptr) {
    std::perror("hawser-bench-opencl: fdopen");
    return 1;
  }
  return hawser::bench::Serve(answers);
}
