// SPDX-License-Identifier: Apache-2.0
// Kernels and their arguments.
#include <cstring>
#include <string>
#include <vector>

#include "server/backends/opencl/backend.h"

namespace hawser::server::ocl {
namespace {

// Words of Kernel::is_object.
constexpr uint8_t kUnknown = 0, kValue = 1, kObject = 2;

bool NamesObject(std::string_view type) {
  for (const std::string_view prefix : {"image", "sampler_t", "queue_t", "pipe"}) {
    if (type.substr(0, prefix.size()) == prefix) return true;
  }
  return false;
}

uint8_t Classify(cl_kernel kernel, uint32_t index) {
  cl_kernel_arg_address_qualifier address = CL_KERNEL_ARG_ADDRESS_PRIVATE;
  if (clGetKernelArgInfo(kernel, index, CL_KERNEL_ARG_ADDRESS_QUALIFIER, sizeof(address), &address, nullptr) !=
      CL_SUCCESS) {
    return kValue;  // Not known, as in a program from a binary: the driver decides.
  }
  if (address != CL_KERNEL_ARG_ADDRESS_PRIVATE) return kObject;
  char name[64] = {};
  // A longer name is no built-in type.
  if (clGetKernelArgInfo(kernel, index, CL_KERNEL_ARG_TYPE_NAME, sizeof(name) - 1, name, nullptr) != CL_SUCCESS) {
    return kValue;
  }
  return NamesObject(name) ? kObject : kValue;
}

}  // namespace

int32_t OpenClBackend::CreateKernel(const opencl::Call& call, const opencl::CreateKernel& message) {
  int32_t status = CL_SUCCESS;
  cl_program native = nullptr;
  const Program* program = UseProgram(message.program, "program", &status, &native);
  if (program == nullptr) return Fail(call, status, message.kernel);
  Kernel kernel;
  kernel.native = Handle<cl_kernel>(clCreateKernel(native, std::string(message.name).c_str(), &status));
  if (status != CL_SUCCESS) return Fail(call, status, message.kernel);
  kernel.version = program->version;
  if (splitter_ != nullptr) {
    kernel.split.name = message.name;
    kernel.split.program = program->split();
    if (kernel.split.program != nullptr) kernel.split.traits = &kernel.split.program->traits.Of(kernel.split.name);
  }
  return Keep(call, message.kernel, std::move(kernel));
}

int32_t OpenClBackend::CloneKernel(const opencl::Call& call, const opencl::CloneKernel& message) {
  int32_t status = CL_SUCCESS;
  const Kernel* source = Use<Kernel>(message.source, "kernel", &status);
  if (source == nullptr) return Fail(call, status, message.kernel);
  if (source->version < 21) return Fail(call, CL_INVALID_OPERATION, message.kernel);
  Kernel kernel;
  kernel.native = Handle<cl_kernel>(clCloneKernel(source->native.get(), &status));
  if (status == CL_SUCCESS) status = source->SetLocalsOf(kernel.native.get());
  if (status != CL_SUCCESS) return Fail(call, status, message.kernel);
  kernel.version = source->version;
  kernel.objects = source->objects;
  kernel.locals = source->locals;
  kernel.split = source->split;
  return Keep(call, message.kernel, std::move(kernel));
}

bool OpenClBackend::TakesObject(Kernel& kernel, uint32_t index) {
  if (kernel.is_object.empty()) {
    cl_uint count = 0;
    clGetKernelInfo(kernel.native.get(), CL_KERNEL_NUM_ARGS, sizeof(count), &count, nullptr);
    kernel.is_object.assign(count, kUnknown);
  }
  if (index >= kernel.is_object.size()) return false;  // The driver says so itself.
  uint8_t& kind = kernel.is_object[index];
  if (kind == kUnknown) kind = Classify(kernel.native.get(), index);
  return kind == kObject;
}

int32_t OpenClBackend::SetObjectArg(const opencl::SetKernelArg& message, Kernel& kernel) {
  // The driver may read as many bytes as the argument has; only a handle is there.
  if (message.size != sizeof(void*)) return Explain(CL_INVALID_ARG_SIZE, "the size of an object is that of a pointer");
  int32_t status = CL_SUCCESS;
  const void* handle = nullptr;
  if (message.object) {
    switch (static_cast<opencl::Handle>(message.object.type())) {
      case opencl::Handle::kMem:
        if (const Memory* memory = Use<Memory>(message.object, "memory object", &status)) handle = memory->native.get();
        break;
      case opencl::Handle::kSampler:
        if (const Sampler* sampler = Use<Sampler>(message.object, "sampler", &status)) handle = sampler->native.get();
        break;
      case opencl::Handle::kQueue:
        if (const QueueObject* queue = Use<QueueObject>(message.object, "queue", &status)) {
          handle = queue->queue->native.get();
        }
        break;
      default:
        status = Explain(CL_INVALID_ARG_VALUE, "the object is no argument");
        break;
    }
    if (status != CL_SUCCESS) return status;
  }
  // A plain value of the size of a pointer must never show an address of the server.
  if (!TakesObject(kernel, message.index) && message.index < kernel.is_object.size()) {
    // Unknown to the driver as well: from a binary, say.
    cl_kernel_arg_address_qualifier address = 0;
    if (clGetKernelArgInfo(kernel.native.get(), message.index, CL_KERNEL_ARG_ADDRESS_QUALIFIER, sizeof(address),
                           &address, nullptr) == CL_SUCCESS) {
      return Explain(CL_INVALID_ARG_VALUE, "the argument takes a plain value");
    }
  }
  return clSetKernelArg(kernel.native.get(), message.index, sizeof(void*), &handle);
}

int32_t OpenClBackend::SetKernelArg(const opencl::Call& call, const opencl::SetKernelArg& message) {
  int32_t status = CL_SUCCESS;
  Kernel* kernel = Use<Kernel>(message.kernel, "kernel", &status);
  if (kernel == nullptr) return Fail(call, status);
  constexpr uint32_t kPlainValue = 1, kLocal = 4;
  switch (message.kind) {
    case kPlainValue:
      if (message.value.size() != message.size) {
        status = Explain(CL_INVALID_ARG_SIZE, "the value has another size than it says");
      } else if (message.size == sizeof(void*) && TakesObject(*kernel, message.index)) {
        // The driver would take the bytes for a handle.
        status = Explain(CL_INVALID_ARG_VALUE, "the argument takes an object");
      } else {
        status = clSetKernelArg(kernel->native.get(), message.index, message.value.size(), message.value.data());
      }
      break;
    case kLocal:
      status = clSetKernelArg(kernel->native.get(), message.index, message.size, nullptr);
      break;
    default:
      status = SetObjectArg(message, *kernel);
      break;
  }
  // The driver took it, so the index is one of few.
  if (status == CL_SUCCESS) kernel->NoteLocal(message.index, message.kind == kLocal ? message.size : 0);
  if (splitter_ != nullptr && status == CL_SUCCESS) {
    if (message.index >= kernel->objects.size()) kernel->objects.resize(message.index + 1);
    kernel->objects[message.index] =
        message.kind == kPlainValue || message.kind == kLocal ? wire::Id() : message.object;
  }
  return status == CL_SUCCESS ? CL_SUCCESS : Fail(call, status, {}, {});
}

int32_t OpenClBackend::SetKernelArgSVMPointer(const opencl::Call& call, const opencl::SetKernelArgSVMPointer& message) {
  int32_t status = CL_SUCCESS;
  Kernel* kernel = Use<Kernel>(message.kernel, "kernel", &status);
  if (kernel == nullptr) return Fail(call, status);
  if (kernel->version < 20) return Fail(call, CL_INVALID_OPERATION);
  if (message.address != 0 && !svm_->Contains(message.address, 0)) {
    return Fail(call, Explain(CL_INVALID_ARG_VALUE, "the address is in no shared virtual memory of this session"));
  }
  status = clSetKernelArgSVMPointer(kernel->native.get(), message.index, SvmRanges::Pointer(message.address));
  if (status == CL_SUCCESS) kernel->NoteLocal(message.index, 0);
  if (status == CL_SUCCESS && message.index < kernel->objects.size()) kernel->objects[message.index] = wire::Id();
  return status == CL_SUCCESS ? CL_SUCCESS : Fail(call, status);
}

int32_t OpenClBackend::SetKernelExecInfo(const opencl::Call& call, const opencl::SetKernelExecInfo& message) {
  int32_t status = CL_SUCCESS;
  const Kernel* kernel = Use<Kernel>(message.kernel, "kernel", &status);
  if (kernel == nullptr) return Fail(call, status);
  if (kernel->version < 20) return Fail(call, CL_INVALID_OPERATION);
  std::vector<void*> pointers;
  const void* value = message.value.data();
  switch (message.param) {
    case CL_KERNEL_EXEC_INFO_SVM_PTRS: {
      if (message.value.size() % sizeof(uint64_t) != 0) return Fail(call, CL_INVALID_VALUE);
      const auto addresses = wire::ArrayView<uint64_t>::FromRaw(
          message.value.data(), static_cast<uint32_t>(message.value.size() / sizeof(uint64_t)));
      for (uint32_t i = 0; i < addresses.size(); ++i) {
        if (!svm_->Contains(addresses[i], 0)) {
          return Fail(call, Explain(CL_INVALID_VALUE, "an address is in no shared virtual memory of this session"));
        }
        pointers.push_back(SvmRanges::Pointer(addresses[i]));
      }
      value = pointers.data();
      break;
    }
    case CL_KERNEL_EXEC_INFO_SVM_FINE_GRAIN_SYSTEM:
      if (message.value.size() != sizeof(cl_bool)) return Fail(call, CL_INVALID_VALUE);
      break;
    default:
      return Fail(call, CL_INVALID_VALUE);
  }
  status = clSetKernelExecInfo(kernel->native.get(), message.param, message.value.size(), value);
  return status == CL_SUCCESS ? CL_SUCCESS : Fail(call, status);
}

}  // namespace hawser::server::ocl
