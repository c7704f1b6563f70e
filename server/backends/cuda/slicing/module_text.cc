// SPDX-License-Identifier: Apache-2.0
#include "server/backends/cuda/slicing/module_text.h"

#include <cstring>

#include "proto/facts/fatbin.h"
#include "softcuda/driver/inflate.h"

namespace hawser::server::cuda_slicing {

using wire::Code;
using wire::Result;
using wire::Status;

Result<std::string> ModuleText::Text() const {
  const std::vector<std::byte>& image = *image_;
  if (!in_fatbin_) {
    if (image.size() > kMostText) return Status(Code::kExhausted, "its module is too large");
    return std::string(reinterpret_cast<const char*>(image.data()), image.size());
  }
  // An entry alone: a head makes a fatbin of it.
  struct Head {
    uint32_t magic = 0xba55ed50;
    uint16_t version = 1;
    uint16_t header_size = 16;
    uint64_t size = 0;
  } head;
  head.size = image.size();
  std::vector<std::byte> whole(sizeof(head) + image.size());
  std::memcpy(whole.data(), &head, sizeof(head));
  std::memcpy(whole.data() + sizeof(head), image.data(), image.size());
  fatbin::Reader reader(whole);
  if (const Status status = reader.Start(); !status.ok()) return status;
  fatbin::Entry entry;
  Result<bool> found = reader.Next(&entry);
  if (!found.ok()) return found.status();
  if (!*found || entry.kind != fatbin::EntryKind::kPtx) return Status(Code::kInvalid, "its module has no PTX");
  if (entry.unpacked_bytes > kMostText) return Status(Code::kExhausted, "its module is too large");
  return soft::Unpack(entry);
}

void ModuleText::Arrive(Bytes image) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (image_ != nullptr || image == nullptr) return;
  image_ = std::move(image);
  here_.store(true, std::memory_order_release);
}

Result<std::shared_ptr<const ptx::Module>> ModuleText::Parsed() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (image_ == nullptr) return Status(Code::kInvalid, "its module's PTX has not come yet");
  if (!problem_.ok()) return problem_;
  if (module_ == nullptr) {
    Result<std::string> text = Text();
    if (!text.ok()) {
      problem_ = text.status();
      return problem_;
    }
    Result<std::shared_ptr<const ptx::Module>> module = ptx::Parse(*text);
    if (!module.ok()) {
      problem_ = module.status();
      return problem_;
    }
    module_ = std::move(*module);
  }
  return module_;
}

}  // namespace hawser::server::cuda_slicing
