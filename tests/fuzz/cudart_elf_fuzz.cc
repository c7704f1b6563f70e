// SPDX-License-Identifier: Apache-2.0
// Arbitrary files as the ELF reader of redirection sees them: it must neither crash nor find entries outside of sense.
#include <cstdint>
#include <cstdlib>

#include "interposer/cudart/redirect/runtime_finder.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hawser::redirect;
  const MemorySource source(data, size);
  ElfReader reader(source);
  if (!reader.Open()) return 0;
  const EmbeddedRuntime runtime = FindRuntime(reader);
  if (runtime.major != 0 && runtime.major != 12 && runtime.major != 13) std::abort();
  uint64_t last = 0;
  for (const RuntimeEntry& entry : runtime.entries) {
    if (!IsRuntimeName(entry.name, runtime.major)) std::abort();
    if (&entry != &runtime.entries.front() && entry.value <= last) std::abort();
    last = entry.value;
  }
  return 0;
}
