// SPDX-License-Identifier: Apache-2.0
// The entry points that share memory with OpenGL, EGL and VDPAU (cudaGL.h, cudaEGL.h, cudaVDPAU.h): programs look them
// up with all the others, and some do not start without them, though they never call one.
//
// None of our drivers has a display, so that all of them refuse, whatever they are given. They are declared without
// parameters, because the types of these are in headers that need not be on the machine; in C's calling convention the
// caller takes away what it passed.
#ifndef HAWSER_PROTO_CUDA_API_INTEROP_H_
#define HAWSER_PROTO_CUDA_API_INTEROP_H_

#include <cuda.h>

extern "C" {
#define HAWSER_CUDA_INTEROP(symbol) CUresult CUDAAPI symbol();
#include "cuda_api/interop.inc"
#undef HAWSER_CUDA_INTEROP
}

#endif  // HAWSER_PROTO_CUDA_API_INTEROP_H_
