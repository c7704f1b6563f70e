// SPDX-License-Identifier: Apache-2.0
#include "interposer/cuda/graph_hand_over.h"

#include <algorithm>
#include <unordered_map>

#include "interposer/core/log.h"
#include "interposer/cuda/node_commands.h"

namespace hawser::cu {
namespace {

/// What one of the two brings, the other takes, or brings too.
bool Passes(const HostCopy& one, const HostCopy& other) {
  const std::byte *const begin = one.memory.base, *const other_begin = other.memory.base;
  return &one != &other && (one.to_host || other.to_host) && begin < other_begin + other.memory.extent() &&
         other_begin < begin + one.memory.extent();
}

}  // namespace

std::vector<cuda::HostPiece> PassedOn(const HostCopies& copies) {
  std::vector<cuda::HostPiece> pieces;
  for (const auto& copy : copies) {
    const auto passes = [&copy](const auto& other) { return Passes(*copy, *other); };
    if (std::none_of(copies.begin(), copies.end(), passes)) continue;
    cuda::HostPiece piece;
    piece.staging = copy->staging;
    piece.begin = reinterpret_cast<uintptr_t>(copy->memory.base);
    piece.bytes = copy->memory.extent();
    pieces.push_back(piece);
  }
  return pieces;
}

CUresult AddHandOver(CUgraph graph, const CUgraphNode* dependencies, size_t count, CUgraphNode* node) {
  NodeMessage function;
  HostNode([](CUresult) {}, HostFunctions::Calls::kOursOften, &function);
  return AddNode(node, graph, dependencies, count, function);
}

CUresult HandOverBefore(CUgraphNode node) {
  size_t count = 0;
  CUresult error = cuGraphNodeGetDependencies(node, nullptr, &count);
  if (error != CUDA_SUCCESS) return error;
  std::vector<CUgraphNode> dependencies(count);
  error = cuGraphNodeGetDependencies(node, dependencies.data(), &count);
  if (error != CUDA_SUCCESS) return error;
  CUgraphNode between = nullptr;
  error = AddHandOver(node->graph, dependencies.data(), count, &between);
  if (error != CUDA_SUCCESS) return error;
  error = cuGraphAddDependencies(node->graph, &between, &node, 1);
  if (error != CUDA_SUCCESS) (void)cuGraphDestroyNode(between);
  return error;
}

void PutInOrder(const wire::ArrayView<wire::Id>& stagings, HostCopies* copies) {
  if (stagings.size() < 2) return;
  std::unordered_map<uint64_t, uint32_t> places;
  for (uint32_t i = 0; i < stagings.size(); ++i) places[stagings[i].raw()] = i;
  std::vector<size_t> slots;
  HostCopies named;
  for (size_t i = 0; i < copies->size(); ++i) {
    if (!places.contains((*copies)[i]->staging.raw())) continue;
    slots.push_back(i);
    named.push_back((*copies)[i]);
  }
  std::stable_sort(named.begin(), named.end(), [&places](const auto& a, const auto& b) {
    return places.at(a->staging.raw()) < places.at(b->staging.raw());
  });
  for (size_t i = 0; i < slots.size(); ++i) (*copies)[slots[i]] = named[i];
}

void SayTooEarly() {
  guest::Log(guest::LogLevel::kWarning,
             "a copy in an inner graph takes from host memory what a copy before it brings there, and nothing hands it "
             "over: the graph is refused. Use pinned memory over shared memory, or put a host node between the two");
}

}  // namespace hawser::cu
