// SPDX-License-Identifier: Apache-2.0
#include "server/backends/cuda/image_choice.h"

#include <map>
#include <optional>

namespace hawser::server::cuda_backend {
namespace {

constexpr uint64_t kExactFlag = 0x100000;   // 'a': this architecture alone.
constexpr uint64_t kFamilyFlag = 0x200000;  // 'f': this family.
constexpr uint32_t kReadyCode = 1u << 20;   // Above all that PTX can have; no device has a number that comes near.

/// How well the image fits; the higher the better. Nothing: not at all.
std::optional<uint32_t> Fitness(const OfferedImage& image, const DeviceTarget& device) {
  if (image.kind == OfferedImage::Kind::kLto) return std::nullopt;
  const bool cubin = image.kind == OfferedImage::Kind::kElf;
  if (cubin && !device.runs_cubins) return std::nullopt;
  const uint32_t form = cubin ? kReadyCode : 0;
  // The driver judges a plain image: what the guest says of it is for messages.
  if (image.form == OfferedImage::Form::kPlain || image.sm == 0) return form;
  if (image.sm > device.sm) return std::nullopt;
  const bool exact = (image.flags & kExactFlag) != 0;
  const bool family = (image.flags & kFamilyFlag) != 0;
  if (exact && image.sm != device.sm) return std::nullopt;
  const bool same_family = image.sm / 10 == device.sm / 10;
  if ((cubin || family) && !same_family) return std::nullopt;
  // Of two for the same architecture a GPU's driver takes the one made for it: the other may be an empty stand-in for
  // older compilers (CUTLASS). The software device takes that for any device, which avoids a GPU's special
  // instructions.
  const uint32_t made_for_it = exact ? 2 : family ? 1 : 0;
  return form + 4 * image.sm + (device.runs_cubins ? made_for_it : 2 - made_for_it);
}

}  // namespace

std::vector<size_t> ChooseImages(const std::vector<OfferedImage>& offered, const DeviceTarget& device) {
  struct Best {
    size_t index = 0;
    uint32_t fitness = 0;
  };
  std::map<uint32_t, std::optional<Best>> groups;
  for (size_t i = 0; i < offered.size(); ++i) {
    std::optional<Best>& best = groups[offered[i].group];
    const std::optional<uint32_t> fitness = Fitness(offered[i], device);
    if (fitness && (!best || *fitness > best->fitness)) best = Best{i, *fitness};
  }
  if (const auto whole = groups.find(0); whole != groups.end() && whole->second) return {whole->second->index};
  std::vector<size_t> parts;
  for (const auto& [group, best] : groups) {
    if (group == 0) continue;
    // nvcc links its own library of device functions along with the units, which has machine code only. Where that does
    // not run, a program that uses none of it does; for others the driver's linker says what is missing.
    if (!best && device.runs_cubins) return {};
    if (best) parts.push_back(best->index);
  }
  return parts;
}

std::optional<size_t> ChooseSource(const std::vector<OfferedImage>& offered, const std::vector<size_t>& chosen,
                                   const DeviceTarget& device) {
  if (chosen.size() != 1 || chosen.front() >= offered.size()) return std::nullopt;
  const OfferedImage& machine_code = offered[chosen.front()];
  if (machine_code.kind != OfferedImage::Kind::kElf || machine_code.form != OfferedImage::Form::kFatbinEntry ||
      machine_code.group != 0) {
    return std::nullopt;
  }
  std::vector<OfferedImage> texts;
  std::vector<size_t> indices;
  for (size_t i = 0; i < offered.size(); ++i) {
    const OfferedImage& image = offered[i];
    if (image.kind != OfferedImage::Kind::kPtx || image.form != OfferedImage::Form::kFatbinEntry || image.group != 0) {
      continue;
    }
    texts.push_back(image);
    indices.push_back(i);
  }
  const std::vector<size_t> best = ChooseImages(texts, device);
  if (best.size() != 1) return std::nullopt;
  return indices[best.front()];
}

std::string DescribeImages(const std::vector<OfferedImage>& offered) {
  constexpr size_t kMost = 12;
  std::string text;
  for (size_t i = 0; i < offered.size() && i < kMost; ++i) {
    const OfferedImage& image = offered[i];
    if (i != 0) text += ", ";
    text += image.kind == OfferedImage::Kind::kPtx   ? "PTX"
            : image.kind == OfferedImage::Kind::kElf ? "cubin"
                                                     : "LTO IR";
    if (image.sm != 0) text += " for sm_" + std::to_string(image.sm);
    if ((image.flags & kExactFlag) != 0) text += "a";
    if ((image.flags & kFamilyFlag) != 0) text += "f";
  }
  if (offered.size() > kMost) text += " and " + std::to_string(offered.size() - kMost) + " more";
  return text.empty() ? "nothing" : text;
}

}  // namespace hawser::server::cuda_backend
