// SPDX-License-Identifier: Apache-2.0
// Pinned and registered host memory that kernels use, where the server does not have it: over sockets, or outside of
// the session's heap. Kernels get device memory in its place, which is kept equal to it (mirror.h).
//
// With unified addressing a program gives a kernel the very address that the host uses. So what a launch is given is
// looked through: words that are addresses of such memory become what the device calls it. Memory that no kernel is
// given has no mirror and costs nothing. An address that a kernel finds in memory is not seen; for those a program asks
// for the device's address (cuMemHostGetDevicePointer).
//
// Threading: thread-safe. One lock, held while the server is asked for memory, so that a range has one mirror; taken
// before that of Mirrors.
#ifndef HAWSER_INTERPOSER_CUDA_HOST_MIRROR_H_
#define HAWSER_INTERPOSER_CUDA_HOST_MIRROR_H_

#include "interposer/cuda/client.h"
#include "interposer/cuda/launch_packer.h"

namespace hawser::cu {

/// What kernels call `address`, which lies in `range`, of host memory, or is its end. Makes the mirror, which waits for
/// the server, if there is none.
CUresult DeviceAddressOfHost(CUctx_st* context, const PointerRange& range, uint64_t address, CUdeviceptr* result);

/// The host gets what kernels have written to the memory that begins there, and the device's memory is given back.
CUresult EndMirror(CUctx_st* context, uint64_t host);

/// `*address` becomes what kernels call it, if it is one of pinned memory that they know by another name. Costs two
/// loads where there is no such memory.
CUresult TranslateHostAddress(CUctx_st* context, CUdeviceptr* address);
/// The same for all of a launch's parameters, also those inside of structures.
CUresult TranslateHostAddresses(CUctx_st* context, ParameterBlock* parameters);

}  // namespace hawser::cu

#endif  // HAWSER_INTERPOSER_CUDA_HOST_MIRROR_H_
