// SPDX-License-Identifier: Apache-2.0
#include "softcuda/driver/graph_drawing.h"

#include <array>
#include <sstream>
#include <variant>

#include "softcuda/driver/conditional.h"
#include "softcuda/driver/module_store.h"
#include "softcuda/driver/stream.h"

namespace hawser::soft {
namespace {

constexpr const char* kNewLine = "\\n";  // Within a label.

template <typename... Each>
struct Overloaded : Each... {
  using Each::operator()...;
};
template <typename... Each>
Overloaded(Each...) -> Overloaded<Each...>;

class Drawing {
 public:
  explicit Drawing(unsigned flags) : flags_(flags) { text_ << std::hex << std::showbase; }

  std::string Finish(const Graph& graph) {
    text_ << "digraph graph_1 {\n";
    Nodes(graph, "  ");
    text_ << "}\n";
    return text_.str();
  }

 private:
  bool Wanted(CUgraphDebugDot_flags flag) const {
    return (flags_ & (static_cast<unsigned>(flag) | CU_GRAPH_DEBUG_DOT_FLAGS_VERBOSE)) != 0;
  }

  /// A node's name in the picture.
  static std::string Name(const Node& node) {
    std::ostringstream name;
    name << 'n' << std::hex << node.handle;
    return name.str();
  }

  void Nodes(const Graph& graph, const std::string& indent) {
    for (const NodePtr& node : graph.nodes()) {
      text_ << indent << Name(*node) << " [label=\"";
      Label(node->work);
      if (!node->enabled) text_ << kNewLine << "disabled";
      if (Wanted(CU_GRAPH_DEBUG_DOT_FLAGS_HANDLES)) text_ << kNewLine << "handle " << node->handle;
      text_ << "\"];\n";
      for (const Node* next : node->after) text_ << indent << Name(*node) << " -> " << Name(*next) << ";\n";
      Inner(*node, indent);
    }
  }

  void Inner(const Node& node, const std::string& indent) {
    const char* const what = std::holds_alternative<ConditionalWork>(node.work) ? "body" : "child";
    int number = 0;
    for (const GraphPtr& graph : InnerGraphs(node.work)) {
      text_ << indent << "subgraph cluster_" << Name(node) << '_' << std::dec << number << " {\n"
            << indent << "  label=\"" << what << ' ' << number << " of " << Name(node) << "\";\n"
            << std::hex;
      Nodes(*graph, indent + "  ");
      text_ << indent << "}\n";
      ++number;
    }
  }

  /// Sizes and counts are decimal, addresses and handles are not.
  void Count(const char* what, size_t value) { text_ << kNewLine << what << ' ' << std::dec << value << std::hex; }
  void Address(const char* what, uint64_t value) { text_ << kNewLine << what << ' ' << value; }
  template <typename T>
  void Address(const char* what, T* value) {
    Address(what, reinterpret_cast<uint64_t>(value));
  }
  void Extent(const char* what, const std::array<uint32_t, 3>& value) {
    text_ << kNewLine << what << ' ' << std::dec << value[0] << " x " << value[1] << " x " << value[2] << std::hex;
  }

  void Label(const Work& work) {
    std::visit(Overloaded{
                   [&](const EmptyWork&) { text_ << "EMPTY"; },
                   [&](const KernelWork& kernel) { Kernel(kernel); },
                   [&](const CopyWork& copy) { Copy(copy.copy); },
                   [&](const MemsetWork& memset) { Memset(memset.set); },
                   [&](const HostWork& host) {
                     text_ << "HOST";
                     if (!Wanted(CU_GRAPH_DEBUG_DOT_FLAGS_HOST_NODE_PARAMS)) return;
                     Address("function", reinterpret_cast<uint64_t>(host.function));
                     Address("data", host.data);
                   },
                   [&](const CallbackWork&) { text_ << "HOST"; },
                   [&](const EventRecordWork& record) { EventOf("EVENT_RECORD", *record.event); },
                   [&](const EventWaitWork& wait) { EventOf("EVENT_WAIT", *wait.event); },
                   [&](const ChildWork&) { text_ << "GRAPH"; },
                   [&](const AllocWork& alloc) {
                     text_ << "MEM_ALLOC";
                     if (!Wanted(CU_GRAPH_DEBUG_DOT_FLAGS_MEM_ALLOC_NODE_PARAMS)) return;
                     Address("address", uint64_t{alloc.params.dptr});
                     Count("bytes", alloc.params.bytesize);
                   },
                   [&](const FreeWork& free) {
                     text_ << "MEM_FREE";
                     if (Wanted(CU_GRAPH_DEBUG_DOT_FLAGS_MEM_FREE_NODE_PARAMS)) {
                       Address("address", uint64_t{free.address});
                     }
                   },
                   [&](const MemoryOperationsWork& batch) {
                     text_ << "BATCH_MEM_OP";
                     if (Wanted(CU_GRAPH_DEBUG_DOT_FLAGS_BATCH_MEM_OP_NODE_PARAMS)) {
                       Count("operations", batch.operations.size());
                     }
                   },
                   [&](const ConditionalWork& choice) { Conditional(choice); },
               },
               work);
  }

  void Kernel(const KernelWork& kernel) {
    text_ << "KERNEL" << kNewLine << kernel.function->info().name;
    if (Wanted(CU_GRAPH_DEBUG_DOT_FLAGS_KERNEL_NODE_PARAMS)) {
      Extent("grid", kernel.grid);
      Extent("block", kernel.block);
      Count("dynamic shared bytes", kernel.shared_bytes);
      Count("parameter bytes", kernel.parameters.size());
    }
    if (Wanted(CU_GRAPH_DEBUG_DOT_FLAGS_KERNEL_NODE_ATTRIBUTES) && kernel.cooperative) {
      text_ << kNewLine << "cooperative";
    }
    if (Wanted(CU_GRAPH_DEBUG_DOT_FLAGS_HANDLES)) Address("function", kernel.handle);
  }

  void Copy(const CUDA_MEMCPY3D& copy) {
    text_ << "MEMCPY";
    if (!Wanted(CU_GRAPH_DEBUG_DOT_FLAGS_MEMCPY_NODE_PARAMS)) return;
    const auto end = [&](const char* what, CUmemorytype type, const void* host, CUdeviceptr device, CUarray array) {
      if (type == CU_MEMORYTYPE_HOST) {
        Address(what, host);
      } else if (type == CU_MEMORYTYPE_ARRAY) {
        Address(what, array);
        text_ << " (array)";
      } else {
        Address(what, uint64_t{device});
      }
    };
    end("from", copy.srcMemoryType, copy.srcHost, copy.srcDevice, copy.srcArray);
    end("to", copy.dstMemoryType, copy.dstHost, copy.dstDevice, copy.dstArray);
    text_ << kNewLine << std::dec << copy.WidthInBytes << " bytes x " << copy.Height << " x " << copy.Depth << std::hex;
  }

  void Memset(const CUDA_MEMSET_NODE_PARAMS& set) {
    text_ << "MEMSET";
    if (!Wanted(CU_GRAPH_DEBUG_DOT_FLAGS_MEMSET_NODE_PARAMS)) return;
    Address("to", uint64_t{set.dst});
    Address("value", uint64_t{set.value});
    Count("element bytes", set.elementSize);
    text_ << kNewLine << std::dec << set.width << " x " << set.height << std::hex;
  }

  void EventOf(const char* type, const Event& event) {
    text_ << type;
    if (Wanted(CU_GRAPH_DEBUG_DOT_FLAGS_EVENT_NODE_PARAMS)) Address("event", event.handle);
  }

  void Conditional(const ConditionalWork& choice) {
    static constexpr std::array kTypes = {"IF", "WHILE", "SWITCH"};
    text_ << "CONDITIONAL" << kNewLine << kTypes.at(static_cast<size_t>(choice.type));
    if (!Wanted(CU_GRAPH_DEBUG_DOT_FLAGS_CONDITIONAL_NODE_PARAMS)) return;
    Address("condition", choice.condition->handle);
    Count("from", choice.condition->initial);
  }

  const unsigned flags_;
  std::ostringstream text_;
};

}  // namespace

std::string DrawGraph(const Graph& graph, unsigned flags) { return Drawing(flags).Finish(graph); }

}  // namespace hawser::soft
