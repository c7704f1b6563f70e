// SPDX-License-Identifier: Apache-2.0
// Queries about programs: answered from what builds told, except for binaries.
#include <algorithm>

#include "interposer/opencl/entry.h"
#include "interposer/opencl/program.h"
#include "interposer/opencl/query.h"
#include "proto/opencl/guest_entries.h"

namespace hawser::ocl {
namespace {

/// Fetches the binaries once; they are remembered until the next build.
cl_int FetchBinaries(cl_program program) {
  {
    std::lock_guard lock(program->mutex);
    if (program->binaries_known) return CL_SUCCESS;
  }
  opencl::GetProgramBinaries message;
  message.program = program->id;
  std::vector<std::byte> payload;
  if (const cl_int error = program->session->Call(opencl::Opcode::kGetBinaries, message, &payload)) return error;
  opencl::ProgramBinaries reply;
  wire::Reader reader(payload);
  if (!reply.Decode(reader)) return guest::Session::lost_code();
  if (reply.status != CL_SUCCESS) return reply.status;
  std::lock_guard lock(program->mutex);
  program->binaries.clear();
  reply.binaries.ForEach(
      [&](const opencl::Blob& blob) { program->binaries.emplace_back(blob.data.begin(), blob.data.end()); });
  program->binaries.resize(program->devices.size());
  program->binaries_known = true;
  return CL_SUCCESS;
}

cl_int ReturnBinarySizes(cl_program program, size_t size, void* value, size_t* size_ret) {
  const size_t needed = program->devices.size() * sizeof(size_t);
  if (value == nullptr) return ReturnInfo(nullptr, needed, size, nullptr, size_ret);
  if (const cl_int error = FetchBinaries(program)) return error;
  std::vector<size_t> sizes;
  std::lock_guard lock(program->mutex);
  for (const auto& binary : program->binaries) sizes.push_back(binary.size());
  return ReturnInfo(sizes.data(), needed, size, value, size_ret);
}

cl_int ReturnBinaries(cl_program program, size_t size, void* value, size_t* size_ret) {
  const size_t needed = program->devices.size() * sizeof(unsigned char*);
  if (value == nullptr) return ReturnInfo(nullptr, needed, size, nullptr, size_ret);
  if (size < needed) return CL_INVALID_VALUE;
  if (const cl_int error = FetchBinaries(program)) return error;
  auto** pointers = static_cast<unsigned char**>(value);
  std::lock_guard lock(program->mutex);
  for (size_t i = 0; i < program->binaries.size(); ++i) {
    const auto& binary = program->binaries[i];
    if (pointers[i] != nullptr && !binary.empty()) std::memcpy(pointers[i], binary.data(), binary.size());
  }
  if (size_ret != nullptr) *size_ret = needed;
  return CL_SUCCESS;
}

cl_int ReturnKernels(cl_program program, cl_program_info param, size_t size, void* value, size_t* size_ret) {
  std::string names;
  size_t count = 0;
  {
    std::lock_guard lock(program->mutex);
    if (!program->executable) return CL_INVALID_PROGRAM_EXECUTABLE;
    if (program->kernels_status == CL_SUCCESS) {
      for (const auto& kernel : program->kernels) {
        if (count++ != 0) names += ';';
        names += kernel->name;
      }
    } else {
      count = SIZE_MAX;
    }
  }
  if (count == SIZE_MAX) return ReturnQuery(QueryKind::kProgram, *program, nullptr, param, {}, size, value, size_ret);
  if (param == CL_PROGRAM_NUM_KERNELS) return ReturnInfo(count, size, value, size_ret);
  return ReturnString(names, size, value, size_ret);
}

}  // namespace

cl_int CL_API_CALL clGetProgramInfo(cl_program program, cl_program_info param, size_t size, void* value,
                                    size_t* size_ret) {
  if (const cl_int error = CheckHandle(program)) return error;
  switch (param) {
    case CL_PROGRAM_REFERENCE_COUNT:
      return ReturnInfo(cl_uint{program->refs}, size, value, size_ret);
    case CL_PROGRAM_CONTEXT:
      return ReturnInfo(program->context, size, value, size_ret);
    case CL_PROGRAM_NUM_DEVICES:
      return ReturnInfo(static_cast<cl_uint>(program->devices.size()), size, value, size_ret);
    case CL_PROGRAM_DEVICES:
      return ReturnInfo(program->devices.data(), program->devices.size() * sizeof(cl_device_id), size, value, size_ret);
    case CL_PROGRAM_SOURCE:
      return ReturnString(program->source, size, value, size_ret);
    case CL_PROGRAM_IL:
      return ReturnInfo(program->il.data(), program->il.size(), size, value, size_ret);
    case CL_PROGRAM_BINARY_SIZES:
      return ReturnBinarySizes(program, size, value, size_ret);
    case CL_PROGRAM_BINARIES:
      return ReturnBinaries(program, size, value, size_ret);
    case CL_PROGRAM_NUM_KERNELS:
    case CL_PROGRAM_KERNEL_NAMES:
      return ReturnKernels(program, param, size, value, size_ret);
    case CL_PROGRAM_SCOPE_GLOBAL_CTORS_PRESENT:
    case CL_PROGRAM_SCOPE_GLOBAL_DTORS_PRESENT:
      return ReturnQuery(QueryKind::kProgram, *program, nullptr, param, {}, size, value, size_ret);
    default:
      return CL_INVALID_VALUE;
  }
}

cl_int CL_API_CALL clGetProgramBuildInfo(cl_program program, cl_device_id device, cl_program_build_info param,
                                         size_t size, void* value, size_t* size_ret) {
  if (const cl_int error = CheckHandle(program)) return error;
  if (const cl_int error = CheckHandle(device)) return error;
  const auto& devices = program->devices;
  if (std::find(devices.begin(), devices.end(), device) == devices.end()) return CL_INVALID_DEVICE;
  const bool building = program->building.load(std::memory_order_acquire);
  DeviceBuildState state;
  bool known = false;
  {
    std::lock_guard lock(program->mutex);
    if (const auto it = program->builds.find(device->id.raw()); it != program->builds.end()) {
      state = it->second;
      known = true;
    }
  }
  switch (param) {
    case CL_PROGRAM_BUILD_STATUS:
      return ReturnInfo(building ? cl_build_status{CL_BUILD_IN_PROGRESS} : state.status, size, value, size_ret);
    case CL_PROGRAM_BUILD_OPTIONS:
      return ReturnString(state.options, size, value, size_ret);
    case CL_PROGRAM_BUILD_LOG:
      return ReturnString(state.log, size, value, size_ret);
    case CL_PROGRAM_BINARY_TYPE:
      // Before it is built, only the server knows what is in a binary.
      if (!known && !building && program->origin == _cl_program::Origin::kBinary) {
        return ReturnQuery(QueryKind::kProgramBuild, *program, device, param, {}, size, value, size_ret);
      }
      return ReturnInfo(state.binary_type, size, value, size_ret);
    case CL_PROGRAM_BUILD_GLOBAL_VARIABLE_TOTAL_SIZE:
      return ReturnInfo(state.global_variable_size, size, value, size_ret);
    default:
      return CL_INVALID_VALUE;
  }
}

}  // namespace hawser::ocl
