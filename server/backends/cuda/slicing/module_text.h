// SPDX-License-Identifier: Apache-2.0
// The PTX text of a module as it was loaded, out of whatever container it came in.
#ifndef HAWSER_SERVER_BACKENDS_CUDA_SLICING_MODULE_TEXT_H_
#define HAWSER_SERVER_BACKENDS_CUDA_SLICING_MODULE_TEXT_H_

#include <cstddef>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "softcuda/ptx/module.h"
#include "wire/status.h"

namespace hawser::server::cuda_slicing {

/// Text is unpacked and parsed when somebody first asks, which costs nothing to those who never split.
/// Thread-safe.
class ModuleText {
 public:
  /// Longer texts are not looked at.
  static constexpr size_t kMostText = size_t{32} << 20;

  using Bytes = std::shared_ptr<const std::vector<std::byte>>;
  /// `image`: PTX text, or with `in_fatbin` one entry of a fatbin (header and payload).
  ModuleText(Bytes image, bool in_fatbin) : image_(std::move(image)), in_fatbin_(in_fatbin) {}

  wire::Result<std::shared_ptr<const ptx::Module>> Parsed();

 private:
  wire::Result<std::string> Text() const;

  const Bytes image_;
  const bool in_fatbin_;
  std::mutex mutex_;
  wire::Status problem_;
  std::shared_ptr<const ptx::Module> module_;
};

}  // namespace hawser::server::cuda_slicing

#endif  // HAWSER_SERVER_BACKENDS_CUDA_SLICING_MODULE_TEXT_H_
