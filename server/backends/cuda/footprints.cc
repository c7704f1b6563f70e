// SPDX-License-Identifier: Apache-2.0
// What each command is ordered with (deferral.h).
#include <cstring>
#include <utility>

#include "server/backends/cuda/backend.h"

namespace hawser::server::cuda_backend {

using cuda::Opcode;
using Kind = Footprint::Kind;

bool CudaBackend::Captures(wire::Id stream) {
  const Stream* object = stream ? objects_->Table<Stream>().Find(stream) : nullptr;
  return object != nullptr && object->error == 0 && Captures(*object->state);
}

bool CudaBackend::Captures(const StreamState& stream) {
  if (!captures()) return false;
  if (stream.capture_mark != nullptr) return true;
  // Another stream's capture may have reached this one.
  CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
  return driver_.cuStreamIsCapturing != nullptr &&
         driver_.cuStreamIsCapturing(stream.native(), &capture) == CUDA_SUCCESS &&
         capture != CU_STREAM_CAPTURE_STATUS_NONE;
}

Footprint CudaBackend::StreamFootprint(wire::Id context, wire::Id stream) {
  Footprint footprint;
  footprint.kind = Kind::kStream;
  footprint.context = context;
  footprint.stream = stream;
  const Stream* object = stream ? objects_->Table<Stream>().Find(stream) : nullptr;
  if (object != nullptr && object->error == 0) {
    footprint.context = object->state->context;
    footprint.nonblocking = object->state->nonblocking;
  }
  return footprint;
}

template <typename Message>
Footprint CudaBackend::FootprintOf(wire::Bytes payload) {
  Message message;
  wire::Reader reader(payload);
  // What cannot be decoded is refused at once, wherever it belongs.
  if (!message.Decode(reader)) return {.kind = Kind::kFree};
  Footprint footprint;
  if constexpr (requires { message.stream; }) {
    footprint = StreamFootprint(message.context, message.stream);
    // What is captured does not run: it is behind nothing.
    if (Captures(message.stream)) return {.kind = Kind::kCreation};
  } else if constexpr (requires { message.context; }) {
    footprint.context = message.context;
  }
  if constexpr (requires { message.event; }) footprint.event = message.event;
  if constexpr (requires { message.exec; }) footprint.event = message.exec;
  if constexpr (requires { message.start; }) {
    footprint.event = message.start;
    footprint.second_event = message.end;
  }
  return footprint;
}

Footprint CudaBackend::CaptureFootprint(Footprint stream) {
  // It begins at once: what waits for its turn in the stream is kept until the capture ends. But what others give the
  // stream meanwhile would be captured.
  const bool now = stream.kind == Kind::kStream && !deferral_.ActsIn(stream.context, stream.stream);
  return now ? Footprint{.kind = Kind::kCreation} : stream;
}

template <typename Message>
Footprint CudaBackend::ExecFootprint(wire::Bytes payload) {
  Message message;
  wire::Reader reader(payload);
  if (!message.Decode(reader)) return {.kind = Kind::kFree};
  if (!message.exec) return {.kind = Kind::kCreation};
  return {.kind = Kind::kEvent, .changes_event = true, .event = message.exec};
}

Footprint CudaBackend::FootprintOf(const wire::FrameHeader& header, wire::Bytes payload) {
  const auto kind = [](Footprint footprint, Kind what) {
    // What is refused at once stays so.
    if (footprint.kind != Kind::kFree) footprint.kind = what;
    return footprint;
  };
  const auto asks = [](Footprint footprint) {
    footprint.asks = footprint.kind == Kind::kStream;
    return footprint;
  };
  switch (static_cast<Opcode>(header.opcode)) {
    case Opcode::kGetInventory:
    case Opcode::kAsk:
    case Opcode::kUploadImage:  // The data behind it keeps other transfers waiting.
    case Opcode::kHostFunctionDone:
    case Opcode::kAwaitRoom:
      return {.kind = Kind::kFree};

    case Opcode::kAllocate:
    case Opcode::kAllocatePitch:
    case Opcode::kAllocateAsync:  // Earlier in its stream than it was called: nobody can tell.
    case Opcode::kGetMemoryInfo:
    case Opcode::kCreateAllocation:
      return {.kind = Kind::kCreation, .frees = true};
    case Opcode::kGetLimit:
    case Opcode::kCreateStaging:
    case Opcode::kCreatePool:
    case Opcode::kGetPoolAttribute:
    case Opcode::kGraphMemory:
    case Opcode::kReserveAddress:
    case Opcode::kGetGranularity:
    case Opcode::kCreateArray:
    case Opcode::kCreateMipmap:
    case Opcode::kGetMipmapLevel:
    case Opcode::kCreateTexture:
    case Opcode::kCreateSurface:
    case Opcode::kEncodeTensorMap:
    case Opcode::kReplaceTensorMapAddress:
    case Opcode::kLoadModule:
    case Opcode::kDescribeKernel:
    case Opcode::kGetGlobal:
    case Opcode::kGetFunction:
    case Opcode::kAskClusters:
    case Opcode::kGetLibraryModule:
    case Opcode::kLinkImages:
    case Opcode::kDownloadImage:
    case Opcode::kCreateStream:
    case Opcode::kCreateEvent:
    case Opcode::kCreateGraph:
    case Opcode::kPlaceNode:
    case Opcode::kCreateContext:
    case Opcode::kSetContextFlags:
    case Opcode::kSetLimit:
    case Opcode::kSetCacheConfig:
    case Opcode::kSetFunctionAttribute:  // Also for launches that wait: it is no hindrance to most.
    case Opcode::kAdvise:
    case Opcode::kSetPool:
    case Opcode::kSetPoolAttribute:
    case Opcode::kSetPoolAccess:
    // Who maps and unmaps has waited for what uses the addresses.
    case Opcode::kFreeAddress:
    case Opcode::kMapAllocation:
    case Opcode::kUnmapAddress:
    case Opcode::kSetAccess:
    case Opcode::kExportMemory:
    case Opcode::kImportMemory:
    case Opcode::kExportEvent:
    case Opcode::kImportEvent:
    case Opcode::kEndCapture:
    case Opcode::kSetCaptureMode:
    case Opcode::kGetCaptureInfo:
    case Opcode::kSetCaptureDependencies:
    case Opcode::kCloneGraph:
    case Opcode::kAddNode:
    case Opcode::kAddAllocationNode:
    case Opcode::kCreateCondition:
    case Opcode::kAddConditionalNode:
    case Opcode::kSetDependencies:
    case Opcode::kGetNodes:
    case Opcode::kDescribeNode:
    case Opcode::kFindNodeInClone:
    case Opcode::kInstantiateGraph:
    case Opcode::kDrawGraph:
    case Opcode::kSetNodeAttribute:
    case Opcode::kGetNodeAttribute:
    case Opcode::kCopyNodeAttributes:
      return {.kind = Kind::kCreation};

    case Opcode::kFree:
    case Opcode::kFreeInHeap:
    case Opcode::kCloseMemory:
    case Opcode::kTrimPool:
      return {.kind = Kind::kRelease, .frees = true};
    case Opcode::kDestroyTexture:
    case Opcode::kDestroySurface:
      return {.kind = Kind::kRelease};

    case Opcode::kBeginCapture:
      return CaptureFootprint(FootprintOf<cuda::BeginCapture>(payload));
    case Opcode::kBeginCaptureToGraph:
      return CaptureFootprint(FootprintOf<cuda::BeginCaptureToGraph>(payload));
    case Opcode::kSetPeerAccess: {
      cuda::SetPeerAccess message;
      wire::Reader reader(payload);
      if (!message.Decode(reader)) return {.kind = Kind::kFree};
      return {.kind = message.enabled != 0 ? Kind::kCreation : Kind::kEverything};
    }

    // What changes an executable graph is for launches to come, and not for those that wait.
    case Opcode::kSetNode:
      return ExecFootprint<cuda::SetNode>(payload);
    case Opcode::kEnableNode:
      return ExecFootprint<cuda::EnableNode>(payload);
    case Opcode::kUpdateGraph:
      return ExecFootprint<cuda::UpdateGraph>(payload);

    case Opcode::kWrite:
      return FootprintOf<cuda::Write>(payload);
    case Opcode::kRead:
      return FootprintOf<cuda::Read>(payload);
    case Opcode::kCopyLinear:
      return FootprintOf<cuda::CopyLinear>(payload);
    case Opcode::kCopyHeap:
      return FootprintOf<cuda::CopyHeap>(payload);
    case Opcode::kCopyRegion:
      return FootprintOf<cuda::CopyRegion>(payload);
    case Opcode::kWriteRegion:
      return FootprintOf<cuda::WriteRegion>(payload);
    case Opcode::kReadRegion:
      return FootprintOf<cuda::ReadRegion>(payload);
    case Opcode::kMemset:
      return FootprintOf<cuda::Memset>(payload);
    case Opcode::kPrefetch:
      return FootprintOf<cuda::Prefetch>(payload);
    case Opcode::kWriteStaging:
      return FootprintOf<cuda::WriteStaging>(payload);
    case Opcode::kReadStaging:
      return FootprintOf<cuda::ReadStaging>(payload);
    case Opcode::kLaunch:
      return FootprintOf<cuda::Launch>(payload);
    case Opcode::kLaunchGraph: {
      // Launches of one are in order whatever their streams.
      Footprint footprint = FootprintOf<cuda::LaunchGraph>(payload);
      footprint.changes_event = true;
      return footprint;
    }
    case Opcode::kSetStreamAttribute: {
      cuda::SetStreamAttribute message;
      wire::Reader reader(payload);
      if (!message.Decode(reader)) return {.kind = Kind::kFree};
      return StreamFootprint({}, message.stream);
    }
    case Opcode::kSynchronizeStream: {
      cuda::SynchronizeStream message;
      wire::Reader reader(payload);
      const Footprint footprint = FootprintOf<cuda::SynchronizeStream>(payload);
      return message.Decode(reader) && message.turn == 0 ? asks(footprint) : footprint;
    }
    case Opcode::kWatchStream:
      return asks(FootprintOf<cuda::WatchStream>(payload));
    case Opcode::kWaitEvent:
      return FootprintOf<cuda::WaitEvent>(payload);
    case Opcode::kEnqueueHostFunction:
      return FootprintOf<cuda::EnqueueHostFunction>(payload);
    case Opcode::kEnqueueStreamValues:
      return FootprintOf<cuda::EnqueueStreamValues>(payload);
    case Opcode::kFreeAsync: {
      Footprint footprint = FootprintOf<cuda::FreeAsync>(payload);
      footprint.frees = true;
      return footprint;
    }
    case Opcode::kRecordEvent: {
      Footprint footprint = FootprintOf<cuda::RecordEvent>(payload);
      footprint.changes_event = true;
      return footprint;
    }
    case Opcode::kLaunchWith: {
      Footprint footprint = FootprintOf<cuda::LaunchWith>(payload);
      cuda::LaunchWith message;
      wire::Reader reader(payload);
      if (!message.Decode(reader)) return footprint;
      message.attributes.ForEach([&](const cuda::LaunchAttribute& attribute) {
        if (!attribute.event || footprint.kind != Kind::kStream) return;
        // It records it.
        if (footprint.second_event) footprint.kind = Kind::kEverything;
        footprint.second_event = std::exchange(footprint.event, attribute.event);
        footprint.changes_event = true;
      });
      return footprint;
    }

    case Opcode::kSynchronizeEvent:
      return kind(FootprintOf<cuda::SynchronizeEvent>(payload), Kind::kEvent);
    case Opcode::kWatchEvent:
      return kind(FootprintOf<cuda::WatchEvent>(payload), Kind::kEvent);
    case Opcode::kGetElapsed:
      return kind(FootprintOf<cuda::GetElapsed>(payload), Kind::kEvent);
    case Opcode::kSynchronizeContext:
      return kind(FootprintOf<cuda::SynchronizeContext>(payload), Kind::kContext);
    case Opcode::kRecordContext: {
      Footprint footprint = kind(FootprintOf<cuda::RecordContext>(payload), Kind::kContext);
      footprint.changes_event = true;
      return footprint;
    }

    case Opcode::kReleaseObject: {
      cuda::Release message;
      wire::Reader reader(payload);
      if (!message.Decode(reader)) return {.kind = Kind::kFree};
      const auto type = static_cast<cuda::Handle>(message.object.type());
      switch (type) {
        case cuda::Handle::kStream:
          return StreamFootprint({}, message.object);
        case cuda::Handle::kEvent:
        case cuda::Handle::kGraphExec:
          return {.kind = Kind::kEvent, .changes_event = true, .event = message.object};
        case cuda::Handle::kContext:
          return {};
        case cuda::Handle::kNode:  // Of graphs, which are not what is launched.
        case cuda::Handle::kGraph:
          return {.kind = Kind::kCreation};
        default:
          return {.kind = Kind::kRelease};
      }
    }
    default:
      return {};
  }
}

}  // namespace hawser::server::cuda_backend
