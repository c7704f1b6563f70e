// SPDX-License-Identifier: Apache-2.0
// The file with the speeds of kernels: either all of it is taken, or nothing.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

#include "scheduler/core/kernel_history.h"
#include "wire/sha256.h"

using hawser::scheduler::KernelHistory;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr size_t kDigest = 16;
  std::string file(reinterpret_cast<const char*>(data), size);
  for (const bool sealed : {false, true}) {
    if (sealed && file.size() >= kDigest) {
      // The digest made right, so that the input gets further.
      const auto digest =
          hawser::wire::Sha256Of(hawser::wire::AsBytes(std::string_view(file).substr(0, file.size() - kDigest)));
      std::memcpy(file.data() + file.size() - kDigest, digest.data(), kDigest);
    }
    KernelHistory history(8);
    const bool good = history.Decode(hawser::wire::AsBytes(file)).ok();
    if ((!good && history.size() != 0) || history.size() > 8) std::abort();
    KernelHistory again(8);
    if (!again.Decode(hawser::wire::AsBytes(history.Encode())).ok() || again.size() != history.size()) std::abort();
  }
  return 0;
}
