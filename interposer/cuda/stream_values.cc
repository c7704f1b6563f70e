// SPDX-License-Identifier: Apache-2.0
#include "interposer/cuda/stream_values.h"

namespace hawser::cu {
namespace {

constexpr unsigned kMostOperations = 256;

}  // namespace

CUresult ToWire(const CUstreamBatchMemOpParams* operations, unsigned count, std::vector<cuda::StreamValue>* values) {
  if (operations == nullptr || count == 0 || count > kMostOperations) return CUDA_ERROR_INVALID_VALUE;
  values->clear();
  for (unsigned i = 0; i < count; ++i) {
    const CUstreamBatchMemOpParams& from = operations[i];
    cuda::StreamValue value;
    switch (from.operation) {
      case CU_STREAM_MEM_OP_WAIT_VALUE_32:
      case CU_STREAM_MEM_OP_WAIT_VALUE_64:
        value.wait = 1;
        value.wide = from.operation == CU_STREAM_MEM_OP_WAIT_VALUE_64 ? 1 : 0;
        value.address = from.waitValue.address;
        value.value = value.wide != 0 ? from.waitValue.value64 : from.waitValue.value;
        value.flags = from.waitValue.flags;
        break;
      case CU_STREAM_MEM_OP_WRITE_VALUE_32:
      case CU_STREAM_MEM_OP_WRITE_VALUE_64:
        value.wide = from.operation == CU_STREAM_MEM_OP_WRITE_VALUE_64 ? 1 : 0;
        value.address = from.writeValue.address;
        value.value = value.wide != 0 ? from.writeValue.value64 : from.writeValue.value;
        value.flags = from.writeValue.flags;
        break;
      case CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES:
      case CU_STREAM_MEM_OP_BARRIER:
        continue;  // Commands of one stream are in order anyway.
      default:
        return CUDA_ERROR_INVALID_VALUE;
    }
    values->push_back(value);
  }
  return CUDA_SUCCESS;
}

CUstreamBatchMemOpParams FromWire(const cuda::StreamValue& value) {
  CUstreamBatchMemOpParams operation{};
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

}  // namespace hawser::cu
