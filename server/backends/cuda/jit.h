// SPDX-License-Identifier: Apache-2.0
// What a driver's compiler and linker are given: images in the forms that it takes, options with buffers for what it
// says, and a link on its way.
//
// Threading: one thread at a time each; a job of the loader's takes them over from the executor.
#ifndef HAWSER_SERVER_BACKENDS_CUDA_JIT_H_
#define HAWSER_SERVER_BACKENDS_CUDA_JIT_H_

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/backends/cuda/backend.h"

namespace hawser::server::cuda_backend {

/// Images as a driver takes them.
struct CudaBackend::Assembled {
  struct Part {
    std::vector<std::byte> bytes;  ///< By Prepare().
    CUjitInputType type = CU_JIT_INPUT_PTX;
    Image stored;
    bool is_ptx = false;
    bool is_compressed = false;
  };
  std::vector<Part> parts;
  std::optional<SourceImage> source;
  std::string hash;   ///< Stands for all of them.
  std::string offer;  ///< What there was to choose from, and the device, in words.
};

/// Options of a load or a link, with buffers for what the compiler says.
class JitOptions {
 public:
  JitOptions(const wire::ListView<cuda::JitOption>& given, uint32_t info_size, uint32_t error_size)
      : info_(std::min(info_size, kMaxLog)), error_(std::min(error_size, kMaxLog)) {
    given.ForEach([&](const cuda::JitOption& option) {
      good_ = good_ && IsPlain(option.option);
      Add(static_cast<CUjit_option>(option.option), option.value);
    });
    if (!info_.empty()) {
      Add(CU_JIT_INFO_LOG_BUFFER, reinterpret_cast<uint64_t>(info_.data()));
      Add(CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, info_.size());
    }
    if (!error_.empty()) {
      Add(CU_JIT_ERROR_LOG_BUFFER, reinterpret_cast<uint64_t>(error_.data()));
      Add(CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, error_.size());
    }
  }
  JitOptions(const JitOptions&) = delete;
  JitOptions& operator=(const JitOptions&) = delete;

  bool good() const { return good_; }
  unsigned count() const { return static_cast<unsigned>(options_.size()); }
  CUjit_option* options() { return options_.data(); }
  void** values() { return values_.data(); }
  std::string_view info() const { return Text(info_); }
  std::string_view error() const { return Text(error_); }

 private:
  static constexpr uint32_t kMaxLog = 1u << 20;

  /// Options whose value is a number; those with pointers would be the guest's pointers.
  static bool IsPlain(uint32_t option);
  void Add(CUjit_option option, uint64_t value) {
    options_.push_back(option);
    values_.push_back(reinterpret_cast<void*>(value));  // NOLINT(performance-no-int-to-ptr): how the driver wants it.
  }
  static std::string_view Text(const std::vector<char>& buffer) {
    if (buffer.empty()) return {};  // Without a buffer there is no pointer that strnlen() may be given.
    return {buffer.data(), ::strnlen(buffer.data(), buffer.size())};
  }

  bool good_ = true;
  std::vector<char> info_, error_;
  std::vector<CUjit_option> options_;
  std::vector<void*> values_;
};

/// Ends what it began.
class Linker {
 public:
  Linker(const DriverTable& driver, JitOptions* options) : driver_(driver) {
    if (driver.cuLinkCreate == nullptr || driver.cuLinkAddData == nullptr || driver.cuLinkComplete == nullptr ||
        driver.cuLinkDestroy == nullptr) {
      return;
    }
    result_ = driver.cuLinkCreate(options->count(), options->options(), options->values(), &state_);
  }
  ~Linker() {
    if (state_ != nullptr) (void)driver_.cuLinkDestroy(state_);
  }
  Linker(const Linker&) = delete;
  Linker& operator=(const Linker&) = delete;

  void Add(CUjitInputType type, std::vector<std::byte>& image, const std::string& name) {
    if (result_ != CUDA_SUCCESS) return;
    result_ = driver_.cuLinkAddData(state_, type, image.data(), image.size(), name.c_str(), 0, nullptr, nullptr);
  }
  /// The image belongs to the linker.
  CUresult Complete(void** image, size_t* size) {
    if (result_ == CUDA_SUCCESS) result_ = driver_.cuLinkComplete(state_, image, size);
    return result_;
  }

 private:
  const DriverTable& driver_;
  CUlinkState state_ = nullptr;
  CUresult result_ = CUDA_ERROR_NOT_SUPPORTED;
};

template <typename Answer>
void CudaBackend::FailJit(const cuda::Call& call, std::string_view what, int32_t status, const std::string& text,
                          const JitOptions* options) {
  // Nobody else reads the reason: into the compiler's log with it, and into ours.
  if (!text.empty()) Log("info", std::string(what) + ": " + text);
  Answer reply;
  reply.status = status;
  if (options != nullptr) {
    reply.info_log = options->info();
    reply.error_log = options->error();
  }
  if (reply.error_log.empty()) reply.error_log = text;
  Reply(call, reply);
}

}  // namespace hawser::server::cuda_backend

#endif  // HAWSER_SERVER_BACKENDS_CUDA_JIT_H_
