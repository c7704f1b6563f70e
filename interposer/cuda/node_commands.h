// SPDX-License-Identifier: Apache-2.0
// Nodes on their way into graphs. Any thread, as the entry points that use it.
#ifndef HAWSER_INTERPOSER_CUDA_NODE_COMMANDS_H_
#define HAWSER_INTERPOSER_CUDA_NODE_COMMANDS_H_

#include "interposer/cuda/node_parameters.h"

namespace hawser::cu {

/// Adds a node with these parameters, and keeps with it what its getters answer. Waits for the server only if the
/// driver could have something against it.
CUresult AddNode(CUgraphNode* result, CUgraph graph, const CUgraphNode* dependencies, size_t count, NodeMessage& from);

/// Gives a node other parameters: in its graph where `exec` is null, else in that executable graph alone.
CUresult SetNode(CUgraphNode node, CUgraphExec exec, NodeMessage& from);
/// Host memory is neither read nor written for a copy that is not enabled.
CUresult EnableNode(CUgraphNode node, CUgraphExec exec, bool enabled);

}  // namespace hawser::cu

#endif  // HAWSER_INTERPOSER_CUDA_NODE_COMMANDS_H_
