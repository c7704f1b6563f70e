// SPDX-License-Identifier: Apache-2.0
// From a hostile module image to PTX: choosing and unpacking stay within the input and within what the input can be
// worth.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "softcuda/driver/image_chooser.h"
#include "softcuda/driver/inflate.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto copy = std::make_unique<std::byte[]>(size);  // Its end is watched.
  if (size != 0) std::memcpy(copy.get(), data, size);
  hawser::soft::ChosenImage chosen;
  std::string why;
  const CUresult result = hawser::soft::ChooseImage(std::span<const std::byte>(copy.get(), size), 90, &chosen, &why);
  if (result == CUDA_SUCCESS) {
    if (chosen.texts.empty()) std::abort();
    for (const std::string& text : chosen.texts) {
      if (text.size() > hawser::soft::kMaxUnpackedBytes || text.size() > 2048 * size) std::abort();
    }
  } else if (why.empty()) {
    std::abort();
  }
  return 0;
}
