// SPDX-License-Identifier: Apache-2.0
// Creating and ending programs.
#include "interposer/opencl/program.h"

#include <algorithm>

#include "interposer/opencl/delivery.h"
#include "interposer/opencl/entry.h"
#include "interposer/opencl/info_filter.h"
#include "proto/opencl/guest_entries.h"

namespace hawser::ocl {
namespace {

/// Ends a program that the caller of clCreate... will never see.
cl_program Fail(cl_program program, cl_int error, cl_int* errcode) {
  if (errcode != nullptr) *errcode = error;
  if (program != nullptr) ReleaseObject(program);
  return nullptr;
}

cl_program Succeed(cl_program program, cl_int* errcode) {
  if (errcode != nullptr) *errcode = CL_SUCCESS;
  return program;
}

}  // namespace

cl_program NewProgram(cl_context context, _cl_program::Origin origin, cl_uint num_devices,
                      const cl_device_id* devices) {
  guest::Session* session = context->session;
  auto* program = new _cl_program(Magic::kProgram, session, session->NewId(HandleTraits<cl_program>::kType));
  program->context = Use(context);
  program->origin = origin;
  if (devices == nullptr) {
    program->devices = context->devices;
  } else {
    program->devices.assign(devices, devices + num_devices);
  }
  Registry::Get().Add(program);
  return program;
}

cl_int CheckDevices(cl_uint num_devices, const cl_device_id* devices, const std::vector<cl_device_id>& known,
                    std::vector<wire::Id>* ids) {
  if ((num_devices == 0) != (devices == nullptr)) return CL_INVALID_VALUE;
  for (cl_uint i = 0; i < num_devices; ++i) {
    if (const cl_int error = CheckHandle(devices[i])) return error;
    if (std::find(known.begin(), known.end(), devices[i]) == known.end()) return CL_INVALID_DEVICE;
    ids->push_back(devices[i]->id);
  }
  return CL_SUCCESS;
}

void Destroy(cl_program program) {
  RunDestructors(program->session, std::move(program->release_callbacks));
  Registry::Get().Remove(program);
  SendRelease(*program);
  cl_context context = program->context;
  program->magic = Magic::kFreed;
  delete program;
  DropUse(context);
}

// ---------------------------------------------------------------------- entry points

cl_program CL_API_CALL clCreateProgramWithSource(cl_context context, cl_uint count, const char** strings,
                                                 const size_t* lengths, cl_int* errcode) {
  if (const cl_int error = CheckHandle(context)) return Fail(nullptr, error, errcode);
  if (count == 0 || strings == nullptr) return Fail(nullptr, CL_INVALID_VALUE, errcode);
  std::string source;
  for (cl_uint i = 0; i < count; ++i) {
    if (strings[i] == nullptr) return Fail(nullptr, CL_INVALID_VALUE, errcode);
    if (lengths != nullptr && lengths[i] != 0) {
      source.append(strings[i], lengths[i]);
    } else {
      source.append(strings[i]);
    }
  }
  cl_program program = NewProgram(context, _cl_program::Origin::kSource, 0, nullptr);
  program->source = std::move(source);
  opencl::CreateProgramWithSource message;
  message.program = program->id;
  message.context = context->id;
  message.source = wire::AsBytes(program->source);
  if (const cl_int error = context->session->Send(message)) return Fail(program, error, errcode);
  return Succeed(program, errcode);
}

cl_program CL_API_CALL clCreateProgramWithIL(cl_context context, const void* il, size_t length, cl_int* errcode) {
  if (const cl_int error = CheckHandle(context)) return Fail(nullptr, error, errcode);
  const bool takes_il = std::any_of(context->devices.begin(), context->devices.end(), [](cl_device_id device) {
    return !TextOf(device->info, CL_DEVICE_IL_VERSION).empty();
  });
  if (!takes_il) return Fail(nullptr, CL_INVALID_OPERATION, errcode);
  if (il == nullptr || length == 0) return Fail(nullptr, CL_INVALID_VALUE, errcode);
  cl_program program = NewProgram(context, _cl_program::Origin::kIL, 0, nullptr);
  const auto* bytes = static_cast<const std::byte*>(il);
  program->il.assign(bytes, bytes + length);
  opencl::CreateProgramWithIL message;
  message.program = program->id;
  message.context = context->id;
  message.il = program->il;
  if (const cl_int error = context->session->Send(message)) return Fail(program, error, errcode);
  return Succeed(program, errcode);
}

cl_program CL_API_CALL clCreateProgramWithBinary(cl_context context, cl_uint num_devices, const cl_device_id* devices,
                                                 const size_t* lengths, const unsigned char** binaries,
                                                 cl_int* binary_status, cl_int* errcode) {
  if (const cl_int error = CheckHandle(context)) return Fail(nullptr, error, errcode);
  if (num_devices == 0 || devices == nullptr || lengths == nullptr || binaries == nullptr) {
    return Fail(nullptr, CL_INVALID_VALUE, errcode);
  }
  std::vector<wire::Id> ids;
  if (const cl_int error = CheckDevices(num_devices, devices, context->devices, &ids)) {
    return Fail(nullptr, error, errcode);
  }
  std::vector<opencl::Blob> blobs(num_devices);
  bool complete = true;
  for (cl_uint i = 0; i < num_devices; ++i) {
    const bool given = lengths[i] != 0 && binaries[i] != nullptr;
    complete = complete && given;
    if (binary_status != nullptr) binary_status[i] = given ? CL_SUCCESS : CL_INVALID_VALUE;
    if (given) blobs[i].data = wire::AsBytes(binaries[i], lengths[i]);
  }
  if (!complete) return Fail(nullptr, CL_INVALID_VALUE, errcode);

  cl_program program = NewProgram(context, _cl_program::Origin::kBinary, num_devices, devices);
  opencl::CreateProgramWithBinary message;
  message.program = program->id;
  message.context = context->id;
  message.devices = wire::ArrayView<wire::Id>(ids.data(), ids.size());
  message.binaries = wire::ListView<opencl::Blob>(blobs);
  std::vector<std::byte> payload;
  if (const cl_int error = context->session->Call(opencl::Opcode::kCreateProgramWithBinary, message, &payload)) {
    return Fail(program, error, errcode);
  }
  opencl::BinaryStatus reply;
  wire::Reader reader(payload);
  if (!reply.Decode(reader)) return Fail(program, guest::Session::lost_code(), errcode);
  for (cl_uint i = 0; binary_status != nullptr && i < std::min<cl_uint>(num_devices, reply.binary_status.size()); ++i) {
    binary_status[i] = reply.binary_status[i];
  }
  if (reply.status != CL_SUCCESS) return Fail(program, reply.status, errcode);
  return Succeed(program, errcode);
}

cl_program CL_API_CALL clCreateProgramWithBuiltInKernels(cl_context context, cl_uint num_devices,
                                                         const cl_device_id* devices, const char* names,
                                                         cl_int* errcode) {
  if (const cl_int error = CheckHandle(context)) return Fail(nullptr, error, errcode);
  if (num_devices == 0 || devices == nullptr || names == nullptr) return Fail(nullptr, CL_INVALID_VALUE, errcode);
  std::vector<wire::Id> ids;
  if (const cl_int error = CheckDevices(num_devices, devices, context->devices, &ids)) {
    return Fail(nullptr, error, errcode);
  }
  cl_program program = NewProgram(context, _cl_program::Origin::kBuiltIn, num_devices, devices);
  opencl::CreateProgramWithBuiltInKernels message;
  message.program = program->id;
  message.context = context->id;
  message.devices = wire::ArrayView<wire::Id>(ids.data(), ids.size());
  message.names = names;
  std::vector<std::byte> payload;
  if (const cl_int error =
          context->session->Call(opencl::Opcode::kCreateProgramWithBuiltInKernels, message, &payload)) {
    return Fail(program, error, errcode);
  }
  opencl::BuildResult reply;
  wire::Reader reader(payload);
  if (!reply.Decode(reader)) return Fail(program, guest::Session::lost_code(), errcode);
  if (reply.status != CL_SUCCESS) return Fail(program, reply.status, errcode);
  ApplyBuild(program, reply);
  program->executable = true;
  return Succeed(program, errcode);
}

cl_int CL_API_CALL clSetProgramReleaseCallback(cl_program program, void(CL_CALLBACK* function)(cl_program, void*),
                                               void* user_data) {
  if (const cl_int error = CheckHandle(program)) return error;
  if (function == nullptr) return CL_INVALID_VALUE;
  std::lock_guard lock(program->mutex);
  program->release_callbacks.push_back([program, function, user_data] { function(program, user_data); });
  return CL_SUCCESS;
}

cl_int CL_API_CALL clSetProgramSpecializationConstant(cl_program program, cl_uint spec_id, size_t size,
                                                      const void* value) {
  if (const cl_int error = CheckHandle(program)) return error;
  if (program->origin != _cl_program::Origin::kIL) return CL_INVALID_PROGRAM;
  if (value == nullptr || size == 0) return CL_INVALID_VALUE;
  opencl::SetProgramSpecializationConstant message;
  message.program = program->id;
  message.spec_id = spec_id;
  message.value = wire::AsBytes(value, size);
  opencl::Status reply;
  if (const cl_int error =
          program->session->CallInto(opencl::Opcode::kSetProgramSpecializationConstant, message, &reply)) {
    return error;
  }
  return reply.status;
}

}  // namespace hawser::ocl
