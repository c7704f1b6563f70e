// SPDX-License-Identifier: Apache-2.0
#include "interposer/cuda/image_offer.h"

#include <cstring>

#include "interposer/core/log.h"
#include "proto/facts/fatbin.h"
#include "proto/facts/host_object.h"
#include "wire/sha256.h"

namespace hawser::cu {
namespace {

constexpr uint32_t kFatbinEntry = 1;
constexpr uint32_t kPlain = 2;
constexpr uint32_t kPtx = 1;
constexpr uint32_t kElf = 2;
/// Groups of parts that a linker left, behind those of a wrapper's translation units.
constexpr uint32_t kFirstPart = fatbin::kMaxParts + 1;

CUresult Invalid(const std::string& why) {
  guest::Log(guest::LogLevel::kError, "cannot load a module: %s", why.c_str());
  return CUDA_ERROR_INVALID_IMAGE;
}

template <typename T>
T Load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof(value));
  return value;
}

}  // namespace

void ImageOffer::Add(uint32_t form, uint32_t kind, uint32_t group, uint32_t sm, uint64_t flags,
                     std::span<const std::byte> bytes) {
  cuda::ImageEntry entry;
  entry.form = form;
  entry.kind = kind;
  entry.group = group;
  entry.sm = sm;
  entry.flags = flags;
  entry.size = bytes.size();
  entry.hash = wire::Sha256Of(bytes);
  entries_.push_back(entry);
  bytes_.push_back(bytes);
}

void ImageOffer::AddPlain(std::span<const std::byte> bytes, uint32_t kind, uint32_t group) {
  Add(kPlain, kind, group, kind == kElf ? fatbin::CubinFacts(bytes).sm : 0, 0, bytes);
}

CUresult ImageOffer::AddFatbinBytes(std::span<const std::byte> bytes, uint32_t group) {
  fatbin::Reader reader(bytes);
  if (const wire::Status status = reader.Start(); !status.ok()) return Invalid(status.text());
  // The reader has checked that what these say fits.
  size_t at = Load<uint16_t>(bytes.data() + 6);
  fatbin::Entry entry;
  for (;;) {
    const wire::Result<bool> more = reader.Next(&entry);
    if (!more.ok()) return Invalid(more.status().text());
    if (!more.value()) return CUDA_SUCCESS;
    const uint64_t size = Load<uint32_t>(bytes.data() + at + 4) + Load<uint64_t>(bytes.data() + at + 8);
    const auto kind = static_cast<uint32_t>(entry.kind);
    if (kind == kPtx || kind == kElf || kind == 8) {
      // Parts of one program are units to be linked; in one group the server would choose one of them.
      const bool part = (entry.flags & fatbin::kFlagLinkedParts) != 0;
      const uint32_t own_group = part ? static_cast<uint32_t>(kFirstPart + entries_.size()) : group;
      Add(kFatbinEntry, kind, own_group, entry.sm, entry.flags, bytes.subspan(at, size));
    }
    at += size;
  }
}

CUresult ImageOffer::AddFatbin(const void* fatbin, uint32_t group) {
  const wire::Result<size_t> size = fatbin::ImageBytes(fatbin);
  if (!size.ok()) return Invalid(size.status().text());
  return AddFatbinBytes({static_cast<const std::byte*>(fatbin), size.value()}, group);
}

CUresult ImageOffer::AddImage(const void* image) {
  switch (fatbin::Identify(image)) {
    case fatbin::ImageKind::kWrapper: {
      const wire::Result<fatbin::Wrapper> wrapper = fatbin::ReadWrapper(image);
      if (!wrapper.ok()) return Invalid(wrapper.status().text());
      if (const CUresult error = AddFatbin(wrapper.value().fatbin, 0); error != CUDA_SUCCESS) return error;
      for (size_t i = 0; i < wrapper.value().part_count; ++i) {
        const CUresult error = AddFatbin(wrapper.value().parts[i], static_cast<uint32_t>(i + 1));
        if (error != CUDA_SUCCESS) return error;
      }
      return CUDA_SUCCESS;
    }
    case fatbin::ImageKind::kFatbin:
      return AddFatbin(image, 0);
    case fatbin::ImageKind::kElf:
    case fatbin::ImageKind::kPtx: {
      const wire::Result<size_t> size = fatbin::ImageBytes(image);
      if (!size.ok()) return Invalid(size.status().text());
      const uint32_t kind = fatbin::Identify(image) == fatbin::ImageKind::kElf ? kElf : kPtx;
      AddPlain({static_cast<const std::byte*>(image), size.value()}, kind, 0);
      return CUDA_SUCCESS;
    }
    default:
      return Invalid("the image is neither a fatbin, nor a cubin, nor PTX");
  }
}

CUresult ImageOffer::AddBytes(std::span<const std::byte> bytes) {
  switch (fatbin::Identify(bytes)) {
    case fatbin::ImageKind::kFatbin:
      return AddFatbinBytes(bytes, 0);
    case fatbin::ImageKind::kElf:
      AddPlain(bytes, kElf, 0);
      return CUDA_SUCCESS;
    case fatbin::ImageKind::kPtx:
      AddPlain(bytes, kPtx, 0);
      return CUDA_SUCCESS;
    default:
      return Invalid("the image is neither a fatbin, nor a cubin, nor PTX");
  }
}

CUresult ImageOffer::AddObject(std::span<const std::byte> file) {
  const auto fatbins = fatbin::FindFatbins(file);
  if (!fatbins.ok()) return Invalid(fatbins.status().text());
  uint32_t group = 0;
  for (const std::span<const std::byte> bytes : fatbins.value()) {
    if (const CUresult error = AddFatbinBytes(bytes, ++group); error != CUDA_SUCCESS) return error;
  }
  return CUDA_SUCCESS;
}

}  // namespace hawser::cu
