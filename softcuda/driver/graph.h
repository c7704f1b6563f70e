// SPDX-License-Identifier: Apache-2.0
// Graphs: nodes of work with edges, made by hand or by capturing streams, and run as operations of the queue.
//
// Threads: a graph is changed by one thread at a time (CUDA's rule); `mutex` keeps a wrong program from damaging the
// driver. An executable graph is a private copy whose launches follow each other. Lock order: context, graph, queue.
#ifndef HAWSER_SOFTCUDA_DRIVER_GRAPH_H_
#define HAWSER_SOFTCUDA_DRIVER_GRAPH_H_

#include <cuda.h>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <thread>
#include <vector>

#include "softcuda/driver/queue.h"
#include "softcuda/driver/work.h"

namespace hawser::soft {

class Conditions;
class Graph;
class Stream;
struct ExecutableGraph;
using ConditionsPtr = std::shared_ptr<Conditions>;

struct Node {
  uint64_t handle = 0;
  std::weak_ptr<Graph> graph;
  Work work;
  bool enabled = true;
  std::vector<Node*> before;  ///< Dependencies, each once. Nodes live as long as their graph.
  std::vector<Node*> after;
  uint64_t original = 0;        ///< In a clone: the node that it was copied from.
  std::vector<void*> pointers;  ///< To a kernel's parameters, for queries.
  std::shared_ptr<void> attributes;
};

using NodePtr = std::shared_ptr<Node>;

CUgraphNodeType TypeOf(const Work& work);
/// The graphs that are part of it: a child, or the bodies of a conditional node.
std::vector<std::shared_ptr<Graph>> InnerGraphs(const Work& work);

class Graph : public std::enable_shared_from_this<Graph> {
 public:
  Graph() = default;
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  uint64_t handle = 0;
  std::mutex mutex;

  /// CUDA_ERROR_INVALID_VALUE when a dependency is of another graph or comes twice; CUDA_ERROR_NOT_SUPPORTED when the
  /// body of a conditional node must not have such a node.
  CUresult Add(Work work, std::span<const NodePtr> before, NodePtr* node);
  CUresult Connect(Node* from, Node* to);
  CUresult Disconnect(Node* from, Node* to);
  void Remove(const NodePtr& node);

  const std::vector<NodePtr>& nodes() const { return nodes_; }
  std::vector<NodePtr> Roots() const;
  /// Nodes in an order in which each follows its dependencies; shorter than nodes() when there is a circle.
  std::vector<Node*> Order() const;
  /// A copy; child graphs are copied as well. Null when there is a circle.
  std::shared_ptr<Graph> Clone() const;
  NodePtr FindCopy(uint64_t original) const;
  /// The same in this graph and all that are part of it.
  NodePtr FindCopyInside(uint64_t original) const;

  bool HasConditionals() const;
  /// Whether each condition that was made for it, or for a body in it, has a node.
  bool UsesItsConditions() const;
  bool IsBody() const { return body_context != 0; }

  /// Things to release with the graph (cuGraphRetainUserObject).
  std::vector<std::shared_ptr<void>> retained;
  std::vector<std::shared_ptr<Condition>> conditions;  ///< Made for it.
  std::weak_ptr<ExecutableGraph> executable;           ///< The last one made of it.
  bool is_child = false;                               ///< Of a child node.
  // Of a body of a conditional node, and of a child in one:
  std::weak_ptr<Graph> parent;  ///< The graph that the node is in.
  uint64_t body_context = 0;    ///< To which its kernels must belong.

 private:
  std::vector<NodePtr> nodes_;
};

using GraphPtr = std::shared_ptr<Graph>;

struct ExecutableGraph {
  uint64_t handle = 0;
  std::mutex mutex;
  GraphPtr graph;  ///< Clone of what was instantiated.
  uint64_t source = 0;
  unsigned long long flags = 0;
  OperationPtr last;  ///< Launches of one executable follow each other.
};

/// A capture in progress: one graph, one origin stream, any number that joined.
struct Capture {
  GraphPtr graph;
  uint64_t id = 0;
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  Stream* origin = nullptr;
  std::thread::id thread;
  bool invalidated = false;
  bool into_existing = false;  ///< cuStreamBeginCaptureToGraph
  std::set<Stream*> streams;
  std::vector<std::shared_ptr<Node>> left;  ///< Last nodes of streams that were destroyed meanwhile.
};

using CapturePtr = std::shared_ptr<Capture>;

/// Submits all nodes as operations after `after`; returns one that is done when all are. `conditions`: null when there
/// are no conditional nodes. Bodies of such nodes must not change any more.
OperationPtr SubmitGraph(const Graph& graph, const std::shared_ptr<Context>& context,
                         std::span<const OperationPtr> after, const ConditionsPtr& conditions);

}  // namespace hawser::soft

#endif  // HAWSER_SOFTCUDA_DRIVER_GRAPH_H_
