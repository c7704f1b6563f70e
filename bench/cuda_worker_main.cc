// SPDX-License-Identifier: Apache-2.0
// One side of `hawser bench cuda`: measures whatever libcuda.so.1 the environment gives it. Speaks as
// hawser-bench-opencl does: one JSON request per line on stdin, one JSON answer per line on the original stdout.
#include <unistd.h>

#include <cstdio>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "bench/cuda_measures.h"

namespace hawser::bench {
namespace {

using nlohmann::json;
using wire::Code;
using wire::Result;
using wire::Status;

class CudaWorker {
 public:
  Result<json> Answer(const json& request) {
    const auto measure = request.value("measure", std::string());
    if (measure == "open") {
      auto measures = CudaMeasures::Create();
      if (!measures.ok()) return measures.status();
      measures_ = std::move(*measures);
      const int version = measures_->driver_version();
      return json{{"name", measures_->device()},
                  {"version", "CUDA " + std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10)}};
    }
    if (measures_ == nullptr) return Status(Code::kInvalid, "the first request must be 'open'");
    auto values = Measure(measure, request);
    if (!values.ok()) return values.status();
    return json(*values);
  }

 private:
  Result<CudaValues> Measure(const std::string& measure, const json& request) {
    const int iterations = request.value("iterations", 1);
    if (measure == "launch_sync") return measures_->LaunchSync(iterations);
    if (measure == "launch_burst") return measures_->LaunchBurst(iterations);
    if (measure == "events") return measures_->Events(iterations);
    if (measure == "read_small") return measures_->ReadSmall(iterations);
    if (measure == "step") return measures_->Step(iterations);
    if (measure == "allocate_free") return measures_->AllocateFree(iterations);
    if (measure == "module_load") return measures_->ModuleLoad(request.value("constant", 0u));
    if (measure == "streams") return measures_->Streams(request.value("streams", 1), iterations);
    if (measure == "bandwidth") {
      return measures_->Bandwidth(request.value("direction", "") == "h2d", request.value("memory", "") == "pinned",
                                  request.value("size", size_t{4096}), iterations);
    }
    return Status(Code::kInvalid, "unknown measure '" + measure + "'");
  }

  std::unique_ptr<CudaMeasures> measures_;
};

int Serve(FILE* answers) {
  CudaWorker worker;
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
    std::perror("hawser-bench-cuda: dup");
    return 1;
  }
  FILE* answers = fdopen(original, "w");
  if (answers == nullptr) {
    std::perror("hawser-bench-cuda: fdopen");
    return 1;
  }
  return hawser::bench::Serve(answers);
}
