// SPDX-License-Identifier: Apache-2.0
// Copies: from the runtime's descriptions to the driver's, and how they are issued.
#ifndef HAWSER_INTERPOSER_CUDART_COPY_H_
#define HAWSER_INTERPOSER_CUDART_COPY_H_

#include "interposer/cudart/api.h"
#include "interposer/cudart/driver.h"

namespace hawser::cudart {

/// Into which stream a copy goes, and whether the caller waits.
class CopyOrder {
 public:
  /// The synchronous calls: the legacy stream, or the thread's own in the _ptds flavour.
  static CopyOrder Wait();
  static CopyOrder In(cudaStream_t stream);

  /// True: a driver call that waits by itself. False: an asynchronous call into stream(), then Finish().
  bool legacy_wait() const { return legacy_wait_; }
  CUstream stream() const { return stream_; }
  CUresult Finish(const Driver& driver, CUresult result) const;

 private:
  CopyOrder(bool legacy_wait, bool wait, CUstream stream) : legacy_wait_(legacy_wait), wait_(wait), stream_(stream) {}
  bool legacy_wait_;
  bool wait_;
  CUstream stream_;
};

bool IsCopyKind(cudaMemcpyKind kind);

/// `size` bytes between linear memory. Zero bytes are no copy.
cudaError_t Copy(const Driver& driver, void* destination, const void* source, size_t size, cudaMemcpyKind kind,
                 const CopyOrder& order);
cudaError_t Copy2D(const Driver& driver, const CUDA_MEMCPY2D& copy, const CopyOrder& order);
cudaError_t Copy3D(const Driver& driver, const CUDA_MEMCPY3D& copy, const CopyOrder& order);

/// One end of a 2D copy: linear memory (of the side that `kind` says) or an array.
void SetSource(CUDA_MEMCPY2D& copy, const void* pointer, size_t pitch, cudaMemcpyKind kind);
void SetDestination(CUDA_MEMCPY2D& copy, void* pointer, size_t pitch, cudaMemcpyKind kind);
void SetSource(CUDA_MEMCPY2D& copy, cudaArray_const_t array, size_t x_bytes, size_t y);
void SetDestination(CUDA_MEMCPY2D& copy, cudaArray_const_t array, size_t x_bytes, size_t y);

/// Checks the description and says the same to the driver. Asks the driver for the formats of arrays.
cudaError_t ToDriverCopy(const Driver& driver, const cudaMemcpy3DParms& from, CUDA_MEMCPY3D* to);
/// The way back, for what graphs remember.
cudaError_t FromDriverCopy(const Driver& driver, const CUDA_MEMCPY3D& from, cudaMemcpy3DParms* to);
/// A linear copy as a 3D copy of one row, for graphs.
cudaError_t ToDriverCopy(void* destination, const void* source, size_t size, cudaMemcpyKind kind, CUDA_MEMCPY3D* to);

/// Bytes of one element of the array; 0 for formats in blocks.
cudaError_t ElementSize(const Driver& driver, cudaArray_const_t array, size_t* bytes);

}  // namespace hawser::cudart

#endif  // HAWSER_INTERPOSER_CUDART_COPY_H_
