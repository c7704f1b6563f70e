// SPDX-License-Identifier: Apache-2.0
// The PTX text of a module as it was loaded, out of whatever container it came in.
#ifndef HAWSER_SERVER_BACKENDS_CUDA_SLICING_MODULE_TEXT_H_
#define HAWSER_SERVER_BACKENDS_CUDA_SLICING_MODULE_TEXT_H_

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "softcuda/ptx/module.h"
#include "wire/status.h"

namespace hawser::server::cuda_slicing {

/// Text is unpacked and parsed when somebody first asks, which costs nothing to those who never split. It may come
/// after the module: that of machine code is not needed to load it. Thread-safe.
class ModuleText {
 public:
  /// Longer texts are not looked at.
  static constexpr size_t kMostText = size_t{32} << 20;

  using Bytes = std::shared_ptr<const std::vector<std::byte>>;
  /// `image`: PTX text, or with `in_fatbin` one entry of a fatbin (header and payload).
  ModuleText(Bytes image, bool in_fatbin) : in_fatbin_(in_fatbin), here_(image != nullptr), image_(std::move(image)) {}

  /// False while it has not come.
  bool IsHere() const { return here_.load(std::memory_order_acquire); }
  /// It has come. Later ones are not taken.
  void Arrive(Bytes image);
  wire::Result<std::shared_ptr<const ptx::Module>> Parsed();

 private:
  wire::Result<std::string> Text() const;

  const bool in_fatbin_;
  std::atomic<bool> here_;
  std::mutex mutex_;
  Bytes image_;
  wire::Status problem_;
  std::shared_ptr<const ptx::Module> module_;
};

}  // namespace hawser::server::cuda_slicing

#endif  // HAWSER_SERVER_BACKENDS_CUDA_SLICING_MODULE_TEXT_H_
