// SPDX-License-Identifier: Apache-2.0
// Pictures of graphs for people (cuGraphDebugDotPrint): which node is what, and what it was given.
#ifndef HAWSER_SOFTCUDA_DRIVER_GRAPH_DRAWING_H_
#define HAWSER_SOFTCUDA_DRIVER_GRAPH_DRAWING_H_

#include <string>

#include "softcuda/driver/graph.h"

namespace hawser::soft {

/// The graph in the DOT language, kernels with their names. `flags`: of CUgraphDebugDot_flags, what else is said of
/// nodes. The caller holds the graph's lock. The text itself is not CUDA's: its manual leaves that open.
std::string DrawGraph(const Graph& graph, unsigned flags);

}  // namespace hawser::soft

#endif  // HAWSER_SOFTCUDA_DRIVER_GRAPH_DRAWING_H_
