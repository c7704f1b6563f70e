// SPDX-License-Identifier: Apache-2.0
// rewrite_kernels PTX FOLDER: writes the copies that a server would make of a PTX file's kernels to FOLDER, as N.ptx,
// and prints a line for each kernel: "N offset NAME", "N row NAME", "N guard NAME", or "- NAME: why it runs whole".
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>

#include "server/backends/cuda/slicing/guard.h"
#include "server/backends/cuda/slicing/scan.h"

int main(int argc, char** argv) {
  using namespace hawser::server::cuda_slicing;  // NOLINT(google-build-using-namespace)
  if (argc != 3) return 2;
  std::ifstream file(argv[1], std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  auto module = hawser::ptx::Parse(text);
  if (!module.ok()) {
    std::printf("%s: %s\n", argv[1], module.status().text().c_str());
    return 1;
  }
  int number = 0;
  for (const hawser::ptx::Function& kernel : (*module)->functions) {
    if (!kernel.entry) continue;
    const char* const name = kernel.name.c_str();
    if (const std::string why = WhyWhole(**module, kernel.name); !why.empty()) {
      std::printf("- %s: %s\n", name, why.c_str());
      continue;
    }
    // Whatever may have an offset may be guarded, too.
    for (const Way way : {Way::kGuard, Way::kOffset, Way::kRow}) {
      if (way != Way::kGuard && !MayOffset(**module, kernel.name)) continue;
      auto copy = Rewrite(**module, kernel.name, way);
      if (!copy.ok()) {
        std::printf("- %s: %s\n", name, copy.status().text().c_str());
        break;
      }
      std::ofstream(std::string(argv[2]) + "/" + std::to_string(++number) + ".ptx", std::ios::binary) << copy->text;
      std::printf("%d %s %s\n", number, way == Way::kGuard ? "guard" : way == Way::kOffset ? "offset" : "row", name);
    }
  }
  return 0;
}
