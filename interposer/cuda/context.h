// SPDX-License-Identifier: Apache-2.0
// Contexts: their making and end.
#ifndef HAWSER_INTERPOSER_CUDA_CONTEXT_H_
#define HAWSER_INTERPOSER_CUDA_CONTEXT_H_

#include "interposer/cuda/client.h"

namespace hawser::cu {

/// Sends CreateContext for a context object, new or one that begins again.
CUresult StartContext(CUctx_st* context);
CUctx_st* NewContext(int device, unsigned flags, bool primary);
/// Everything that lives in it is gone: streams, events, modules, what is known of its memory.
void ForgetContents(CUctx_st* context);

}  // namespace hawser::cu

#endif  // HAWSER_INTERPOSER_CUDA_CONTEXT_H_
