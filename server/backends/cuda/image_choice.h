// SPDX-License-Identifier: Apache-2.0
// Which of the images that a program carries a device can run, as a driver chooses.
#ifndef HAWSER_SERVER_BACKENDS_CUDA_IMAGE_CHOICE_H_
#define HAWSER_SERVER_BACKENDS_CUDA_IMAGE_CHOICE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "wire/sha256.h"

namespace hawser::server::cuda_backend {

/// One image that a guest offers.
struct OfferedImage {
  enum class Form : uint8_t { kFatbinEntry = 1, kPlain = 2 };
  enum class Kind : uint8_t { kPtx = 1, kElf = 2, kLto = 8 };
  Form form = Form::kPlain;
  Kind kind = Kind::kPtx;
  uint32_t group = 0;  ///< 0: ready to run. Else the translation unit whose relocatable code it is.
  uint32_t sm = 0;     ///< 90 for sm_90; 0: not known. Of a plain image it is for messages alone.
  uint64_t flags = 0;  ///< Of the fatbin entry.
  uint64_t size = 0;
  wire::Sha256Digest hash{};
};

/// The text of machine code, as it was offered: which image that is.
struct SourceImage {
  uint32_t index = 0;
  uint64_t size = 0;
  wire::Sha256Digest hash{};
};

struct DeviceTarget {
  uint32_t sm = 0;          ///< 10 * major + minor of the compute capability.
  bool runs_cubins = true;  ///< The software device runs PTX alone.
};

/// Indices of the images to load: one that is ready to run, or the relocatable code of each translation unit. Empty:
/// the device can run none of them.
std::vector<size_t> ChooseImages(const std::vector<OfferedImage>& offered, const DeviceTarget& device);

/// The PTX of the same fatbin that is the source of machine code which was chosen alone, for copies of its kernels that
/// run in parts; nothing where there is none that the device can run.
std::optional<size_t> ChooseSource(const std::vector<OfferedImage>& offered, const std::vector<size_t>& chosen,
                                   const DeviceTarget& device);

/// "PTX for sm_75, cubin for sm_90a", for messages.
std::string DescribeImages(const std::vector<OfferedImage>& offered);

}  // namespace hawser::server::cuda_backend

#endif  // HAWSER_SERVER_BACKENDS_CUDA_IMAGE_CHOICE_H_
