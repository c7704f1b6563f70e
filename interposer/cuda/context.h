// SPDX-License-Identifier: Apache-2.0
// Contexts: their making and end.
#ifndef HAWSER_INTERPOSER_CUDA_CONTEXT_H_
#define HAWSER_INTERPOSER_CUDA_CONTEXT_H_

#include "interposer/cuda/client.h"

namespace hawser::cu {

/// Sends CreateContext for a context object, new or one that begins again.
CUresult StartContext(CUctx_st* context);
CUctx_st* NewContext(int device, unsigned flags, bool primary);
/// Before its end: whoever ends a context finds its work done. Functions of the program have run, data has come into
/// its memory, and what kernels print is printed.
void AwaitWork(CUctx_st* context);
/// Sends what ends it on the server. Waits for that where device memory has pages of the heap, which others get then.
template <typename Message>
int32_t SendEnd(const CUctx_st* context, const Message& message) {
  Client& client = Client::Get();
  return client.pointers().UsesHeap(context->id.raw()) ? client.session()->SendAndWait(message)
                                                       : client.session()->Send(message);
}
/// Everything that lives in it is gone: streams, events, modules, what is known of its memory.
void ForgetContents(CUctx_st* context);

}  // namespace hawser::cu

#endif  // HAWSER_INTERPOSER_CUDA_CONTEXT_H_
