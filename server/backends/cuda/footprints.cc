// SPDX-License-Identifier: Apache-2.0
// What each command is ordered with (deferral.h).
#include <cstring>

#include "server/backends/cuda/backend.h"

namespace hawser::server::cuda_backend {

using cuda::Opcode;
using Kind = Footprint::Kind;

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
  } else if constexpr (requires { message.context; }) {
    footprint.context = message.context;
  }
  if constexpr (requires { message.event; }) footprint.event = message.event;
  if constexpr (requires { message.start; }) {
    footprint.event = message.start;
    footprint.second_event = message.end;
  }
  return footprint;
}

Footprint CudaBackend::FootprintOf(const wire::FrameHeader& header, wire::Bytes payload) {
  const auto kind = [](Footprint footprint, Kind what) {
    // What is refused at once stays so.
    if (footprint.kind != Kind::kFree) footprint.kind = what;
    return footprint;
  };
  switch (static_cast<Opcode>(header.opcode)) {
    case Opcode::kGetInventory:
    case Opcode::kAsk:
    case Opcode::kUploadImage:  // The data behind it keeps other transfers waiting.
    case Opcode::kHostFunctionDone:
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
      return {.kind = Kind::kCreation};

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
    case Opcode::kLaunchGraph:
      return FootprintOf<cuda::LaunchGraph>(payload);
    case Opcode::kSynchronizeStream:
      return FootprintOf<cuda::SynchronizeStream>(payload);
    case Opcode::kWatchStream:
      return FootprintOf<cuda::WatchStream>(payload);
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
        if (attribute.event) footprint.kind = Kind::kEverything;  // It records it.
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

    case Opcode::kReleaseObject: {
      cuda::Release message;
      wire::Reader reader(payload);
      if (!message.Decode(reader)) return {.kind = Kind::kFree};
      const auto type = static_cast<cuda::Handle>(message.object.type());
      if (type == cuda::Handle::kStream) return StreamFootprint({}, message.object);
      if (type != cuda::Handle::kEvent) return {};
      return {.kind = Kind::kEvent, .changes_event = true, .event = message.object};
    }
    default:
      return {};
  }
}

}  // namespace hawser::server::cuda_backend
