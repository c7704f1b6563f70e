// SPDX-License-Identifier: Apache-2.0
// Graphs, their nodes, and executable graphs.
#ifndef HAWSER_INTERPOSER_CUDA_GRAPH_H_
#define HAWSER_INTERPOSER_CUDA_GRAPH_H_

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <unordered_map>
#include <vector>

#include "interposer/cuda/graph_memory.h"

struct CUgraph_st;

/// What a getter of a node's parameters answers. Nodes that this process did not make itself (of a capture, of a clone)
/// are described by the server.
struct CUgraphNode_st final : hawser::cu::Object {
  using Object::Object;

  CUgraph_st* graph = nullptr;
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
  bool described = false;
  std::shared_ptr<hawser::cu::HostCopy> host_copy;  ///< Of a copy node with pageable memory.
  uint64_t callback = 0;                            ///< Of a host node.
  CUDA_HOST_NODE_PARAMS host{};
  CUgraph_st* child = nullptr;      ///< Of a child node, once asked for.
  std::vector<CUgraph_st*> bodies;  ///< Of a conditional node; the program is given a pointer to them.
  // Of a node that this process made itself: as it was given.
  bool own = false;
  CUDA_KERNEL_NODE_PARAMS kernel{};
  std::vector<std::byte> kernel_bytes;  ///< Its parameters, to which kernel_pointers point.
  std::vector<void*> kernel_pointers;
  CUDA_MEMCPY3D copy{};
  CUevent event = nullptr;
  CUDA_MEM_ALLOC_NODE_PARAMS allocation{};
  std::vector<CUmemAccessDesc> access;  ///< To which allocation's pointer points.
  std::vector<CUstreamBatchMemOpParams> batch;
};

struct CUgraph_st final : hawser::cu::Object {
  using Object::Object;

  std::mutex mutex;  ///< Guards what follows.
  hawser::cu::HostCopies host_copies;
  hawser::cu::GraphFunctions host_functions;      ///< With those of its children.
  std::vector<CUgraphNode_st*> nodes;             ///< Those that have names here.
  std::map<CUuserObject, unsigned> user_objects;  ///< References that it holds.
  bool is_child = false;                          ///< A node's child graph or body: not destroyed by itself.
};

struct CUgraphExec_st final : hawser::cu::Object {
  using Object::Object;

  CUctx_st* context = nullptr;
  unsigned long long flags = 0;
  std::mutex mutex;  ///< Guards what follows.
  hawser::cu::HostCopies host_copies;
  /// Those of them that functions of the graph fetch.
  std::set<const hawser::cu::HostCopy*> fetched;
  /// Those in bodies of conditional nodes: a launch may pass them by.
  std::set<const hawser::cu::HostCopy*> uncertain;
  std::set<uint64_t> disabled_copies;  ///< Names of their stand-ins.
  /// Of its host nodes, by callbacks: what is known of each, and the same without copies that are not enabled.
  std::map<uint64_t, std::shared_ptr<const hawser::cu::FunctionMemory>> functions, enabled_functions;
  hawser::cu::GraphFunctions host_functions;
  std::unique_ptr<hawser::cu::LaunchOrder> order;  ///< Null: there was no launch with any of that.
  std::set<uint64_t> disabled;                     ///< Names of nodes.
  std::map<CUuserObject, unsigned> user_objects;

  std::atomic<hawser::wire::Id> last_launch;  ///< LaunchOrder::event().
};

namespace hawser::cu {

/// What entry points check of a graph and of a node that a program names: that there is a client, and that it is one.
CUresult CheckGraph(const CUgraph_st* graph);
CUresult CheckNode(const CUgraphNode_st* node);
CUgraph_st* NewGraph();
CUgraphNode_st* NewNode(CUgraph_st* graph, CUgraphNodeType type);
/// The node of that name, made known here if it was not.
CUgraphNode_st* NodeOf(CUgraph_st* graph, wire::Id id);
void ForgetGraph(CUgraph_st* graph);
void ForgetNode(CUgraphNode_st* node);
/// Checks nodes that a program names.
CUresult NodeIds(const CUgraphNode* nodes, size_t count, std::vector<wire::Id>* ids);
/// Data of edges (null: none) does not travel, and need not where it says what an edge without any is.
/// CUDA_ERROR_NOT_SUPPORTED: it says more, such as that a kernel may begin before another one's end.
CUresult CheckEdges(const CUgraphEdgeData* edges, size_t count);
/// The end of a graph gives back the references that it holds; an executable graph holds some of its own.
void DropUserObjects(CUgraph_st* graph);
void DropUserObjects(CUgraphExec_st* exec);
/// Before a change of what functions of an executable graph find in memory: those of launches that were made before are
/// not to see it.
CUresult AwaitFunctions(CUgraphExec_st* exec);
/// After such a change, with the executable graph's mutex.
void RefreshFunctions(CUgraphExec_st* exec);
/// Before a launch. Executable graphs of one graph call the same functions, and so do those of graphs that have a child
/// graph in common: a function that has other pieces around it in another one's launches is told of these when those
/// are over.
CUresult ClaimFunctions(CUgraphExec_st* exec);
void ShareUserObjects(CUgraph_st* graph, CUgraphExec_st* exec);
/// cuGraphAddNode() for a conditional node.
CUresult AddConditionalNode(CUgraphNode* result, CUgraph graph, const CUgraphNode* dependencies, size_t count,
                            CUDA_CONDITIONAL_NODE_PARAMS* params);

/// Names for nodes that a reply may bring; what was not used is given back.
class NodeNames {
 public:
  explicit NodeNames(size_t count);
  ~NodeNames();
  NodeNames(const NodeNames&) = delete;
  NodeNames& operator=(const NodeNames&) = delete;
  wire::ArrayView<wire::Id> names() const { return wire::ArrayView<wire::Id>(names_.data(), names_.size()); }
  void Used(wire::Id id);

 private:
  std::vector<wire::Id> names_;
  std::vector<bool> used_;
};

}  // namespace hawser::cu

#endif  // HAWSER_INTERPOSER_CUDA_GRAPH_H_
