// SPDX-License-Identifier: Apache-2.0
// cuGraphKernelNode*Attribute*. The server's driver is asked, not what was set here: captured nodes and those of clones
// have attributes too.
#include "interposer/cuda/entry.h"
#include "interposer/cuda/graph.h"
#include "interposer/cuda/launch_attributes.h"

using namespace hawser;      // NOLINT(google-build-using-namespace): entry points live outside of namespaces.
using namespace hawser::cu;  // NOLINT(google-build-using-namespace)

CUresult CUDAAPI cuGraphKernelNodeSetAttribute(CUgraphNode node, CUkernelNodeAttrID attribute,
                                               const CUkernelNodeAttrValue* value) {
  if (const CUresult error = CheckNode(node); error != CUDA_SUCCESS) return error;
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (attribute == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT || attribute == CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT) {
    return CUDA_ERROR_INVALID_VALUE;  // A launch's alone.
  }
  CUlaunchAttribute full{};
  full.id = attribute;
  full.value = *value;
  cuda::SetNodeAttribute message;
  if (const CUresult error = ToWire(full, &message.attribute); error != CUDA_SUCCESS) return error;
  message.node = node->id;
  return AskStatus(Client::Get().session(), message);
}

CUresult CUDAAPI cuGraphKernelNodeGetAttribute(CUgraphNode node, CUkernelNodeAttrID attribute,
                                               CUkernelNodeAttrValue* value) {
  if (const CUresult error = CheckNode(node); error != CUDA_SUCCESS) return error;
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  cuda::GetNodeAttribute message;
  message.node = node->id;
  message.id = attribute;
  Answer<cuda::NodeAttribute> answer;
  if (const CUresult error = answer.Ask(Client::Get().session(), message); error != CUDA_SUCCESS) return error;
  return FromWire(answer->attribute, value);
}

CUresult CUDAAPI cuGraphKernelNodeCopyAttributes(CUgraphNode to, CUgraphNode from) {
  if (const CUresult error = CheckNode(to); error != CUDA_SUCCESS) return error;
  if (const CUresult error = CheckNode(from); error != CUDA_SUCCESS) return error;
  cuda::CopyNodeAttributes message;
  message.to = to->id;
  message.from = from->id;
  return AskStatus(Client::Get().session(), message);
}
