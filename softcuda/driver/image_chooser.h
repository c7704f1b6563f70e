// SPDX-License-Identifier: Apache-2.0
// From the image that a program hands over to the PTX that this device runs.
#ifndef HAWSER_SOFTCUDA_DRIVER_IMAGE_CHOOSER_H_
#define HAWSER_SOFTCUDA_DRIVER_IMAGE_CHOOSER_H_

#include <cuda.h>

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "softcuda/driver/module_store.h"

namespace hawser::soft {

/// Texts of the PTX modules that make up a program: one, or the translation units of a relocatable program.
struct ChosenImage {
  std::vector<std::string> texts;
  std::string description;     ///< What was taken, for logs.
  unsigned max_registers = 0;  ///< That whoever linked it asked for; 0: no wish.
};

/// Chooses as a driver does: the PTX with the highest target that is not above `capability` (90 for 9.0); code for
/// exactly one device or one family ('a', 'f') only where that is this one. CUDA_ERROR_NO_BINARY_FOR_GPU: there is
/// none; `*why` says what was found. CUDA_ERROR_INVALID_IMAGE: not an image.
CUresult ChooseImage(const void* image, uint32_t capability, ChosenImage* chosen, std::string* why);
/// The same for a fatbin or PTX text within bounds.
CUresult ChooseImage(std::span<const std::byte> image, uint32_t capability, ChosenImage* chosen, std::string* why);

/// The same for an object file or an archive: of each fatbin that it holds, what fits. CUDA_ERROR_NO_BINARY_FOR_GPU:
/// nothing does.
CUresult ChooseFromObject(std::span<const std::byte> file, uint32_t capability, ChosenImage* chosen, std::string* why);

/// Packs linked PTX texts into a fatbin, so that cuLinkComplete has an image to give that states its size;
/// ChooseImage() takes all of them. The wish for registers travels as the entries' option.
std::vector<std::byte> PackLinked(std::span<const std::string> texts, uint32_t capability, unsigned max_registers);

/// Parses the texts. CUDA_ERROR_INVALID_PTX or CUDA_ERROR_UNSUPPORTED_PTX_VERSION, with the line in `*why`.
CUresult ParseUnits(const ChosenImage& chosen, Units* units, std::string* why);

}  // namespace hawser::soft

#endif  // HAWSER_SOFTCUDA_DRIVER_IMAGE_CHOOSER_H_
