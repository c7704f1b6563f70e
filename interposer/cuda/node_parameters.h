// SPDX-License-Identifier: Apache-2.0
// Parameters of graph nodes between C and the wire.
#ifndef HAWSER_INTERPOSER_CUDA_NODE_PARAMETERS_H_
#define HAWSER_INTERPOSER_CUDA_NODE_PARAMETERS_H_

#include <functional>
#include <memory>
#include <vector>

#include "interposer/cuda/copy_region.h"
#include "interposer/cuda/graph.h"
#include "interposer/cuda/host_functions.h"
#include "interposer/cuda/launch_packer.h"

namespace hawser::cu {

/// Parameters as they travel, with what they point to.
struct NodeMessage {
  cuda::NodeParameters parameters;
  /// The server cannot find fault with these parameters: a node with them need not wait for its answer.
  bool sure = false;
  ParameterBlock packed;
  std::shared_ptr<HostCopy> host_copy;                 ///< A copy with pageable memory.
  HostCopies inner_copies;                             ///< Of a child graph.
  std::shared_ptr<const GraphFunction> host_function;  ///< Of a host node.
  std::vector<cuda::StreamValue> values;
  // As it was given, for the getters.
  CUDA_KERNEL_NODE_PARAMS kernel{};
  const FunctionBase* function = nullptr;
  CUDA_MEMCPY3D copy{};
  CUevent event = nullptr;
  std::vector<CUstreamBatchMemOpParams> batch;
};

CUresult KernelNode(const CUDA_KERNEL_NODE_PARAMS& from, NodeMessage* to);
CUresult CopyNode(const CUDA_MEMCPY3D& from, CUcontext context, NodeMessage* to);
CUresult MemsetNode(const CUDA_MEMSET_NODE_PARAMS& from, CUcontext context, NodeMessage* to);
/// Waits for and writes of values in memory, one after the other.
CUresult BatchNode(const CUDA_BATCH_MEM_OP_NODE_PARAMS& from, NodeMessage* to);
CUresult HostNode(const CUDA_HOST_NODE_PARAMS& from, NodeMessage* to);
/// The same for a function of this library's.
void HostNode(std::function<void(CUresult)> function, HostFunctions::Calls calls, NodeMessage* to);

}  // namespace hawser::cu

#endif  // HAWSER_INTERPOSER_CUDA_NODE_PARAMETERS_H_
