// SPDX-License-Identifier: Apache-2.0
// Entry points that only say that they are not supported. Their parameters do not matter: they look at none, and the
// caller cleans up. The API's own declarations are therefore not included here.
#include <driver_types.h>

#include <atomic>

#include "interposer/core/log.h"
#include "interposer/cudart/thread_state.h"

namespace hawser::cudart {
namespace {

cudaError_t Refuse(const char* name, std::atomic<bool>& told) {
  if (!told.exchange(true, std::memory_order_relaxed)) {
    guest::Log(guest::LogLevel::kWarning, "%s is not supported", name);
  }
  return CurrentThread().last_error.Record(cudaErrorNotSupported);
}

}  // namespace

cudaError_t NotSupported(const char* name) {
  guest::Log(guest::LogLevel::kWarning, "%s: not supported", name);
  return cudaErrorNotSupported;
}

}  // namespace hawser::cudart

#define X(name)                                                          \
  extern "C" __attribute__((visibility("default"))) cudaError_t name() { \
    static std::atomic<bool> told = false;                               \
    return hawser::cudart::Refuse(#name, told);                          \
  }
#include "interposer/cudart/unsupported.inc"
#undef X
