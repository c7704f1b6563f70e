// SPDX-License-Identifier: Apache-2.0
// Numbers of the server's that change only when this process says so: each is asked for once.
#ifndef HAWSER_INTERPOSER_CUDA_KEPT_VALUES_H_
#define HAWSER_INTERPOSER_CUDA_KEPT_VALUES_H_

#include <cstdint>
#include <map>
#include <mutex>

#include "interposer/cuda/driver_api.h"

namespace hawser::cu {

/// Thread-safe. Nobody holds the mutex while he waits for the server.
class KeptValues {
 public:
  /// The value of `key`: the one that is kept, or what `ask(&value)` says, a CUresult. Only what succeeded is kept, and
  /// only when nobody called Forget() or ForgetAll() meanwhile: the answer may be from before the change.
  template <typename Ask>
  CUresult Get(uint64_t key, uint64_t* value, const Ask& ask) {
    uint64_t changes = 0;
    {
      const std::lock_guard lock(mutex_);
      const auto kept = values_.find(key);
      if (kept != values_.end()) {
        *value = kept->second;
        return CUDA_SUCCESS;
      }
      changes = changes_;
    }
    if (const CUresult error = ask(value); error != CUDA_SUCCESS) return error;
    const std::lock_guard lock(mutex_);
    if (changes == changes_) values_[key] = *value;
    return CUDA_SUCCESS;
  }

  /// To be called after the server has changed the value, or may have.
  void Forget(uint64_t key) {
    const std::lock_guard lock(mutex_);
    values_.erase(key);
    ++changes_;
  }
  void ForgetAll() {
    const std::lock_guard lock(mutex_);
    values_.clear();
    ++changes_;
  }

 private:
  std::mutex mutex_;
  std::map<uint64_t, uint64_t> values_;
  uint64_t changes_ = 0;
};

}  // namespace hawser::cu

#endif  // HAWSER_INTERPOSER_CUDA_KEPT_VALUES_H_
