// SPDX-License-Identifier: Apache-2.0
// Programs: creation, and building on the builder thread.
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "server/backends/opencl/backend.h"
#include "server/backends/opencl/slicing/carry.h"
#include "server/backends/opencl/slicing/il/il_carry.h"

namespace hawser::server::ocl {
namespace {

// Some drivers know a kernel's arguments only when asked in time. The guest needs them to tell values from objects.
constexpr std::string_view kArgInfo = "-cl-kernel-arg-info";

std::string WithArgInfo(std::string_view options) {
  std::string all(options);
  all.resize(std::min(all.find('\0'), all.size()));
  if (all.find(kArgInfo) == std::string::npos) all.append(all.empty() ? "" : " ").append(kArgInfo);
  return all;
}

std::vector<std::string_view> Split(std::string_view names) {
  std::vector<std::string_view> parts;
  for (size_t begin = 0, end = 0; begin <= names.size(); begin = end + 1) {
    end = std::min(names.find(';', begin), names.size());
    parts.push_back(names.substr(begin, end - begin));
  }
  return parts;
}

// Some device has each of the names, which are separated by semicolons. Asked here, because Intel's CPU runtime 2026.2
// takes any name, and fails when the program is released.
bool HaveBuiltInKernels(const std::vector<NamedDevice>& devices, std::string_view names) {
  std::set<std::string, std::less<>> known;
  for (const NamedDevice& device : devices) {
    size_t size = 0;
    if (clGetDeviceInfo(device.native, CL_DEVICE_BUILT_IN_KERNELS, 0, nullptr, &size) != CL_SUCCESS) continue;
    std::string all(size, '\0');
    if (clGetDeviceInfo(device.native, CL_DEVICE_BUILT_IN_KERNELS, size, all.data(), nullptr) != CL_SUCCESS) continue;
    for (const std::string_view name : Split(all.c_str())) known.emplace(name);
  }
  for (const std::string_view name : Split(names)) {
    if (known.find(name) == known.end()) return false;
  }
  return true;
}

std::vector<cl_device_id> Natives(const std::vector<NamedDevice>& devices) {
  std::vector<cl_device_id> natives;
  for (const NamedDevice& device : devices) natives.push_back(device.native);
  return natives;
}

}  // namespace

// What a job of the builder needs, owned.
struct OpenClBackend::BuildJob {
  Replies* replies;
  opencl::Opcode opcode;
  uint64_t seq;
  std::shared_ptr<Program> program;
  Splitter* splitter = nullptr;              ///< Null: nothing is split.
  std::vector<NamedDevice> devices;          ///< Those that the call names.
  std::vector<NamedDevice> program_devices;  ///< All of the program's.
  std::vector<Handle<cl_device_id>> kept;    ///< Sub-devices may be released meanwhile.
  std::string guest_options;
  std::map<uint32_t, std::vector<std::byte>> specialization;
  std::vector<Handle<cl_program>> inputs;
  std::vector<std::string> names;

  void Keep() {
    for (const NamedDevice& device : program_devices) kept.push_back(Handle<cl_device_id>::Share(device.native));
    for (const NamedDevice& device : devices) kept.push_back(Handle<cl_device_id>::Share(device.native));
  }
  const std::vector<NamedDevice>& Targets() const { return devices.empty() ? program_devices : devices; }
  std::vector<cl_program> Inputs() const {
    std::vector<cl_program> natives;
    for (const Handle<cl_program>& input : inputs) natives.push_back(input.get());
    return natives;
  }

  void Build() const {
    auto split = std::make_shared<ProgramSplit>();
    if (splitter != nullptr) LookAtSource(split.get());
    const cl_int status = program->is_il ? BuildIl(split.get()) : BuildSource(split.get());
    // Refused because it has kernels: it is as it was.
    if (splitter != nullptr && status != CL_INVALID_OPERATION) program->SetSplit(std::move(split));
    Answer(program->native.load(), status, status == CL_SUCCESS);
  }
  cl_int BuildAs(cl_program native, const std::string& options) const {
    const std::vector<cl_device_id> natives = Natives(devices);
    return clBuildProgram(native, static_cast<cl_uint>(natives.size()), natives.empty() ? nullptr : natives.data(),
                          options.c_str(), nullptr, nullptr);
  }
  cl_int BuildSource(ProgramSplit* split) const {
    cl_program native = program->native.load();
    const std::string options = WithArgInfo(guest_options);
    const std::string with_prelude = options + " " + std::string(slicing::kCarryOption);
    const cl_int status = BuildAs(native, split->carries ? with_prelude : options);
    if (!split->carries || status == CL_SUCCESS || status == CL_INVALID_OPERATION) return status;
    // The guest shall see how its own text fails; or the compiler does not like the prelude, and that is our affair.
    split->carries = false;
    return BuildAs(native, options);
  }
  // Rewritten language is another program of the driver's, so it is tried with the first build only: later ones find
  // the program as it is, with the kernels that it has.
  cl_int BuildIl(ProgramSplit* split) const {
    const std::string options = WithArgInfo(guest_options);
    if (!program->was_built && split->carries) {
      Handle<cl_program> carried = MakeCarried();
      program->carries = carried && BuildAs(carried.get(), options) == CL_SUCCESS;
      if (program->carries) program->Replace(carried.Release());
    }
    const bool is_done = !program->was_built && program->carries;
    program->was_built = true;
    const cl_int status = is_done ? CL_SUCCESS : BuildAs(program->native.load(), options);
    split->carries = program->carries && status == CL_SUCCESS;
    return status;
  }
  Handle<cl_program> MakeCarried() const {
    const wire::Result<std::vector<uint32_t>> il = slicing::WithIlCarry(std::as_bytes(std::span(program->source)));
    if (!il.ok()) return {};
    cl_int status = CL_SUCCESS;
    Handle<cl_program> carried(clCreateProgramWithIL(program->context.get(), il.value().data(),
                                                     il.value().size() * sizeof(uint32_t), &status));
    for (const auto& [id, value] : specialization) {
      if (status == CL_SUCCESS) {
        status = clSetProgramSpecializationConstant(carried.get(), id, value.size(), value.data());
      }
    }
    return status == CL_SUCCESS ? std::move(carried) : Handle<cl_program>();
  }
  void LookAtSource(ProgramSplit* split) const {
    if (program->source.empty()) {
      split->traits = slicing::ProgramTraits::Unknown("its program is neither from source nor intermediate language");
      split->hash = scheduler::ProgramHash("", "");
      return;
    }
    split->traits = program->is_il ? slicing::ProgramTraits::ScanIl(std::as_bytes(std::span(program->source)))
                                   : slicing::ProgramTraits::Scan(program->source, guest_options);
    split->hash = scheduler::ProgramHash(program->source, OptionsAndConstants());
    split->carries =
        (program->has_prelude || program->is_il) && split->traits.wants_carry() && split->traits.may_carry();
    for (const NamedDevice& device : Targets()) {
      split->carries = split->carries && splitter->CanCarry(program->context.get(), device.native);
    }
  }
  // All but the text that says how fast a kernel is.
  std::string OptionsAndConstants() const {
    std::string all = guest_options;
    for (const auto& [id, value] : specialization) {
      all.append(1, '\0').append(std::to_string(id)).append(1, '=');
      all.append(reinterpret_cast<const char*>(value.data()), value.size());
    }
    return all;
  }
  void Compile() const {
    const std::vector<cl_device_id> natives = Natives(devices);
    const std::vector<cl_program> headers = Inputs();
    std::vector<const char*> header_names;
    for (const std::string& name : names) header_names.push_back(name.c_str());
    cl_program native = program->native.load();
    const cl_int status = clCompileProgram(
        native, static_cast<cl_uint>(natives.size()), natives.empty() ? nullptr : natives.data(),
        WithArgInfo(guest_options).c_str(), static_cast<cl_uint>(headers.size()),
        headers.empty() ? nullptr : headers.data(), headers.empty() ? nullptr : header_names.data(), nullptr, nullptr);
    Answer(native, status, false);
  }
  void Link() const {
    const std::vector<cl_device_id> natives = Natives(devices);
    const std::vector<cl_program> programs = Inputs();
    const std::string options(guest_options.c_str());
    cl_int status = CL_SUCCESS;
    cl_program native = clLinkProgram(
        program->context.get(), static_cast<cl_uint>(natives.size()), natives.empty() ? nullptr : natives.data(),
        options.c_str(), static_cast<cl_uint>(programs.size()), programs.data(), nullptr, nullptr, &status);
    if (native == nullptr) {
      program->error.store(status, std::memory_order_release);
    } else {
      program->native.store(native, std::memory_order_release);  // Also when it failed: it has the log.
    }
    const bool library = options.find("-create-library") != std::string::npos;
    Answer(native, status, status == CL_SUCCESS && !library);
  }
  void Answer(cl_program native, cl_int status, bool executable) const {
    BuildReport report;
    if (native != nullptr) {
      report.AddBuilds(native, Targets(), guest_options);
      if (executable) report.AddKernels(native, Targets());
    }
    replies->Send(opcode, seq, report.View(status), true);
  }
};

std::vector<NamedDevice> OpenClBackend::NamedDevices(const std::vector<wire::Id>& ids) {
  std::vector<NamedDevice> devices;
  for (const wire::Id id : ids) {
    // A sub-device that the guest has released is none any more.
    if (const Device* device = inventory_->Find(id); device != nullptr) {
      devices.push_back({id, device->device, device->version});
    }
  }
  return devices;
}

int32_t OpenClBackend::NamedDevices(const wire::ArrayView<wire::Id>& ids, std::vector<NamedDevice>* devices) {
  for (uint32_t i = 0; i < ids.size(); ++i) {
    int32_t status = CL_SUCCESS;
    const Device* device = UseDevice(ids[i], &status);
    if (device == nullptr) return status;
    devices->push_back({ids[i], device->device, device->version});
  }
  return CL_SUCCESS;
}

cl_program OpenClBackend::MakeFromSource(cl_context context, std::string_view source, bool* has_prelude,
                                         int32_t* status) {
  // A 0 ends a text for some compilers, and not for others.
  *has_prelude = Splits() && slicing::MayNeedCarry(source) && source.find('\0') == std::string_view::npos;
  const std::string with_prelude = *has_prelude ? slicing::WithCarryPrelude(source) : std::string();
  const char* text = *has_prelude ? with_prelude.data() : source.data();
  const size_t size = *has_prelude ? with_prelude.size() : source.size();
  return clCreateProgramWithSource(context, 1, &text, &size, status);
}

int32_t OpenClBackend::KeepProgram(const opencl::Call& call, wire::Id id, const Context& context, cl_program native) {
  ProgramObject object;
  object.program = std::make_shared<Program>();
  object.program->context = Handle<cl_context>::Share(context.native.get());
  object.program->devices = context.devices;
  object.program->version = context.version;
  object.program->native.store(native, std::memory_order_release);
  return Keep(call, id, std::move(object));
}

void OpenClBackend::MayPrint() {
  if (may_print_) return;
  may_print_ = true;
  if (services_.enable_kernel_output) services_.enable_kernel_output();
}

int32_t OpenClBackend::ReplaceSource(wire::Id id, wire::Bytes source) {
  int32_t status = CL_SUCCESS;
  ProgramObject* object = Use<ProgramObject>(id, "program", &status);
  if (object == nullptr) return status;
  const Program& old = *object->program;
  const auto* text = reinterpret_cast<const char*>(source.data());
  const size_t size = source.size();
  auto program = std::make_shared<Program>();
  cl_program native = MakeFromSource(old.context.get(), {text, size}, &program->has_prelude, &status);
  if (status != CL_SUCCESS) return status;
  if (Splits()) program->source.assign(text, size);
  if (std::string_view(text, size).find("printf") != std::string_view::npos) MayPrint();
  program->context = Handle<cl_context>::Share(old.context.get());
  program->devices = old.devices;
  program->version = old.version;
  program->native.store(native, std::memory_order_release);
  object->program = std::move(program);
  return CL_SUCCESS;
}

int32_t OpenClBackend::ReplyBuild(const opencl::Call& call, int32_t status) {
  Fail(call, status);
  opencl::BuildResult reply;
  reply.status = status;
  Reply(call, reply);
  return CL_SUCCESS;
}

int32_t OpenClBackend::CreateProgramWithSource(const opencl::Call& call,
                                               const opencl::CreateProgramWithSource& message) {
  int32_t status = CL_SUCCESS;
  const Context* context = Use<Context>(message.context, "context", &status);
  if (context == nullptr) return Fail(call, status, message.program);
  const auto* text = reinterpret_cast<const char*>(message.source.data());
  const size_t size = message.source.size();
  if (size == 0) return Fail(call, CL_INVALID_VALUE, message.program);
  bool has_prelude = false;
  cl_program native = MakeFromSource(context->native.get(), {text, size}, &has_prelude, &status);
  if (status != CL_SUCCESS) return Fail(call, status, message.program);
  // "include": who knows what a header does.
  const std::string_view source(text, size);
  if (source.find("printf") != std::string_view::npos || source.find("include") != std::string_view::npos) MayPrint();
  status = KeepProgram(call, message.program, *context, native);
  if (Splits() && status == CL_SUCCESS) {
    Program& program = *ShareProgram(message.program);
    program.source = source;
    program.has_prelude = has_prelude;
  }
  return status;
}

int32_t OpenClBackend::CreateProgramWithIL(const opencl::Call& call, const opencl::CreateProgramWithIL& message) {
  int32_t status = CL_SUCCESS;
  const Context* context = Use<Context>(message.context, "context", &status);
  if (context == nullptr) return Fail(call, status, message.program);
  if (context->version < 21) return Fail(call, CL_INVALID_OPERATION, message.program);
  cl_program native = clCreateProgramWithIL(context->native.get(), message.il.data(), message.il.size(), &status);
  if (status != CL_SUCCESS) return Fail(call, status, message.program);
  MayPrint();
  status = KeepProgram(call, message.program, *context, native);
  if (status == CL_SUCCESS) {
    Program& program = *ShareProgram(message.program);
    program.is_il = true;
    const auto* bytes = reinterpret_cast<const char*>(message.il.data());
    if (Splits()) program.source.assign(bytes, bytes + message.il.size());
  }
  return status;
}

int32_t OpenClBackend::CreateProgramWithBinary(const opencl::Call& call,
                                               const opencl::CreateProgramWithBinary& message) {
  opencl::BinaryStatus reply;
  std::vector<cl_int> binary_status;
  std::vector<NamedDevice> devices;
  std::vector<const unsigned char*> binaries;
  std::vector<size_t> sizes;
  const Context* context = Use<Context>(message.context, "context", &reply.status);
  if (context != nullptr) reply.status = NamedDevices(message.devices, &devices);
  message.binaries.ForEach([&](const opencl::Blob& blob) {
    binaries.push_back(reinterpret_cast<const unsigned char*>(blob.data.data()));
    sizes.push_back(blob.data.size());
  });
  if (reply.status == CL_SUCCESS && (devices.empty() || binaries.size() != devices.size())) {
    reply.status = Explain(CL_INVALID_VALUE, "there must be one binary for each device");
  }
  if (reply.status == CL_SUCCESS) {
    binary_status.resize(devices.size(), CL_INVALID_VALUE);
    cl_program native =
        clCreateProgramWithBinary(context->native.get(), static_cast<cl_uint>(devices.size()), Natives(devices).data(),
                                  sizes.data(), binaries.data(), binary_status.data(), &reply.status);
    if (reply.status == CL_SUCCESS) {
      MayPrint();
      reply.status = KeepProgram(call, message.program, *context, native);
      if (reply.status == CL_SUCCESS) {
        std::vector<wire::Id>& ids = ShareProgram(message.program)->devices;
        ids.clear();
        for (const NamedDevice& device : devices) ids.push_back(device.id);
      }
    }
  }
  if (reply.status != CL_SUCCESS) Fail(call, reply.status, message.program);
  reply.binary_status = wire::ArrayView<int32_t>(binary_status.data(), binary_status.size());
  Reply(call, reply);
  return CL_SUCCESS;
}

int32_t OpenClBackend::CreateProgramWithBuiltInKernels(const opencl::Call& call,
                                                       const opencl::CreateProgramWithBuiltInKernels& message) {
  int32_t status = CL_SUCCESS;
  std::vector<NamedDevice> devices;
  const Context* context = Use<Context>(message.context, "context", &status);
  if (context != nullptr) status = NamedDevices(message.devices, &devices);
  if (status == CL_SUCCESS && context->version < 12) status = CL_INVALID_OPERATION;
  if (status == CL_SUCCESS && devices.empty()) status = CL_INVALID_VALUE;
  if (status == CL_SUCCESS && !HaveBuiltInKernels(devices, message.names)) {
    status = Explain(CL_INVALID_VALUE, "no device has a built-in kernel of that name");
  }
  cl_program native = nullptr;
  if (status == CL_SUCCESS) {
    const std::string names(message.names);
    native = clCreateProgramWithBuiltInKernels(context->native.get(), static_cast<cl_uint>(devices.size()),
                                               Natives(devices).data(), names.c_str(), &status);
  }
  if (status == CL_SUCCESS) status = KeepProgram(call, message.program, *context, native);
  if (status != CL_SUCCESS) {
    objects_->Poison(message.program, status);
    return ReplyBuild(call, status);
  }
  BuildReport report;
  report.AddBuilds(native, devices, "");
  report.AddKernels(native, devices);
  Reply(call, report.View(CL_SUCCESS));
  return CL_SUCCESS;
}

int32_t OpenClBackend::BuildProgram(const opencl::Call& call, const opencl::BuildProgram& message) {
  int32_t status = CL_SUCCESS;
  cl_program native = nullptr;
  auto job = std::make_shared<BuildJob>();
  if (!message.source.empty()) status = ReplaceSource(message.program, message.source);
  if (status == CL_SUCCESS && UseProgram(message.program, "program", &status, &native) != nullptr) {
    status = NamedDevices(message.devices, &job->devices);
  }
  if (status != CL_SUCCESS) return ReplyBuild(call, status);
  job->replies = services_.replies;
  job->opcode = static_cast<opencl::Opcode>(call.opcode);
  job->seq = call.seq;
  job->program = ShareProgram(message.program);
  job->program_devices = NamedDevices(job->program->devices);
  job->guest_options = message.options;
  job->specialization = job->program->specialization;
  job->splitter = Splits() ? splitter_.get() : nullptr;
  job->Keep();
  if (message.options.find("printf") != std::string_view::npos) MayPrint();  // -D something=printf
  builder_->Post([job] { job->Build(); });
  return CL_SUCCESS;
}

int32_t OpenClBackend::CompileProgram(const opencl::Call& call, const opencl::CompileProgram& message) {
  int32_t status = CL_SUCCESS;
  cl_program native = nullptr;
  auto job = std::make_shared<BuildJob>();
  if (!message.source.empty()) status = ReplaceSource(message.program, message.source);
  const Program* program = status == CL_SUCCESS ? UseProgram(message.program, "program", &status, &native) : nullptr;
  if (program != nullptr) status = NamedDevices(message.devices, &job->devices);
  message.headers.ForEach([&](const opencl::Header& header) {
    if (status != CL_SUCCESS) return;
    cl_program input = nullptr;
    if (UseProgram(header.program, "header", &status, &input) == nullptr) return;
    job->inputs.push_back(Handle<cl_program>::Share(input));
    job->names.emplace_back(header.name);
  });
  if (status == CL_SUCCESS && program->version < 12) status = CL_INVALID_OPERATION;
  if (status != CL_SUCCESS) return ReplyBuild(call, status);
  job->replies = services_.replies;
  job->opcode = static_cast<opencl::Opcode>(call.opcode);
  job->seq = call.seq;
  job->program = ShareProgram(message.program);
  job->program_devices = NamedDevices(job->program->devices);
  job->guest_options = message.options;
  job->Keep();
  if (message.options.find("printf") != std::string_view::npos) MayPrint();
  builder_->Post([job] { job->Compile(); });
  return CL_SUCCESS;
}

int32_t OpenClBackend::LinkProgram(const opencl::Call& call, const opencl::LinkProgram& message) {
  int32_t status = CL_SUCCESS;
  auto job = std::make_shared<BuildJob>();
  const Context* context = Use<Context>(message.context, "context", &status);
  if (context != nullptr) status = NamedDevices(message.devices, &job->devices);
  for (uint32_t i = 0; i < message.inputs.size() && status == CL_SUCCESS; ++i) {
    cl_program input = nullptr;
    if (UseProgram(message.inputs[i], "input", &status, &input) == nullptr) break;
    job->inputs.push_back(Handle<cl_program>::Share(input));
  }
  if (status == CL_SUCCESS && job->inputs.empty()) status = CL_INVALID_VALUE;
  if (status == CL_SUCCESS && context->version < 12) status = CL_INVALID_OPERATION;
  // Until the linker is done the name is a program without a handle.
  if (status == CL_SUCCESS) status = KeepProgram(call, message.program, *context, nullptr);
  if (status != CL_SUCCESS) {
    objects_->Poison(message.program, status);
    return ReplyBuild(call, status);
  }
  job->replies = services_.replies;
  job->opcode = static_cast<opencl::Opcode>(call.opcode);
  job->seq = call.seq;
  job->program = ShareProgram(message.program);
  if (!job->devices.empty()) {
    job->program->devices.clear();
    for (const NamedDevice& device : job->devices) job->program->devices.push_back(device.id);
  }
  job->program_devices = NamedDevices(job->program->devices);
  job->guest_options = message.options;
  job->Keep();
  builder_->Post([job] { job->Link(); });
  return CL_SUCCESS;
}

int32_t OpenClBackend::SetProgramSpecializationConstant(const opencl::Call& call,
                                                        const opencl::SetProgramSpecializationConstant& message) {
  int32_t status = CL_SUCCESS;
  cl_program native = nullptr;
  const Program* program = UseProgram(message.program, "program", &status, &native);
  if (program == nullptr) return ReplyStatus(call, status);
  if (program->version < 22) return ReplyStatus(call, CL_INVALID_OPERATION);
  // Asked here: PoCL 3.1 aborts on a program that was not built.
  if (!program->is_il) return ReplyStatus(call, Explain(CL_INVALID_PROGRAM, "no program of intermediate language"));
  status = clSetProgramSpecializationConstant(native, message.spec_id, message.value.size(), message.value.data());
  // Only what the driver knows, so they are few.
  if (status == CL_SUCCESS && Splits()) {
    ShareProgram(message.program)->specialization[message.spec_id].assign(message.value.begin(), message.value.end());
  }
  return ReplyStatus(call, status);
}

}  // namespace hawser::server::ocl
