// SPDX-License-Identifier: Apache-2.0
#include "softcuda/driver/image_chooser.h"

#include <elf.h>

#include <charconv>
#include <cstring>
#include <optional>

#include "proto/facts/fatbin.h"
#include "proto/facts/host_object.h"
#include "softcuda/driver/inflate.h"

namespace hawser::soft {
namespace {

using fatbin::Entry;
using fatbin::EntryKind;
using fatbin::ImageKind;
using fatbin::Target;

constexpr size_t kMostListed = 8;
constexpr std::string_view kRegisterOption = " -maxrregcount=";

/// The number behind kRegisterOption; 0: there is none.
unsigned RegisterWish(std::string_view options) {
  const size_t at = options.find(kRegisterOption);
  unsigned wish = 0;
  if (at == std::string_view::npos) return 0;
  const std::string_view number = options.substr(at + kRegisterOption.size());
  (void)std::from_chars(number.data(), number.data() + number.size(), wish);
  return wish;
}

/// True when this device can run code for that target.
bool Runs(const Entry& entry, uint32_t capability) {
  if (entry.kind != EntryKind::kPtx || entry.sm > capability) return false;
  switch (entry.target) {
    case Target::kPlain:
      return true;
    case Target::kFamily:
      return entry.sm / 10 == capability / 10;
    case Target::kExact:
      return entry.sm == capability;
  }
  return false;
}

/// True when `a` is to be preferred: newer, then the one for any device, because that one avoids a device's special
/// instructions.
bool Better(const Entry& a, const Entry& b) {
  if (a.sm != b.sm) return a.sm > b.sm;
  return a.target == Target::kPlain && b.target != Target::kPlain;
}

CUresult ChooseFromFatbin(std::span<const std::byte> bytes, uint32_t capability, ChosenImage* chosen,
                          std::string* why) {
  fatbin::Reader reader(bytes);
  if (const wire::Status status = reader.Start(); !status.ok()) {
    *why = status.text();
    return CUDA_ERROR_INVALID_IMAGE;
  }
  std::optional<Entry> best;
  std::vector<Entry> linked;
  std::string found;
  size_t count = 0;
  for (;;) {
    Entry entry;
    const wire::Result<bool> more = reader.Next(&entry);
    if (!more.ok()) {
      *why = more.status().text();
      return CUDA_ERROR_INVALID_IMAGE;
    }
    if (!more.value()) break;
    if (++count <= kMostListed) found += (count == 1 ? "" : ", ") + entry.Describe();
    if (!Runs(entry, capability)) continue;
    if ((entry.flags & fatbin::kFlagLinkedParts) != 0) linked.push_back(entry);
    if (!best.has_value() || Better(entry, *best)) best = entry;
  }
  if (!best.has_value()) {
    if (count > kMostListed) found += " and " + std::to_string(count - kMostListed) + " more";
    *why = "the image has no PTX for compute capability " + std::to_string(capability / 10) + "." +
           std::to_string(capability % 10) + " or below; it has " + (count == 0 ? "nothing" : found) +
           ". This device runs PTX only: build with -gencode arch=compute_75,code=compute_75, or raise HAWSER_SOFT_CC";
    return CUDA_ERROR_NO_BINARY_FOR_GPU;
  }
  if (linked.empty()) linked.push_back(*best);
  for (const Entry& entry : linked) {
    wire::Result<std::string> text = Unpack(entry);
    if (!text.ok()) {
      *why = text.status().text();
      return CUDA_ERROR_INVALID_IMAGE;
    }
    chosen->texts.push_back(std::move(text.value()));
    chosen->max_registers = RegisterWish(entry.options);
  }
  if (!chosen->description.empty()) chosen->description += ", ";
  chosen->description += best->Describe();
  return CUDA_SUCCESS;
}

CUresult NotAnImage(std::string* why) {
  *why = "the image is neither a fatbin, nor a cubin, nor PTX";
  return CUDA_ERROR_INVALID_IMAGE;
}

CUresult OnlyCubin(std::span<const std::byte> image, std::string* why) {
  *why = "the image is a " + fatbin::CubinFacts(image).Describe() +
         " (machine code of one GPU); this device runs PTX only: build with -gencode arch=compute_75,code=compute_75";
  return CUDA_ERROR_NO_BINARY_FOR_GPU;
}

}  // namespace

CUresult ChooseImage(std::span<const std::byte> image, uint32_t capability, ChosenImage* chosen, std::string* why) {
  switch (fatbin::Identify(image)) {
    case ImageKind::kFatbin:
      return ChooseFromFatbin(image, capability, chosen, why);
    case ImageKind::kPtx: {
      const auto* const text = reinterpret_cast<const char*>(image.data());
      chosen->texts.emplace_back(text, ::strnlen(text, image.size()));
      chosen->description = "PTX text";
      return CUDA_SUCCESS;
    }
    case ImageKind::kElf:
      return OnlyCubin(image, why);
    case ImageKind::kWrapper:
    case ImageKind::kUnknown:
      break;
  }
  return NotAnImage(why);
}

CUresult ChooseImage(const void* image, uint32_t capability, ChosenImage* chosen, std::string* why) {
  const ImageKind kind = fatbin::Identify(image);
  // Of unknown length; an ELF file has its whole head.
  if (kind == ImageKind::kElf) return OnlyCubin({static_cast<const std::byte*>(image), sizeof(Elf64_Ehdr)}, why);
  if (kind != ImageKind::kWrapper) {
    const wire::Result<size_t> bytes = fatbin::ImageBytes(image);
    if (!bytes.ok()) {
      *why = bytes.status().text();
      return CUDA_ERROR_INVALID_IMAGE;
    }
    return ChooseImage(std::span(static_cast<const std::byte*>(image), bytes.value()), capability, chosen, why);
  }
  const wire::Result<fatbin::Wrapper> wrapper = fatbin::ReadWrapper(image);
  if (!wrapper.ok()) {
    *why = wrapper.status().text();
    return CUDA_ERROR_INVALID_IMAGE;
  }
  if (wrapper.value().part_count == 0) {
    if (wrapper.value().fatbin == nullptr || fatbin::Identify(wrapper.value().fatbin) == ImageKind::kWrapper) {
      return NotAnImage(why);
    }
    return ChooseImage(wrapper.value().fatbin, capability, chosen, why);
  }
  for (size_t i = 0; i < wrapper.value().part_count; ++i) {
    const void* const part = wrapper.value().parts[i];
    if (fatbin::Identify(part) == ImageKind::kWrapper) return NotAnImage(why);
    const CUresult result = ChooseImage(part, capability, chosen, why);
    // nvcc links its own library of device functions along, which has machine code only. A program that uses none of it
    // runs; for others the linker says what is missing.
    if (result != CUDA_SUCCESS && result != CUDA_ERROR_NO_BINARY_FOR_GPU) return result;
  }
  return chosen->texts.empty() ? CUDA_ERROR_NO_BINARY_FOR_GPU : CUDA_SUCCESS;
}

CUresult ChooseFromObject(std::span<const std::byte> file, uint32_t capability, ChosenImage* chosen, std::string* why) {
  const auto fatbins = fatbin::FindFatbins(file);
  if (!fatbins.ok()) {
    *why = fatbins.status().text();
    return CUDA_ERROR_INVALID_IMAGE;
  }
  for (const std::span<const std::byte> bytes : fatbins.value()) {
    const CUresult result = ChooseFromFatbin(bytes, capability, chosen, why);
    if (result != CUDA_SUCCESS && result != CUDA_ERROR_NO_BINARY_FOR_GPU) return result;
  }
  return chosen->texts.empty() ? CUDA_ERROR_NO_BINARY_FOR_GPU : CUDA_SUCCESS;
}

std::vector<std::byte> PackLinked(std::span<const std::string> texts, uint32_t capability, unsigned max_registers) {
  constexpr size_t kHeader = 16;
  constexpr size_t kFields = 64;  // Of an entry, before its options: their place and length, and the text.
  const std::string options =
      max_registers != 0 ? std::string(kRegisterOption) + std::to_string(max_registers) + " " : std::string();
  const size_t entry_bytes = kFields + (options.empty() ? 0 : (8 + options.size() + 1 + 7) / 8 * 8);
  std::vector<std::byte> out(kHeader);
  const auto put = [&out](size_t at, const auto& value) { std::memcpy(out.data() + at, &value, sizeof(value)); };
  for (const std::string& text : texts) {
    const size_t at = out.size();
    const uint64_t stored = (text.size() + 1 + 7) / 8 * 8;
    out.resize(at + entry_bytes + stored);
    put(at + 0x00, static_cast<uint16_t>(EntryKind::kPtx));
    put(at + 0x02, uint16_t{0x0101});
    put(at + 0x04, static_cast<uint32_t>(entry_bytes));
    put(at + 0x08, stored);
    put(at + 0x1c, capability);
    put(at + 0x28, uint64_t{0x11} | fatbin::kFlagLinkedParts);
    if (!options.empty()) {
      put(at + 0x14, static_cast<uint32_t>(kFields));
      put(at + kFields, static_cast<uint32_t>(kFields + 8));
      put(at + kFields + 4, static_cast<uint32_t>(options.size()));
      std::memcpy(out.data() + at + kFields + 8, options.data(), options.size());
    }
    std::memcpy(out.data() + at + entry_bytes, text.data(), text.size());
  }
  put(0, uint32_t{0xba55ed50});
  put(4, uint16_t{1});
  put(6, static_cast<uint16_t>(kHeader));
  put(8, static_cast<uint64_t>(out.size() - kHeader));
  return out;
}

CUresult ParseUnits(const ChosenImage& chosen, Units* units, std::string* why) {
  for (const std::string& text : chosen.texts) {
    auto parsed = ptx::Parse(text);
    if (!parsed.ok()) {
      *why = parsed.status().text();
      return CUDA_ERROR_INVALID_PTX;
    }
    units->push_back(parsed.value());
  }
  units->max_registers = chosen.max_registers;
  return CUDA_SUCCESS;
}

}  // namespace hawser::soft
