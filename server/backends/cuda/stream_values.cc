// SPDX-License-Identifier: Apache-2.0
// Waits for values in memory and writes of them: as commands of a stream and as nodes of graphs.
#include <cstring>
#include <vector>

#include "server/backends/cuda/backend.h"

namespace hawser::server::cuda_backend {
namespace {

CUstreamBatchMemOpParams ToNative(const cuda::StreamValue& value) {
  CUstreamBatchMemOpParams operation;
  std::memset(&operation, 0, sizeof(operation));
  if (value.wait != 0) {
    operation.waitValue.operation = value.wide != 0 ? CU_STREAM_MEM_OP_WAIT_VALUE_64 : CU_STREAM_MEM_OP_WAIT_VALUE_32;
    operation.waitValue.address = value.address;
    operation.waitValue.value64 = value.value;
    operation.waitValue.flags = value.flags;
  } else {
    operation.writeValue.operation =
        value.wide != 0 ? CU_STREAM_MEM_OP_WRITE_VALUE_64 : CU_STREAM_MEM_OP_WRITE_VALUE_32;
    operation.writeValue.address = value.address;
    operation.writeValue.value64 = value.value;
    operation.writeValue.flags = value.flags;
  }
  return operation;
}

/// False: neither a wait nor a write.
bool FromNative(const CUstreamBatchMemOpParams& operation, cuda::StreamValue* value) {
  switch (operation.operation) {
    case CU_STREAM_MEM_OP_WAIT_VALUE_32:
    case CU_STREAM_MEM_OP_WAIT_VALUE_64:
      value->wait = 1;
      value->wide = operation.operation == CU_STREAM_MEM_OP_WAIT_VALUE_64 ? 1 : 0;
      value->address = operation.waitValue.address;
      value->value = value->wide != 0 ? operation.waitValue.value64 : operation.waitValue.value;
      value->flags = operation.waitValue.flags;
      return true;
    case CU_STREAM_MEM_OP_WRITE_VALUE_32:
    case CU_STREAM_MEM_OP_WRITE_VALUE_64:
      value->wide = operation.operation == CU_STREAM_MEM_OP_WRITE_VALUE_64 ? 1 : 0;
      value->address = operation.writeValue.address;
      value->value = value->wide != 0 ? operation.writeValue.value64 : operation.writeValue.value;
      value->flags = operation.writeValue.flags;
      return true;
    default:
      return false;
  }
}

}  // namespace

int32_t CudaBackend::FillValues(const wire::ListView<cuda::StreamValue>& values,
                                std::vector<CUstreamBatchMemOpParams>* operations) {
  bool owned = true;
  values.ForEach([&](const cuda::StreamValue& value) {
    owned = owned && Owns(value.address, value.wide != 0 ? 8 : 4);
    operations->push_back(ToNative(value));
  });
  return owned ? 0 : Explain(CUDA_ERROR_INVALID_VALUE, "the memory is not the session's");
}

int32_t CudaBackend::EnqueueStreamValues(const cuda::Call& call, const cuda::EnqueueStreamValues& message) {
  const Place at = At(message.context, message.stream);
  if (!at.ok()) return Fail(call, at.status, {}, message.context);
  if (driver_.cuStreamBatchMemOp == nullptr) return Fail(call, kNotSupported, {}, message.context);
  std::vector<CUstreamBatchMemOpParams> operations;
  if (const int32_t status = FillValues(message.values, &operations); status != 0) {
    return Fail(call, status, {}, message.context);
  }
  return Finish(call,
                driver_.cuStreamBatchMemOp(at.native(), static_cast<unsigned>(operations.size()), operations.data(), 0),
                message.context);
}

int32_t CudaBackend::FillBatch(const cuda::NodeParameters& from, std::vector<CUstreamBatchMemOpParams>* operations,
                               CUDA_BATCH_MEM_OP_NODE_PARAMS* to) {
  int32_t status = 0;
  const Context* context = Enter(from.context, &status);
  if (context == nullptr) return status;
  if (status = FillValues(from.values, operations); status != 0) return status;
  to->ctx = context->native;
  to->count = static_cast<unsigned>(operations->size());
  to->paramArray = operations->data();
  return 0;
}

int32_t CudaBackend::DescribeBatch(CUgraphNode node, std::vector<cuda::StreamValue>* values) {
  if (driver_.cuGraphBatchMemOpNodeGetParams == nullptr) return kNotSupported;
  CUDA_BATCH_MEM_OP_NODE_PARAMS native{};
  if (const CUresult result = driver_.cuGraphBatchMemOpNodeGetParams(node, &native); result != CUDA_SUCCESS) {
    return result;
  }
  for (unsigned i = 0; i < native.count; ++i) {
    cuda::StreamValue value;
    if (FromNative(native.paramArray[i], &value)) values->push_back(value);
  }
  return 0;
}

}  // namespace hawser::server::cuda_backend
