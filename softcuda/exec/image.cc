// SPDX-License-Identifier: Apache-2.0
#include "softcuda/exec/image.h"

#include <algorithm>
#include <cstring>
#include <iterator>

namespace hawser::exec {
namespace {

void Fill(void* lanes, uint64_t bits, uint32_t width) {
  for (uint32_t k = 0; k < kLanes; ++k) std::memcpy(static_cast<char*>(lanes) + size_t{k} * width, &bits, width);
}

}  // namespace

Image::Lanes& Image::NewLanes() {
  if (pools_.empty() || pool_used_ == kPoolLanes) {
    pools_.emplace_back(kPoolLanes);
    pool_used_ = 0;
  }
  return pools_.back()[pool_used_++];
}

const void* Image::Constant(uint64_t bits, uint32_t width) {
  const auto [it, fresh] = constants_.emplace(std::make_pair(bits, width), nullptr);
  if (fresh) {
    Lanes& lanes = NewLanes();
    Fill(lanes.words, bits, width);
    it->second = lanes.words;
  }
  return it->second;
}

const void* Image::AddressConstant(uint32_t symbol, int64_t addend, uint32_t width) {
  Lanes& lanes = NewLanes();
  Fill(lanes.words, 0, 8);
  fixups_.push_back({lanes.words, width, symbol, addend});
  return lanes.words;
}

void Image::Resolve(const std::vector<uint64_t>& addresses) {
  for (const ConstantFixup& fixup : fixups_) {
    Fill(fixup.lanes, addresses[fixup.symbol] + static_cast<uint64_t>(fixup.addend), fixup.width);
  }
}

// A function pointer is an address that no memory of the device has: that of the function's descriptor.
uint64_t Image::PointerTo(const Code& code) const {
  if (descriptors_ == nullptr) descriptors_ = std::make_unique<uint64_t[]>(codes.size() + 1);
  return reinterpret_cast<uint64_t>(&descriptors_[code.index]);
}

const Code* Image::CodeAt(uint64_t pointer) const {
  if (descriptors_ == nullptr) return nullptr;
  const uint64_t offset = pointer - reinterpret_cast<uint64_t>(descriptors_.get());
  if (offset % sizeof(uint64_t) != 0 || offset / sizeof(uint64_t) >= codes.size()) return nullptr;
  return &codes[offset / sizeof(uint64_t)];
}

const Code* Image::FunctionAt(uint64_t pointer) const {
  const Code* const code = CodeAt(pointer);
  return code == nullptr || code->entry ? nullptr : code;
}

int Image::KernelAt(uint64_t pointer) const {
  const Code* const code = CodeAt(pointer);
  if (code == nullptr || !code->entry) return -1;
  const auto found = std::find(kernel_codes.begin(), kernel_codes.end(), static_cast<int>(code->index));
  return found == kernel_codes.end() ? -1 : static_cast<int>(found - kernel_codes.begin());
}

}  // namespace hawser::exec
