// SPDX-License-Identifier: Apache-2.0
// A copy of a graph that takes from host memory what another copy of it brings there: the two have stand-ins of their
// own for that memory (graph_memory.h), so that something has to hand over from one to the other. That is a function
// between them, which has nothing else to do. And of two copies that bring something to the same memory the later one's
// has to come last. Any thread, as the entry points that use it.
#ifndef HAWSER_INTERPOSER_CUDA_GRAPH_HAND_OVER_H_
#define HAWSER_INTERPOSER_CUDA_GRAPH_HAND_OVER_H_

#include <span>
#include <utility>
#include <vector>

#include "interposer/cuda/client.h"
#include "interposer/cuda/graph.h"
#include "interposer/cuda/wire_call.h"

namespace hawser::cu {

/// As many as a message may have (InstantiateGraph): the server would end the session for more.
inline constexpr size_t kMaxPieces = 65536;

/// Of all copies of a graph those that bring something to host memory which others take from or bring something to, and
/// those others. Without any: nothing.
std::vector<cuda::HostPiece> PassedOn(const HostCopies& copies);
/// Adds a node of such a function behind the dependencies.
CUresult AddHandOver(CUgraph graph, const CUgraphNode* dependencies, size_t count, CUgraphNode* node);
/// Puts one between the node and all that it depends on.
CUresult HandOverBefore(CUgraphNode node);
/// Says that it cannot be done, and what can.
void SayTooEarly();
/// Those of the copies whose stand-ins are named come in that order among each other.
void PutInOrder(const wire::ArrayView<wire::Id>& stagings, HostCopies* copies);

/// Asks for something to be made of the whole graph. Nodes are given their dependencies when they are added, and
/// hand-overs with them; but other orders may follow, and other memory. So the server looks whether all of what is
/// passed on is handed over, and where it is not, that is done now; and `copies`, all of the graph's, are put in order.
template <typename Message, typename Reply>
CUresult AskInOrder(CUgraph graph, HostCopies* copies, Message message, Answer<Reply>* answer) {
  const std::vector<cuda::HostPiece> pieces = PassedOn(*copies);
  if (pieces.size() > kMaxPieces) return CUDA_ERROR_OUT_OF_MEMORY;
  message.pieces = wire::ListView<cuda::HostPiece>(std::span<const cuda::HostPiece>(pieces));
  for (size_t attempt = 0;; ++attempt) {
    NodeNames name(pieces.empty() ? 0 : 1);
    if (!pieces.empty()) message.name = name.names()[0];
    *answer = {};
    CUresult error = answer->Ask(Client::Get().session(), message);
    const Reply& reply = **answer;
    if (error == CUDA_SUCCESS) PutInOrder(reply.filled, copies);
    if (error == CUDA_SUCCESS || reply.too_early == 0) return error;
    if (!reply.node || attempt == pieces.size()) {  // In an inner graph.
      SayTooEarly();
      return error;
    }
    name.Used(reply.node);
    if (error = HandOverBefore(NodeOf(graph, reply.node)); error != CUDA_SUCCESS) return error;
  }
}

}  // namespace hawser::cu

#endif  // HAWSER_INTERPOSER_CUDA_GRAPH_HAND_OVER_H_
