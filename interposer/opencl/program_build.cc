// SPDX-License-Identifier: Apache-2.0
// Building, compiling and linking. A call without callback waits for the server's result; a call with one returns at
// once, and the result is taken over by whichever thread receives it, before the callback runs on the callback thread.
#include <algorithm>
#include <optional>

#include "interposer/opencl/delivery.h"
#include "interposer/opencl/entry.h"
#include "interposer/opencl/include_expander.h"
#include "interposer/opencl/kernel_types.h"
#include "interposer/opencl/program.h"
#include "proto/opencl/guest_entries.h"

namespace hawser::ocl {
namespace {

using BuildNotify = void(CL_CALLBACK*)(cl_program, void*);

std::shared_ptr<const KernelMetadata> ToMetadata(const opencl::KernelInfo& info) {
  auto kernel = std::make_shared<KernelMetadata>();
  kernel->name = info.name;
  kernel->attributes = info.attributes;
  info.args.ForEach([&](const opencl::KernelArg& arg) {
    KernelMetadata::Arg& copy = kernel->args.emplace_back();
    copy.status = arg.status;
    copy.address = arg.address_qualifier;
    copy.access = arg.access_qualifier;
    copy.type_qualifier = arg.type_qualifier;
    copy.type_name = arg.type_name;
    copy.name = arg.name;
    Classify(copy);
  });
  kernel->accepted = std::make_unique<std::atomic<uint64_t>[]>(kernel->args.size());
  info.work_groups.ForEach([&](const opencl::KernelWorkGroup& group) {
    InfoMap& values = kernel->work_groups[group.device.raw()];
    group.info.ForEach([&](const opencl::InfoValue& value) {
      values[value.param] = {value.status, std::vector<std::byte>(value.value.begin(), value.value.end())};
    });
  });
  return kernel;
}

/// The result of a build that nobody waits for. Deletes itself.
class BuildSink final : public guest::ReplySink {
 public:
  BuildSink(cl_program program, BuildNotify notify, void* user_data)
      : program_(Use(program)), notify_(notify), user_data_(user_data) {}

  void OnReply(wire::Bytes payload) override {
    opencl::BuildResult result;
    wire::Reader reader(payload);
    if (result.Decode(reader)) {
      ApplyBuild(program_, result);
    } else {
      MarkBroken();
    }
    Finish();
  }
  void OnLost() override {
    MarkBroken();
    Finish();
  }

 private:
  void MarkBroken() {
    std::lock_guard lock(program_->mutex);
    for (cl_device_id device : program_->devices) program_->builds[device->id.raw()].status = CL_BUILD_ERROR;
  }
  void Finish() {
    program_->building.store(false, std::memory_order_release);
    guest::Session* session = program_->session;
    session->PostCallback([program = program_, notify = notify_, user_data = user_data_, session] {
      notify(program, user_data);
      session->RemoveListener();
      DropUse(program);
    });
    delete this;
  }

  cl_program program_;
  BuildNotify notify_;
  void* user_data_;
};

/// Sends a build of any kind. The program is marked as building already.
template <typename Message>
cl_int Run(cl_program program, opencl::Opcode opcode, const Message& message, BuildNotify notify, void* user_data) {
  guest::Session* session = program->session;
  if (notify != nullptr) {
    auto* sink = new BuildSink(program, notify, user_data);
    session->AddListener();
    const cl_int error = session->SendForReply(opcode, message, sink);
    if (error == CL_SUCCESS) {
      session->Flush();
      return CL_SUCCESS;
    }
    session->RemoveListener();
    program->building.store(false, std::memory_order_release);
    delete sink;
    DropUse(program);
    return error;
  }
  std::vector<std::byte> payload;
  cl_int status = session->Call(opcode, message, &payload);
  if (status == CL_SUCCESS) {
    opencl::BuildResult result;
    wire::Reader reader(payload);
    if (result.Decode(reader)) {
      ApplyBuild(program, result);
      status = result.status;
    } else {
      status = guest::Session::lost_code();
    }
  }
  program->building.store(false, std::memory_order_release);
  return status;
}

/// What clBuildProgram and clCompileProgram check alike. On success the program is marked as building.
cl_int Begin(cl_program program, cl_uint num_devices, const cl_device_id* devices, BuildNotify notify, void* user_data,
             std::vector<wire::Id>* ids) {
  if (const cl_int error = CheckHandle(program)) return error;
  if (notify == nullptr && user_data != nullptr) return CL_INVALID_VALUE;
  if (const cl_int error = CheckDevices(num_devices, devices, program->devices, ids)) return error;
  if (program->origin == _cl_program::Origin::kBuiltIn) return CL_INVALID_OPERATION;
  if (program->attached_kernels.load(std::memory_order_acquire) != 0) return CL_INVALID_OPERATION;
  if (program->building.exchange(true, std::memory_order_acq_rel)) return CL_INVALID_OPERATION;
  return CL_SUCCESS;
}

/// The program's source with the guest's files in it, if it includes any.
std::optional<std::string> SourceWithFiles(cl_program program, const char* options, std::vector<std::string> kept) {
  if (program->origin != _cl_program::Origin::kSource) return std::nullopt;
  IncludeExpander expander(IncludeDirectories(options != nullptr ? options : ""), &ReadIncludeFile, std::move(kept));
  return expander.Expand(program->source);
}

}  // namespace

void ApplyBuild(cl_program program, const opencl::BuildResult& result) {
  std::vector<std::shared_ptr<const KernelMetadata>> kernels;
  result.kernels.ForEach([&](const opencl::KernelInfo& info) { kernels.push_back(ToMetadata(info)); });
  std::lock_guard lock(program->mutex);
  // A call that was refused before it began leaves everything as it was.
  if (result.builds.empty() && result.status != CL_SUCCESS) return;
  bool executable = false;
  result.builds.ForEach([&](const opencl::DeviceBuild& build) {
    DeviceBuildState& state = program->builds[build.device.raw()];
    state.status = build.status;
    state.binary_type = build.binary_type;
    state.global_variable_size = build.global_variable_size;
    state.log = build.log;
    state.options = build.options;
    executable =
        executable || (build.status == CL_BUILD_SUCCESS && build.binary_type == CL_PROGRAM_BINARY_TYPE_EXECUTABLE);
  });
  program->executable = executable && result.status == CL_SUCCESS;
  program->kernels = std::move(kernels);
  program->kernels_status = program->executable ? static_cast<cl_int>(result.kernels_status) : CL_SUCCESS;
  program->binaries_known = false;
  program->binaries.clear();
}

// ---------------------------------------------------------------------- entry points

cl_int CL_API_CALL clBuildProgram(cl_program program, cl_uint num_devices, const cl_device_id* devices,
                                  const char* options, BuildNotify notify, void* user_data) {
  std::vector<wire::Id> ids;
  if (const cl_int error = Begin(program, num_devices, devices, notify, user_data, &ids)) return error;
  opencl::BuildProgram message;
  message.program = program->id;
  message.devices = wire::ArrayView<wire::Id>(ids.data(), ids.size());
  if (options != nullptr) message.options = options;
  const std::optional<std::string> source = SourceWithFiles(program, options, {});
  if (source) message.source = wire::AsBytes(*source);
  return Run(program, opencl::Opcode::kBuildProgram, message, notify, user_data);
}

cl_int CL_API_CALL clCompileProgram(cl_program program, cl_uint num_devices, const cl_device_id* devices,
                                    const char* options, cl_uint num_headers, const cl_program* headers,
                                    const char** header_names, BuildNotify notify, void* user_data) {
  if (const cl_int error = CheckHandle(program)) return error;
  if ((num_headers == 0) != (headers == nullptr) || (num_headers == 0) != (header_names == nullptr)) {
    return CL_INVALID_VALUE;
  }
  std::vector<opencl::Header> list(num_headers);
  for (cl_uint i = 0; i < num_headers; ++i) {
    if (const cl_int error = CheckHandle(headers[i])) return error;
    if (header_names[i] == nullptr) return CL_INVALID_VALUE;
    list[i].program = headers[i]->id;
    list[i].name = header_names[i];
  }
  std::vector<wire::Id> ids;
  if (const cl_int error = Begin(program, num_devices, devices, notify, user_data, &ids)) return error;
  opencl::CompileProgram message;
  message.program = program->id;
  message.devices = wire::ArrayView<wire::Id>(ids.data(), ids.size());
  if (options != nullptr) message.options = options;
  message.headers = wire::ListView<opencl::Header>(list);
  std::vector<std::string> provided(header_names, header_names + num_headers);
  const std::optional<std::string> source = SourceWithFiles(program, options, std::move(provided));
  if (source) message.source = wire::AsBytes(*source);
  return Run(program, opencl::Opcode::kCompileProgram, message, notify, user_data);
}

namespace {

cl_int Link(cl_context context, cl_uint num_devices, const cl_device_id* devices, const char* options,
            cl_uint num_inputs, const cl_program* inputs, BuildNotify notify, void* user_data, cl_program* out) {
  if (const cl_int error = CheckHandle(context)) return error;
  if (num_inputs == 0 || inputs == nullptr || (notify == nullptr && user_data != nullptr)) return CL_INVALID_VALUE;
  std::vector<wire::Id> device_ids, input_ids;
  if (const cl_int error = CheckDevices(num_devices, devices, context->devices, &device_ids)) return error;
  for (cl_uint i = 0; i < num_inputs; ++i) {
    if (const cl_int error = CheckHandle(inputs[i])) return error;
    if (inputs[i]->context != context) return CL_INVALID_PROGRAM;
    if (inputs[i]->building.load(std::memory_order_acquire)) return CL_INVALID_OPERATION;
    input_ids.push_back(inputs[i]->id);
  }
  cl_program program = NewProgram(context, _cl_program::Origin::kLinked, num_devices, devices);
  program->building.store(true, std::memory_order_relaxed);
  opencl::LinkProgram message;
  message.program = program->id;
  message.context = context->id;
  message.devices = wire::ArrayView<wire::Id>(device_ids.data(), device_ids.size());
  if (options != nullptr) message.options = options;
  message.inputs = wire::ArrayView<wire::Id>(input_ids.data(), input_ids.size());
  const cl_int error = Run(program, opencl::Opcode::kLinkProgram, message, notify, user_data);
  if (error != CL_SUCCESS) {
    ReleaseObject(program);
    return error;
  }
  *out = program;
  return CL_SUCCESS;
}

}  // namespace

cl_program CL_API_CALL clLinkProgram(cl_context context, cl_uint num_devices, const cl_device_id* devices,
                                     const char* options, cl_uint num_inputs, const cl_program* inputs,
                                     BuildNotify notify, void* user_data, cl_int* errcode) {
  cl_program program = nullptr;
  const cl_int error = Link(context, num_devices, devices, options, num_inputs, inputs, notify, user_data, &program);
  if (errcode != nullptr) *errcode = error;
  return program;
}

}  // namespace hawser::ocl
