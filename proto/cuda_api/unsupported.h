// SPDX-License-Identifier: Apache-2.0
// What the generated definitions of entry points call (generate.py stubs). The library that takes them in defines both.
#ifndef HAWSER_PROTO_CUDA_API_UNSUPPORTED_H_
#define HAWSER_PROTO_CUDA_API_UNSUPPORTED_H_

#include <cuda.h>

#include <atomic>

namespace hawser::cuda_api {

/// Returns what an entry point returns that this library does not implement, normally CUDA_ERROR_NOT_SUPPORTED, and
/// logs its name if `said`, which belongs to this symbol, was clear. Any thread.
CUresult Unsupported(const char* symbol, std::atomic_flag* said);

/// While one lives, stream 0 means the calling thread's default stream, not the legacy one: the generated _ptsz and
/// _ptds variants put one around the call of their twin. They may nest.
class PerThreadDefaultStream {
 public:
  PerThreadDefaultStream();
  ~PerThreadDefaultStream();
  PerThreadDefaultStream(const PerThreadDefaultStream&) = delete;
  PerThreadDefaultStream& operator=(const PerThreadDefaultStream&) = delete;
};

}  // namespace hawser::cuda_api

#endif  // HAWSER_PROTO_CUDA_API_UNSUPPORTED_H_
