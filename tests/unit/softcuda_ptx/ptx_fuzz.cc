// SPDX-License-Identifier: Apache-2.0
// Arbitrary text through the parser and the linker, which decodes every instruction. What links is also bound.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "softcuda/exec/program.h"
#include "softcuda/ptx/module.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using hawser::exec::Program;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  auto module = hawser::ptx::Parse(text);
  if (!module.ok()) {
    if (module.status().text().empty()) __builtin_trap();
    return 0;
  }
  const std::vector<std::shared_ptr<const hawser::ptx::Module>> modules{*module};
  auto program = Program::Link(modules);
  if (!program.ok()) return 0;
  uint64_t total = 0;
  for (const auto& symbol : (*program)->symbols()) total += symbol.size + symbol.alignment;
  if (total > (1u << 20)) return 0;
  std::vector<uint64_t> memory((total + 65536) / 8 + 1);
  auto at = reinterpret_cast<uint64_t>(memory.data());
  std::vector<uint64_t> places;
  for (const auto& symbol : (*program)->symbols()) {
    at = (at + symbol.alignment - 1) / symbol.alignment * symbol.alignment;
    places.push_back(at);
    at += symbol.size;
  }
  if (at <= reinterpret_cast<uint64_t>(memory.data() + memory.size())) (void)(*program)->Bind(places);
  return 0;
}
