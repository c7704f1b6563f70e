// SPDX-License-Identifier: Apache-2.0
#include "interposer/opencl/query.h"

#include "proto/opencl/messages.h"

namespace hawser::ocl {

cl_int QueryServer(QueryKind kind, const Object& object, cl_device_id device, cl_uint param, wire::Bytes input,
                   std::vector<std::byte>* value) {
  constexpr uint64_t kMaxAnswer = 1u << 20;
  opencl::Query message;
  message.kind = static_cast<uint32_t>(kind);
  message.object = object.id;
  if (device != nullptr) message.device = device->id;
  message.param = param;
  message.input = input;
  message.max_size = kMaxAnswer;
  std::vector<std::byte> payload;
  if (const cl_int error = object.session->Call(opencl::Opcode::kQueryObject, message, &payload)) return error;
  opencl::QueryReply reply;
  wire::Reader reader(payload);
  if (!reply.Decode(reader)) return guest::Session::lost_code();
  value->assign(reply.value.begin(), reply.value.end());
  return reply.status;
}

cl_int ReturnQuery(QueryKind kind, const Object& object, cl_device_id device, cl_uint param, wire::Bytes input,
                   size_t size, void* out, size_t* size_ret) {
  std::vector<std::byte> value;
  if (const cl_int error = QueryServer(kind, object, device, param, input, &value)) return error;
  return ReturnInfo(value.data(), value.size(), size, out, size_ret);
}

}  // namespace hawser::ocl
