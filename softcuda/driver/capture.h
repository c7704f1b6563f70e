// SPDX-License-Identifier: Apache-2.0
// Stream capture: work given to a stream becomes nodes of a graph (CUDA driver API, "Stream Management",
// cuStreamBeginCapture).
//
// Threads: with the lock of the stream's context, unless said otherwise.
#ifndef HAWSER_SOFTCUDA_DRIVER_CAPTURE_H_
#define HAWSER_SOFTCUDA_DRIVER_CAPTURE_H_

#include <cuda.h>

#include <span>
#include <vector>

#include "softcuda/driver/graph.h"
#include "softcuda/driver/stream.h"

namespace hawser::soft {

/// Marks it as failed, and returns `error`.
CUresult Invalidate(Capture* capture, CUresult error);
/// Adds a node after the stream's last ones.
CUresult RecordNode(Stream* stream, Work work);
/// The stream waits for an event: it joins the event's capture, or adds its nodes as dependencies.
CUresult JoinCapture(Stream* stream, const CapturePtr& capture, const std::vector<NodePtr>& ends);
/// The legacy stream cannot be used while a blocking stream of the context is captured:
/// CUDA_ERROR_STREAM_CAPTURE_IMPLICIT. `use`: that it was tried invalidates the capture; asking whether it captures
/// does not (CUDA driver API, cuStreamIsCapturing).
CUresult CheckLegacy(const Stream& stream, bool use = true);

/// Invalidates the captures in which streams of the context take part. False: there are none.
bool InvalidateIn(const ContextPtr& context);

/// `into`: adds to this graph after `ends`; null: a new one.
CUresult BeginCapture(Stream* stream, CUstreamCaptureMode mode, const GraphPtr& into, std::vector<NodePtr> ends);
/// The graph, or null and the error that ended the capture.
CUresult EndCapture(Stream* stream, GraphPtr* graph);

/// For calls that could upset a capture (allocations, context-wide synchronisation):
/// CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, and the capture invalidated, while one is in progress that forbids them to
/// this thread. Takes locks itself.
CUresult CheckUnsafe();

}  // namespace hawser::soft

#endif  // HAWSER_SOFTCUDA_DRIVER_CAPTURE_H_
