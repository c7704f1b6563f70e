// SPDX-License-Identifier: Apache-2.0
// Element formats: the runtime's channel descriptors and the driver's array formats.
#ifndef HAWSER_INTERPOSER_CUDART_FORMATS_H_
#define HAWSER_INTERPOSER_CUDART_FORMATS_H_

#include <cuda.h>
#include <driver_types.h>

namespace hawser::cudart {

/// cudaErrorInvalidChannelDescriptor for what no array can hold.
cudaError_t ToDriverFormat(const cudaChannelFormatDesc& from, CUarray_format* format, unsigned* channels);
cudaError_t FromDriverFormat(CUarray_format format, unsigned channels, cudaChannelFormatDesc* to);
/// 0 for formats that are stored in blocks or planes.
size_t BytesPerElement(CUarray_format format, unsigned channels);

}  // namespace hawser::cudart

#endif  // HAWSER_INTERPOSER_CUDART_FORMATS_H_
