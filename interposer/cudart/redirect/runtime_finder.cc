// SPDX-License-Identifier: Apache-2.0
#include "interposer/cudart/redirect/runtime_finder.h"

#include <algorithm>
#include <iterator>

namespace hawser::redirect {
namespace {

constexpr std::string_view kNames12[] = {
#include "interposer/cudart/names12.inc"
};
constexpr std::string_view kNames13[] = {
#include "interposer/cudart/names13.inc"
};
static_assert(std::is_sorted(std::begin(kNames12), std::end(kNames12)));
static_assert(std::is_sorted(std::begin(kNames13), std::end(kNames13)));

// What every program with device code calls.
constexpr std::string_view kRegister = "__cudaRegisterFatBinary";
// What a runtime has even when the program around it is host code alone.
constexpr std::string_view kAlways = "cudaGetLastError";
// Dropped in CUDA 13.
constexpr std::string_view kOnlyBefore13 = "cudaThreadExit";
// Hidden in the static runtime, exported by a shared one.
constexpr std::string_view kExportedByShared = "cudaMalloc";
// Ours is marked by this section (interposer/cudart/runtime.cc).
constexpr std::string_view kOurs = ".hawser_runtime";

bool IsCode(const ElfSymbol& symbol) {
  return symbol.defined && (symbol.type == STT_FUNC || symbol.type == STT_GNU_IFUNC) && !symbol.name.empty();
}

bool LooksLikeRuntime(std::string_view name) { return name.starts_with("cuda") || name.starts_with("__cuda"); }

void Collect(const ElfSymbols& symbols, EmbeddedRuntime* found) {
  std::vector<const ElfSymbol*> code;
  for (const ElfSymbol& symbol : symbols.symbols) {
    if (IsCode(symbol)) code.push_back(&symbol);
  }
  std::sort(code.begin(), code.end(), [](const ElfSymbol* a, const ElfSymbol* b) { return a->value < b->value; });
  std::vector<const ElfSymbol*> others;
  for (size_t i = 0; i < code.size(); ++i) {
    const ElfSymbol& symbol = *code[i];
    if (!LooksLikeRuntime(symbol.name)) continue;
    if (!IsRuntimeName(symbol.name, found->major)) {
      others.push_back(&symbol);
      continue;
    }
    if (!found->entries.empty() && found->entries.back().value == symbol.value) continue;  // Another name for it.
    size_t next = i + 1;
    while (next < code.size() && code[next]->value == symbol.value) ++next;
    // Functions begin at multiples of 16, so a short one has padding behind it.
    uint64_t room = (std::min<uint64_t>(symbol.size, UINT32_MAX) + 15) & ~uint64_t{15};
    if (next < code.size()) room = std::min(room, code[next]->value - symbol.value);
    found->entries.push_back({std::string(symbol.name), symbol.value, static_cast<size_t>(room)});
  }
  // The runtime's functions lie together; the program's own that are called cudaSomething lie elsewhere.
  for (const ElfSymbol* symbol : others) {
    const bool inside = !found->entries.empty() && symbol->value > found->entries.front().value &&
                        symbol->value < found->entries.back().value;
    if (inside) found->unknown.emplace_back(symbol->name);
  }
}

}  // namespace

bool IsRuntimeName(std::string_view name, int major) {
  if (major == 12) return std::binary_search(std::begin(kNames12), std::end(kNames12), name);
  if (major == 13) return std::binary_search(std::begin(kNames13), std::end(kNames13), name);
  return false;
}

EmbeddedRuntime FindRuntime(const ElfReader& file) {
  EmbeddedRuntime found;
  if (file.HasSection(kOurs)) return found;
  // What registers code has this section; an empty .nv_fatbin is in whatever nvcc linked.
  found.device_code = file.HasSection(".nvFatBinSegment");
  bool shared = false;
  ElfSymbols symbols;
  // Nearly every object of nearly every process ends here.
  const bool exports = file.NamesContain(SHT_DYNSYM, kExportedByShared);
  if (!found.device_code && !exports && !file.NamesContain(SHT_SYMTAB, kAlways)) return found;
  if (file.ReadSymbols(SHT_DYNSYM, &symbols)) {
    for (const ElfSymbol& symbol : symbols.symbols) {
      found.imports_runtime |= !symbol.defined && (symbol.name == kRegister || symbol.name == kAlways);
      shared |= IsCode(symbol) && symbol.name == kExportedByShared;
    }
  }
  // A shared runtime says its functions to the loader; those of a static one are in the table for debuggers.
  if (!shared && !file.ReadSymbols(SHT_SYMTAB, &symbols)) return found;
  bool has_runtime = false;
  bool before_13 = false;
  for (const ElfSymbol& symbol : symbols.symbols) {
    if (!IsCode(symbol)) continue;
    has_runtime |= symbol.name == kAlways;
    before_13 |= symbol.name == kOnlyBefore13;
  }
  if (!has_runtime) return found;
  found.major = before_13 ? 12 : 13;
  Collect(symbols, &found);
  return found;
}

}  // namespace hawser::redirect
