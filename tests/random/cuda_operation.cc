// SPDX-License-Identifier: Apache-2.0
#include "tests/random/cuda_operation.h"

#include <cstring>

namespace hawser::random {
namespace {

constexpr unsigned kBlock = 128;

void CUDA_CB RunHostMix(void* data) {
  const HostMix& mix = *static_cast<const HostMix*>(data);
  for (size_t i = 0; i < mix.size; ++i)
    mix.to[i] = static_cast<uint8_t>(mix.to[i] * mix.factor + mix.from[i] + mix.addend);
}

CUdeviceptr AsDevice(const void* host) { return reinterpret_cast<CUdeviceptr>(host); }

/// A mix's parameters, where a launch reads them.
struct MixParameters {
  MixParameters(const Operation& operation)
      : to(Address(operation.to, operation.general)),
        from(Address(operation.from, operation.general)),
        size(static_cast<uint32_t>(operation.width)),
        factor(operation.factor),
        addend(operation.addend) {}
  MixParameters(const MixParameters&) = delete;
  MixParameters& operator=(const MixParameters&) = delete;
  static CUdeviceptr Address(const Side& side, bool host) {
    if (host && side.memory->kind == MemoryKind::kPinned) return AsDevice(side.memory->host + side.offset);
    return side.memory->device + side.offset;
  }
  CUDA_KERNEL_NODE_PARAMS Node(CUfunction function) {
    CUDA_KERNEL_NODE_PARAMS node{};
    node.func = function;
    node.gridDimX = Blocks(), node.gridDimY = node.gridDimZ = 1;
    node.blockDimX = kBlock, node.blockDimY = node.blockDimZ = 1;
    node.kernelParams = pointers;
    return node;
  }
  unsigned Blocks() const { return static_cast<unsigned>((size + kBlock - 1) / kBlock); }

  CUdeviceptr to, from;
  uint32_t size, factor, addend;
  void* pointers[5] = {&to, &from, &size, &factor, &addend};
};

CUDA_MEMSET_NODE_PARAMS FillParameters(const Operation& operation) {
  CUDA_MEMSET_NODE_PARAMS node{};
  node.dst = operation.to.memory->device + operation.to.offset;
  node.elementSize = operation.element;
  node.value = operation.value;
  node.width = operation.width / operation.element;
  node.height = 1;
  node.pitch = operation.width;
  return node;
}

/// One side of a copy of rectangles: `type` and the three places of it.
void Put(const Side& side, CUmemorytype* type, const void** host, CUdeviceptr* device, CUarray* array, size_t* x,
         size_t* y, size_t* pitch) {
  const Memory& memory = *side.memory;
  if (memory.kind == MemoryKind::kArray) {
    *type = CU_MEMORYTYPE_ARRAY, *array = memory.array;
    *x = side.offset % memory.width, *y = side.offset / memory.width;
    return;
  }
  *pitch = side.pitch;
  if (memory.IsPlainHost()) {
    *type = CU_MEMORYTYPE_HOST, *host = memory.host + side.offset;
  } else {
    *type = CU_MEMORYTYPE_DEVICE, *device = memory.device + side.offset;
  }
}

CUDA_MEMCPY2D Rectangle(const Operation& operation) {
  CUDA_MEMCPY2D copy{};
  Put(operation.from, &copy.srcMemoryType, &copy.srcHost, &copy.srcDevice, &copy.srcArray, &copy.srcXInBytes,
      &copy.srcY, &copy.srcPitch);
  const void* to = nullptr;
  Put(operation.to, &copy.dstMemoryType, &to, &copy.dstDevice, &copy.dstArray, &copy.dstXInBytes, &copy.dstY,
      &copy.dstPitch);
  copy.dstHost = const_cast<void*>(to);
  copy.WidthInBytes = operation.width, copy.Height = operation.height;
  return copy;
}

/// The same as a node has it; also for a plain copy.
CUDA_MEMCPY3D Box(const Operation& operation) {
  const CUDA_MEMCPY2D flat = Rectangle(operation);
  CUDA_MEMCPY3D copy{};
  copy.srcMemoryType = flat.srcMemoryType, copy.srcHost = flat.srcHost, copy.srcDevice = flat.srcDevice;
  copy.srcArray = flat.srcArray, copy.srcXInBytes = flat.srcXInBytes, copy.srcY = flat.srcY;
  copy.srcPitch = flat.srcPitch;
  copy.dstMemoryType = flat.dstMemoryType, copy.dstHost = flat.dstHost, copy.dstDevice = flat.dstDevice;
  copy.dstArray = flat.dstArray, copy.dstXInBytes = flat.dstXInBytes, copy.dstY = flat.dstY;
  copy.dstPitch = flat.dstPitch;
  copy.WidthInBytes = flat.WidthInBytes, copy.Height = flat.Height, copy.Depth = 1;
  return copy;
}

std::string Text(const Side& side) {
  std::string text = Name(side.memory->kind);
  text += std::to_string(side.memory->number) + '+' + std::to_string(side.offset);
  if (side.pitch != 0) text += '/' + std::to_string(side.pitch);
  return text;
}

size_t Span(const Operation& operation, const Side& side) {
  return (operation.height - 1) * side.pitch + operation.width;
}

}  // namespace

const char* Name(MemoryKind kind) {
  static constexpr const char* kNames[kMemoryKinds] = {"device", "pooled",     "mapped",   "global", "managed",
                                                       "pinned", "registered", "pageable", "array"};
  return kNames[static_cast<int>(kind)];
}

std::vector<Use> Operation::Uses() const {
  std::vector<Use> uses = {{to.memory, to.offset, Span(*this, to), true}};
  if (from.memory != nullptr) uses.push_back({from.memory, from.offset, Span(*this, from), false});
  return uses;
}

void Operation::Apply() const {
  uint8_t* target = to.memory->used.expected.data() + to.offset;
  const uint8_t* source = from.memory == nullptr ? nullptr : from.memory->used.expected.data() + from.offset;
  switch (what) {
    case What::kCopy:
    case What::kRectangle:
      for (size_t y = 0; y < height; ++y) memcpy(target + y * to.pitch, source + y * from.pitch, width);
      break;
    case What::kFill:
    case What::kWriteValue:
      for (size_t i = 0; i < width; i += element) memcpy(target + i, &value, element);
      break;
    case What::kMix:
    case What::kHostMix:
      for (size_t i = 0; i < width; ++i) target[i] = static_cast<uint8_t>(target[i] * factor + source[i] + addend);
      break;
  }
}

bool Operation::Overlaps() const {
  if (from.memory != to.memory) return false;
  const bool apart = to.offset + Span(*this, to) <= from.offset || from.offset + Span(*this, from) <= to.offset;
  return !apart && !((what == What::kMix || what == What::kHostMix) && to.offset == from.offset);
}

std::string Operation::Text() const {
  static constexpr const char* kNames[] = {"copy", "rectangle", "fill", "mix", "host mix", "write value"};
  std::string text = kNames[static_cast<int>(what)];
  text += " " + random::Text(to);
  if (from.memory != nullptr) text += " <- " + random::Text(from);
  return text + " " + std::to_string(width) + "x" + std::to_string(height) + (general ? " general" : "");
}

CUresult Operation::Issue(CUstream stream, const Kernels& kernels, std::deque<HostMix>* mixes) const {
  switch (what) {
    case What::kCopy: {
      const bool to_host = to.memory->IsPlainHost(), from_host = from.memory->IsPlainHost();
      if (general || (to_host && from_host)) {
        return cuMemcpyAsync(to_host ? AsDevice(to.memory->host + to.offset) : to.memory->device + to.offset,
                             from_host ? AsDevice(from.memory->host + from.offset) : from.memory->device + from.offset,
                             width, stream);
      }
      if (to_host)
        return cuMemcpyDtoHAsync(to.memory->host + to.offset, from.memory->device + from.offset, width, stream);
      if (from_host)
        return cuMemcpyHtoDAsync(to.memory->device + to.offset, from.memory->host + from.offset, width, stream);
      return cuMemcpyDtoDAsync(to.memory->device + to.offset, from.memory->device + from.offset, width, stream);
    }
    case What::kRectangle: {
      const CUDA_MEMCPY2D copy = Rectangle(*this);
      return cuMemcpy2DAsync(&copy, stream);
    }
    case What::kFill: {
      const CUdeviceptr address = to.memory->device + to.offset;
      if (element == 1) return cuMemsetD8Async(address, static_cast<unsigned char>(value), width, stream);
      if (element == 2) return cuMemsetD16Async(address, static_cast<unsigned short>(value), width / 2, stream);
      return cuMemsetD32Async(address, value, width / 4, stream);
    }
    case What::kMix: {
      MixParameters parameters(*this);
      return cuLaunchKernel(kernels.mix, parameters.Blocks(), 1, 1, kBlock, 1, 1, 0, stream, parameters.pointers,
                            nullptr);
    }
    case What::kHostMix:
      mixes->push_back({to.memory->host + to.offset, from.memory->host + from.offset, width, factor, addend});
      return cuLaunchHostFunc(stream, RunHostMix, &mixes->back());
    case What::kWriteValue:
      return cuStreamWriteValue32(stream, to.memory->device + to.offset, value, CU_STREAM_WRITE_VALUE_DEFAULT);
  }
  return CUDA_ERROR_UNKNOWN;
}

CUresult Operation::IssueSynchronous() const {
  if (what == What::kRectangle) {
    const CUDA_MEMCPY2D copy = Rectangle(*this);
    return general ? cuMemcpy2D(&copy) : cuMemcpy2DUnaligned(&copy);
  }
  const bool to_host = to.memory->IsPlainHost(), from_host = from.memory->IsPlainHost();
  if (general || (to_host && from_host)) {
    return cuMemcpy(to_host ? AsDevice(to.memory->host + to.offset) : to.memory->device + to.offset,
                    from_host ? AsDevice(from.memory->host + from.offset) : from.memory->device + from.offset, width);
  }
  if (to_host) return cuMemcpyDtoH(to.memory->host + to.offset, from.memory->device + from.offset, width);
  if (from_host) return cuMemcpyHtoD(to.memory->device + to.offset, from.memory->host + from.offset, width);
  return cuMemcpyDtoD(to.memory->device + to.offset, from.memory->device + from.offset, width);
}

CUresult Operation::AddTo(CUgraph graph, const std::vector<CUgraphNode>& after, CUcontext context,
                          const Kernels& kernels, std::deque<HostMix>* mixes, CUgraphNode* node) const {
  switch (what) {
    case What::kCopy:
    case What::kRectangle: {
      const CUDA_MEMCPY3D copy = Box(*this);
      return cuGraphAddMemcpyNode(node, graph, after.data(), after.size(), &copy, context);
    }
    case What::kFill: {
      const CUDA_MEMSET_NODE_PARAMS fill = FillParameters(*this);
      return cuGraphAddMemsetNode(node, graph, after.data(), after.size(), &fill, context);
    }
    case What::kMix: {
      MixParameters parameters(*this);
      const CUDA_KERNEL_NODE_PARAMS kernel = parameters.Node(kernels.mix);
      return cuGraphAddKernelNode(node, graph, after.data(), after.size(), &kernel);
    }
    case What::kHostMix: {
      mixes->push_back({to.memory->host + to.offset, from.memory->host + from.offset, width, factor, addend});
      const CUDA_HOST_NODE_PARAMS host = {RunHostMix, &mixes->back()};
      return cuGraphAddHostNode(node, graph, after.data(), after.size(), &host);
    }
    case What::kWriteValue:
      break;
  }
  return CUDA_ERROR_UNKNOWN;
}

CUresult Operation::Update(CUgraphExec executable, CUgraphNode node, CUcontext context, const Kernels& kernels) const {
  if (what == What::kFill) {
    const CUDA_MEMSET_NODE_PARAMS fill = FillParameters(*this);
    return cuGraphExecMemsetNodeSetParams(executable, node, &fill, context);
  }
  if (what == What::kMix) {
    MixParameters parameters(*this);
    const CUDA_KERNEL_NODE_PARAMS kernel = parameters.Node(kernels.mix);
    return cuGraphExecKernelNodeSetParams(executable, node, &kernel);
  }
  const CUDA_MEMCPY3D copy = Box(*this);
  return cuGraphExecMemcpyNodeSetParams(executable, node, &copy, context);
}

bool Conflict(const Operation& a, const Operation& b) {
  for (const Use& first : a.Uses()) {
    for (const Use& second : b.Uses()) {
      if (first.memory == second.memory && (first.write || second.write) &&
          first.offset < second.offset + second.size && second.offset < first.offset + first.size) {
        return true;
      }
    }
  }
  return false;
}

std::string ModuleText(size_t bytes, unsigned salt) {
  std::string text = "// ";
  text += std::to_string(salt);
  text += R"(
.version 7.0
.target sm_75
.address_size 64
.visible .global .align 16 .b8 bytes[)";
  text += std::to_string(bytes);
  text += R"(];

.visible .entry mix(.param .u64 pto, .param .u64 pfrom, .param .u32 pn, .param .u32 pfactor, .param .u32 paddend)
{
  .reg .pred %p<2>;
  .reg .b32 %r<10>;
  .reg .b64 %d<6>;
  ld.param.u32 %r1, [pn];
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  mov.u32 %r4, %tid.x;
  mad.lo.s32 %r5, %r2, %r3, %r4;
  setp.ge.u32 %p1, %r5, %r1;
  @%p1 bra DONE;
  ld.param.u64 %d1, [pto];
  ld.param.u64 %d2, [pfrom];
  cvt.u64.u32 %d3, %r5;
  add.s64 %d4, %d1, %d3;
  add.s64 %d5, %d2, %d3;
  ld.param.u32 %r6, [pfactor];
  ld.param.u32 %r7, [paddend];
  ld.u8 %r8, [%d4];
  ld.u8 %r9, [%d5];
  mad.lo.u32 %r8, %r8, %r6, %r9;
  add.u32 %r8, %r8, %r7;
  st.u8 [%d4], %r8;
DONE:
  ret;
}
)";
  return text;
}

}  // namespace hawser::random
