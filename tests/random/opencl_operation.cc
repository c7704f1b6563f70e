// SPDX-License-Identifier: Apache-2.0
#include "tests/random/opencl_operation.h"

#include <cstring>

namespace hawser::random {
namespace {

constexpr size_t kGroup = 64;

size_t Span(const Operation& operation, const Side& side) {
  return (operation.height - 1) * side.pitch + operation.width;
}

std::string Text(const Side& side) {
  return side.memory->Text() + "+" + std::to_string(side.offset) + "/" + std::to_string(side.pitch);
}

/// A buffer's object with these bytes, and where they are in it.
std::pair<cl_mem, size_t> ObjectOf(const Side& side, size_t span, bool parts) {
  if (parts) {
    for (const Memory::Part& part : side.memory->parts) {
      if (part.offset <= side.offset && side.offset + span <= part.offset + part.size)
        return {part.object, side.offset - part.offset};
    }
  }
  return {side.memory->object, side.offset};
}

/// Position of a part of rows.
struct Origin {
  explicit Origin(const Side& side, size_t unit = 1)
      : at{side.offset % side.pitch / unit, side.offset / side.pitch, 0} {}
  size_t at[3];
};

}  // namespace

std::string Memory::Text() const {
  static constexpr const char* kNames[kMemoryKinds] = {"buffer", "svm", "image", "host"};
  return kNames[static_cast<int>(kind)] + std::to_string(number);
}

std::vector<Use> Operation::Uses() const {
  std::vector<Use> uses = {{to.memory, to.offset, Span(*this, to), true}};
  if (from.memory != nullptr) uses.push_back({from.memory, from.offset, Span(*this, from), false});
  return uses;
}

void Operation::Apply() const {
  uint8_t* target = to.memory->used.expected.data() + to.offset;
  const uint8_t* source = from.memory == nullptr ? nullptr : from.memory->used.expected.data() + from.offset;
  for (size_t y = 0; y < height; ++y, target += to.pitch, source += source == nullptr ? 0 : from.pitch) {
    if (what == What::kCopy) {
      memcpy(target, source, width);
    } else if (what == What::kFill) {
      for (size_t i = 0; i < width; i += element) memcpy(target + i, value, element);
    } else {
      for (size_t i = 0; i < width; ++i) target[i] = static_cast<uint8_t>(target[i] * factor + source[i] + addend);
    }
  }
}

bool Operation::IsPossible() const {
  const MemoryKind left = to.memory->kind;
  if (what == What::kFill) return left != MemoryKind::kHost;
  const MemoryKind right = from.memory->kind;
  const auto is = [](MemoryKind kind, MemoryKind other) { return kind == MemoryKind::kBuffer || kind == other; };
  if (to.memory == from.memory && what == What::kCopy) {
    // Rows between each other's are more than all implementations copy.
    const bool apart = to.offset + Span(*this, to) <= from.offset || from.offset + Span(*this, from) <= to.offset;
    return left != MemoryKind::kHost && height == 1 && apart;
  }
  if (what == What::kMix) {
    if (to.memory == from.memory) return false;
    return is(left, MemoryKind::kSvm) && is(right, MemoryKind::kSvm);
  }
  if (left == MemoryKind::kHost && right == MemoryKind::kHost) return false;
  const bool svm = left == MemoryKind::kSvm || right == MemoryKind::kSvm;
  if (svm)
    return height == 1 && left != MemoryKind::kBuffer && right != MemoryKind::kBuffer && left != MemoryKind::kImage &&
           right != MemoryKind::kImage;
  return true;
}

bool Operation::MayBlock() const {
  if (what != What::kCopy) return false;
  return to.memory->kind == MemoryKind::kHost || from.memory->kind == MemoryKind::kHost ||
         to.memory->kind == MemoryKind::kSvm;
}

std::string Operation::Text() const {
  static constexpr const char* kNames[] = {"copy", "fill", "mix"};
  std::string text = std::string(kNames[static_cast<int>(what)]) + " " + random::Text(to);
  if (from.memory != nullptr) text += " <- " + random::Text(from);
  return text + " " + std::to_string(width) + "x" + std::to_string(height) + (parts ? " by parts" : "");
}

cl_int Operation::Enqueue(cl_command_queue queue, cl_kernel mix, bool blocking, const std::vector<cl_event>& after,
                          cl_event* event) const {
  const auto count = static_cast<cl_uint>(after.size());
  const cl_event* const list = after.empty() ? nullptr : after.data();
  const cl_bool wait = blocking ? CL_TRUE : CL_FALSE;
  const MemoryKind left = to.memory->kind;
  const MemoryKind right = from.memory == nullptr ? left : from.memory->kind;
  const auto [target, target_offset] = ObjectOf(to, Span(*this, to), parts && height == 1);
  const auto [source, source_offset] =
      from.memory == nullptr ? std::pair<cl_mem, size_t>() : ObjectOf(from, Span(*this, from), parts && height == 1);
  if (what == What::kFill) {
    if (left == MemoryKind::kSvm)
      return clEnqueueSVMMemFill(queue, to.memory->pointer + to.offset, value, element, width, count, list, event);
    if (left == MemoryKind::kBuffer)
      return clEnqueueFillBuffer(queue, target, value, element, target_offset, width, count, list, event);
    const Origin origin(to, kPixel);
    const size_t region[] = {width / kPixel, height, 1};
    const cl_uint color[] = {value[0], value[1], value[2], value[3]};
    return clEnqueueFillImage(queue, to.memory->object, color, origin.at, region, count, list, event);
  }
  if (what == What::kMix) {
    const auto argument = [&](cl_uint index, const Side& side, cl_mem object, size_t offset) {
      const auto at = static_cast<cl_uint>(side.memory->kind == MemoryKind::kSvm ? side.offset : offset);
      const cl_int result = side.memory->kind == MemoryKind::kSvm
                                ? clSetKernelArgSVMPointer(mix, index, side.memory->pointer)
                                : clSetKernelArg(mix, index, sizeof(object), &object);
      return result != CL_SUCCESS ? result : clSetKernelArg(mix, index + 1, sizeof(at), &at);
    };
    const auto size = static_cast<cl_uint>(width);
    const cl_uint numbers[] = {factor, addend};
    cl_int result = argument(0, to, target, target_offset);
    if (result == CL_SUCCESS) result = argument(2, from, source, source_offset);
    if (result == CL_SUCCESS) result = clSetKernelArg(mix, 4, sizeof(size), &size);
    if (result == CL_SUCCESS) result = clSetKernelArg(mix, 5, sizeof(cl_uint), &numbers[0]);
    if (result == CL_SUCCESS) result = clSetKernelArg(mix, 6, sizeof(cl_uint), &numbers[1]);
    if (result != CL_SUCCESS) return result;
    const size_t local = kGroup, global = (width + kGroup - 1) / kGroup * kGroup;
    return clEnqueueNDRangeKernel(queue, mix, 1, nullptr, &global, &local, count, list, event);
  }
  if (left == MemoryKind::kSvm || right == MemoryKind::kSvm) {
    return clEnqueueSVMMemcpy(queue, wait, to.memory->pointer + to.offset, from.memory->pointer + from.offset, width,
                              count, list, event);
  }
  const bool image = left == MemoryKind::kImage || right == MemoryKind::kImage;
  if (image) {
    const size_t region[] = {width / kPixel, height, 1};
    const Origin target_at(to, kPixel), source_at(from, kPixel);
    if (left == MemoryKind::kHost)
      return clEnqueueReadImage(queue, from.memory->object, wait, source_at.at, region, to.pitch, 0,
                                to.memory->pointer + to.offset, count, list, event);
    if (right == MemoryKind::kHost)
      return clEnqueueWriteImage(queue, to.memory->object, wait, target_at.at, region, from.pitch, 0,
                                 from.memory->pointer + from.offset, count, list, event);
    if (left == MemoryKind::kBuffer)
      return clEnqueueCopyImageToBuffer(queue, from.memory->object, target, source_at.at, region, target_offset, count,
                                        list, event);
    if (right == MemoryKind::kBuffer)
      return clEnqueueCopyBufferToImage(queue, source, to.memory->object, source_offset, target_at.at, region, count,
                                        list, event);
    return clEnqueueCopyImage(queue, from.memory->object, to.memory->object, source_at.at, target_at.at, region, count,
                              list, event);
  }
  if (height == 1) {
    if (left == MemoryKind::kHost)
      return clEnqueueReadBuffer(queue, source, wait, source_offset, width, to.memory->pointer + to.offset, count, list,
                                 event);
    if (right == MemoryKind::kHost)
      return clEnqueueWriteBuffer(queue, target, wait, target_offset, width, from.memory->pointer + from.offset, count,
                                  list, event);
    return clEnqueueCopyBuffer(queue, source, target, source_offset, target_offset, width, count, list, event);
  }
  const size_t region[] = {width, height, 1};
  const Origin target_at(to), source_at(from);
  if (left == MemoryKind::kHost)
    return clEnqueueReadBufferRect(queue, source, wait, source_at.at, target_at.at, region, from.pitch, 0, to.pitch, 0,
                                   to.memory->pointer, count, list, event);
  if (right == MemoryKind::kHost)
    return clEnqueueWriteBufferRect(queue, target, wait, target_at.at, source_at.at, region, to.pitch, 0, from.pitch, 0,
                                    from.memory->pointer, count, list, event);
  return clEnqueueCopyBufferRect(queue, source, target, source_at.at, target_at.at, region, from.pitch, 0, to.pitch, 0,
                                 count, list, event);
}

const char* Source() {
  return R"(
kernel void mix_bytes(global uchar* to, uint to_offset, global const uchar* from, uint from_offset, uint n, uint factor,
                      uint addend) {
  const uint i = get_global_id(0);
  if (i < n) to[to_offset + i] = (uchar)(to[to_offset + i] * factor + from[from_offset + i] + addend);
}
)";
}

}  // namespace hawser::random
