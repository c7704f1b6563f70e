// SPDX-License-Identifier: Apache-2.0
// Code: images that guests upload, modules and libraries made of them, kernels and variables.
#include <algorithm>
#include <utility>

#include "server/backends/cuda/backend.h"
#include "server/backends/cuda/image_choice.h"
#include "server/backends/cuda/jit.h"

namespace hawser::server::cuda_backend {
namespace {

using wire::Bytes;

/// Of larger modules only the names are told; the guest asks for what it uses. A driver may load each kernel only when
/// it is asked about.
constexpr size_t kDescribed = 256;
// What a module whose loading is not over answers. Guests never see it: they have its name when it is loaded.
constexpr int32_t kLoading = CUDA_ERROR_NOT_READY;
constexpr std::string_view kNotLoaded = "a module cannot be loaded";
constexpr size_t kMaxKernels = 1u << 20;
constexpr size_t kMaxParameters = 4096;
constexpr uint64_t kCompressed = 0x2000 | 0x8000;  // Flags of a fatbin entry: LZ4, zstd.

/// The head of a fatbin of one entry.
struct FatbinHeader {
  uint32_t magic = 0xba55ed50;
  uint16_t version = 1;
  uint16_t header_size = 16;
  uint64_t size = 0;
};
static_assert(sizeof(FatbinHeader) == 16);

/// What a KernelInfo views.
struct KernelText {
  std::string name;
  std::vector<uint32_t> offsets, sizes;
  std::vector<int32_t> attributes;

  cuda::KernelInfo View(bool described) const {
    cuda::KernelInfo info;
    info.name = name;
    info.described = described ? 1 : 0;
    info.offsets = wire::ArrayView<uint32_t>(offsets.data(), offsets.size());
    info.sizes = wire::ArrayView<uint32_t>(sizes.data(), sizes.size());
    info.attributes = wire::ArrayView<int32_t>(attributes.data(), attributes.size());
    return info;
  }
};

uint64_t ParameterBytes(const std::vector<uint32_t>& offsets, const std::vector<uint32_t>& sizes) {
  uint64_t end = 0;
  for (size_t i = 0; i < offsets.size(); ++i) end = std::max(end, uint64_t{offsets[i]} + sizes[i]);
  return end;
}

}  // namespace

CUdevice CudaBackend::AnyDevice() const { return devices_.empty() ? 0 : devices_.front(); }

void CudaBackend::MayPrint(Bytes image) {
  const std::string_view text(reinterpret_cast<const char*>(image.data()), image.size());
  if (!may_print_ && text.find("vprintf") != std::string_view::npos) may_print_ = true;
  if (!may_assert_ && text.find("__assertfail") != std::string_view::npos) may_assert_ = true;
}

/// The loader's thread: a large image takes a while.
void CudaBackend::Prepare(Assembled* assembled) {
  for (Assembled::Part& part : assembled->parts) {
    // Neither can be seen in what is compressed.
    if (part.is_compressed) MayPrint(wire::AsBytes("vprintf __assertfail"));
    MayPrint(*part.stored);
    FatbinHeader header;
    header.size = part.stored->size();
    const Bytes head = part.type == CU_JIT_INPUT_FATBINARY ? wire::AsBytes(&header, sizeof(header)) : Bytes();
    part.bytes.reserve(head.size() + part.stored->size() + 1);
    part.bytes.assign(head.begin(), head.end());
    part.bytes.insert(part.bytes.end(), part.stored->begin(), part.stored->end());
    // Text ends with a zero byte, whatever the guest says.
    if (part.type == CU_JIT_INPUT_PTX) part.bytes.push_back(std::byte{0});
  }
}

int32_t CudaBackend::Assemble(const wire::ListView<cuda::ImageEntry>& entries, CUdevice device, Assembled* assembled,
                              uint32_t first_index, std::vector<uint32_t>* missing) {
  std::vector<OfferedImage> offered;
  offered.reserve(entries.size());
  entries.ForEach([&](const cuda::ImageEntry& entry) {
    OfferedImage& image = offered.emplace_back();
    image.form = static_cast<OfferedImage::Form>(entry.form);
    image.kind = static_cast<OfferedImage::Kind>(entry.kind);
    image.group = entry.group;
    image.sm = entry.sm;
    image.flags = entry.flags;
    image.size = entry.size;
    image.hash = entry.hash;
  });
  int major = 0, minor = 0;
  (void)driver_.cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
  (void)driver_.cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);
  DeviceTarget target;
  target.sm = static_cast<uint32_t>(10 * major + minor);
  target.runs_cubins = !chosen_.soft;
  const std::vector<size_t> chosen = ChooseImages(offered, target);
  assembled->offer = "the image has " + DescribeImages(offered) + "; the device is sm_" + std::to_string(target.sm) +
                     (target.runs_cubins ? "" : " and runs PTX alone");
  if (chosen.empty()) return Explain(CUDA_ERROR_NO_BINARY_FOR_GPU, assembled->offer);
  if (const std::optional<size_t> source = ChooseSource(offered, chosen, target)) {
    assembled->source = SourceImage{static_cast<uint32_t>(*source), offered[*source].size, offered[*source].hash};
  }
  const size_t before = missing->size();
  for (const size_t index : chosen) {
    const OfferedImage& image = offered[index];
    if (image.size > images_->largest()) return Explain(CUDA_ERROR_INVALID_IMAGE, "the image is too large");
    const Image stored = images_->Get(image.hash);
    if (stored == nullptr) {
      if (const std::optional<wire::Status> why = uploads_->TakeRefusal(image.hash)) {
        return ExplainUpload(*why);
      }
      missing->push_back(first_index + static_cast<uint32_t>(index));
      continue;
    }
    if (missing->size() != before) continue;
    Assembled::Part& part = assembled->parts.emplace_back();
    part.stored = stored;
    part.is_ptx = image.kind == OfferedImage::Kind::kPtx;
    part.is_compressed = (image.flags & kCompressed) != 0;
    assembled->hash.append(reinterpret_cast<const char*>(image.hash.data()), image.hash.size());
    if (image.form == OfferedImage::Form::kFatbinEntry) {
      part.type = CU_JIT_INPUT_FATBINARY;
    } else {
      part.type = part.is_ptx ? CU_JIT_INPUT_PTX : CU_JIT_INPUT_CUBIN;
    }
  }
  return 0;
}

int32_t CudaBackend::DescribeFunction(CUfunction function, bool is_kernel, std::vector<uint32_t>* offsets,
                                      std::vector<uint32_t>* sizes, std::vector<int32_t>* attributes, CUdevice device) {
  auto* kernel = reinterpret_cast<CUkernel>(function);
  for (size_t i = 0; i < kMaxParameters; ++i) {
    size_t offset = 0, size = 0;
    CUresult result = CUDA_ERROR_NOT_SUPPORTED;
    if (is_kernel && driver_.cuKernelGetParamInfo != nullptr) {
      result = driver_.cuKernelGetParamInfo(kernel, i, &offset, &size);
    } else if (!is_kernel && driver_.cuFuncGetParamInfo != nullptr) {
      result = driver_.cuFuncGetParamInfo(function, i, &offset, &size);
    }
    if (result == CUDA_ERROR_INVALID_VALUE) break;  // There are no more.
    if (result != CUDA_SUCCESS) return result;
    offsets->push_back(static_cast<uint32_t>(offset));
    sizes->push_back(static_cast<uint32_t>(size));
  }
  if (attributes == nullptr) return 0;
  for (int i = 0; i < CU_FUNC_ATTRIBUTE_MAX; ++i) {
    int value = 0;
    const auto attribute = static_cast<CUfunction_attribute>(i);
    if (is_kernel) {
      if (driver_.cuKernelGetAttribute == nullptr) return kNotSupported;
      if (driver_.cuKernelGetAttribute(&value, attribute, kernel, device) != CUDA_SUCCESS) value = 0;
    } else if (driver_.cuFuncGetAttribute(&value, attribute, function) != CUDA_SUCCESS) {
      value = 0;
    }
    attributes->push_back(value);
  }
  return 0;
}

int32_t CudaBackend::ExplainUpload(const wire::Status& why) {
  const bool no_room = why.code() == wire::Code::kExhausted;
  return Explain(no_room ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_INVALID_IMAGE, why.text());
}

int32_t CudaBackend::ReceivePiece(const cuda::UploadImage& message, const std::shared_ptr<ImageUpload>& upload,
                                  bool last) {
  const ImageUpload::Room room = upload->NextRoom(message.size);
  if (message.transfer == 0) {
    std::copy(message.data.begin(), message.data.end(), room.bytes);
    upload->Arrived(room.number, 0);
    return 0;
  }
  if (last) {
    upload->Arrived(room.number, services_.bulk_in->Receive(message.transfer, message.size, room.bytes));
    return 0;
  }
  // The next command need not wait for it.
  const auto arrived = [upload, number = room.number](int32_t status) { upload->Arrived(number, status); };
  if (services_.bulk_in->Expect(message.transfer, message.size, room.bytes, arrived)) return 0;
  upload->Arrived(room.number, CUDA_ERROR_INVALID_VALUE);
  return Explain(CUDA_ERROR_INVALID_VALUE, "the transfer of a piece of an image cannot be received");
}

int32_t CudaBackend::UploadImage(const cuda::Call& call, const cuda::UploadImage& message) {
  ImagePiece piece;
  piece.hash = message.hash;
  piece.total = message.total;
  piece.offset = message.offset;
  piece.size = message.size;
  if (message.transfer == 0 && message.data.size() != message.size) {
    const wire::Status why(wire::Code::kInvalid, "a piece of an image has another size than its data");
    uploads_->Refuse(piece, why);
    return Fail(call, ExplainUpload(why));
  }
  const wire::Result<std::shared_ptr<ImageUpload>> upload = uploads_->Take(piece);
  if (!upload.ok() || upload.value() == nullptr) {
    DrainTransfer(message.transfer, message.size);
    return upload.ok() ? 0 : Fail(call, ExplainUpload(upload.status()));
  }
  if (const int32_t status = ReceivePiece(message, upload.value(), piece.last()); status != 0) {
    return Fail(call, status);
  }
  if (!piece.last()) return 0;
  const wire::Result<Image> image = uploads_->Finish(piece.hash);
  if (!image.ok()) return Fail(call, ExplainUpload(image.status()));
  images_->Keep(piece.hash, image.value());
  const auto [first, last] = awaited_texts_.equal_range(piece.hash);
  for (auto at = first; at != last; ++at) {
    if (const auto text = at->second.lock()) text->Arrive(image.value());
  }
  awaited_texts_.erase(first, last);
  // Ahead of the load that the guest asks for next: when it has the answer, its tenant's next process finds the image.
  if (!images_->folder().empty()) {
    PostLoad(nullptr, [this, hash = piece.hash, kept = image.value()] { images_->Save(hash, *kept); });
  }
  return 0;
}

/// A load on its way through the loader's thread.
struct CudaBackend::Load {
  cuda::Call call;
  wire::Id id;
  CUdevice device = 0;
  Assembled assembled;
  std::unique_ptr<JitOptions> options;
  Module module;
  std::vector<uint32_t> wanted;  ///< Indices of entries that the guest shall send when it is loaded.
};

int32_t CudaBackend::LoadModule(const cuda::Call& call, const cuda::LoadModule& message) {
  const auto fail = [&](int32_t status) {
    FailJit<cuda::ModuleInfo>(call, kNotLoaded, status, std::exchange(reason_, {}), nullptr);
    return 0;
  };
  int32_t status = 0;
  auto load = std::make_shared<Load>();
  load->call = call;
  load->id = message.module;
  load->device = AnyDevice();
  if (message.context) {
    const Context* context = Enter(message.context, &status);
    if (context == nullptr) return fail(status);
    load->device = context->device;
  } else if (driver_.cuLibraryLoadData == nullptr) {
    return fail(kNotSupported);
  }
  std::vector<uint32_t> missing;
  status = Assemble(message.entries, load->device, &load->assembled, 0, &missing);
  if (status != 0) return fail(status);
  if (!missing.empty()) {
    cuda::ModuleInfo reply;
    reply.missing = wire::ArrayView<uint32_t>(missing.data(), missing.size());
    Reply(call, reply);
    return 0;
  }
  load->options = std::make_unique<JitOptions>(message.options, message.info_log_size, message.error_log_size);
  if (!load->options->good()) return fail(Explain(CUDA_ERROR_INVALID_VALUE, "an option for the compiler is not known"));
  load->module.context = message.context;
  auto code = std::make_shared<ModuleCode>();
  std::string option_text;
  message.options.ForEach([&](const cuda::JitOption& option) {
    code->options.emplace_back(static_cast<CUjit_option>(option.option), option.value);
    option_text += std::to_string(option.option) + "=" + std::to_string(option.value) + " ";
  });
  code->serial = ++modules_loaded_;
  code->hash = scheduler::ProgramHash(load->assembled.hash, option_text);
  if (load->assembled.parts.size() == 1 && load->assembled.parts.front().is_ptx) {
    const Assembled::Part& only = load->assembled.parts.front();
    code->text = std::make_shared<cuda_slicing::ModuleText>(only.stored, only.type == CU_JIT_INPUT_FATBINARY);
  }
  if (load->assembled.source && split_.splits) code->text = SourceText(*load->assembled.source, &load->wanted);
  load->module.code = std::move(code);
  // Its name is taken from now on. A hostile guest that uses it before the answer is refused.
  Module loading;
  loading.error = kLoading;
  loading.context = message.context;
  if (status = Keep(message.module, std::move(loading)); status != 0) return fail(status);
  PostLoad(current_, [this, load] { RunLoad(*load); });
  return 0;
}

/// The text of machine code: the guest is asked for it once the module is loaded, and nobody waits for it.
std::shared_ptr<cuda_slicing::ModuleText> CudaBackend::SourceText(const SourceImage& source,
                                                                  std::vector<uint32_t>* wanted) {
  constexpr uint64_t kMostSource = 16u << 20;  // It travels beside what the program itself sends.
  auto text = std::make_shared<cuda_slicing::ModuleText>(images_->Get(source.hash), /*in_fatbin=*/true);
  if (text->IsHere()) return text;
  if (source.size > kMostSource) return nullptr;
  std::erase_if(awaited_texts_, [](const auto& entry) { return entry.second.expired(); });
  awaited_texts_.emplace(source.hash, text);
  wanted->push_back(source.index);
  return text;
}

void CudaBackend::PostLoad(CUcontext context, std::function<void()> job) {
  if (loader_ == nullptr) loader_ = std::make_unique<ModuleLoader>(&driver_);
  loader_->Post(context, std::move(job));
}

void CudaBackend::Hand(wire::Id id, Module module) {
  const std::lock_guard<std::mutex> lock(loaded_mutex_);
  loaded_.emplace_back(id, std::move(module));
  has_loaded_.store(true, std::memory_order_release);
}

void CudaBackend::AdoptLoaded() {
  std::vector<std::pair<wire::Id, Module>> loaded;
  std::vector<std::pair<wire::Sha256Digest, std::vector<std::byte>>> linked;
  {
    const std::lock_guard<std::mutex> lock(loaded_mutex_);
    loaded.swap(loaded_);
    linked.swap(linked_);
    has_loaded_.store(false, std::memory_order_relaxed);
  }
  if (may_print_ && !std::exchange(prints_, true) && services_.enable_kernel_output) services_.enable_kernel_output();
  if (may_assert_ && !std::exchange(asserts_, true) && services_.enable_assertions) services_.enable_assertions();
  for (auto& [hash, bytes] : linked) {
    const wire::Status stored = images_->Put(hash, std::move(bytes));
    if (!stored.ok()) Log("warn", "a linked image cannot be kept: " + stored.text());
  }
  for (auto& [id, module] : loaded) {
    Module* loading = objects_->Table<Module>().Find(id);
    if (loading == nullptr || loading->error != kLoading) continue;  // Released meanwhile: unloaded with `loaded`.
    if (module.error != 0) {
      objects_->Table<Module>().Erase(id);
    } else {
      *loading = std::move(module);
    }
  }
}

/// The loader's thread.
void CudaBackend::RunLoad(Load& load) {
  JitOptions& options = *load.options;
  Module& module = load.module;
  const auto fail = [&](int32_t status) {
    Note(module.context, static_cast<CUresult>(status));
    Module failed;
    failed.error = status;
    Hand(load.id, std::move(failed));
    const bool no_code = status == CUDA_ERROR_NO_BINARY_FOR_GPU;
    FailJit<cuda::ModuleInfo>(load.call, kNotLoaded, status, no_code ? load.assembled.offer : "", &options);
  };
  Prepare(&load.assembled);
  void* image = load.assembled.parts.front().bytes.data();
  std::unique_ptr<Linker> linker;
  JitOptions no_options({}, 0, 0);
  JitOptions* load_options = &options;
  if (load.assembled.parts.size() > 1) {
    linker = std::make_unique<Linker>(driver_, &options);
    for (Assembled::Part& part : load.assembled.parts) linker->Add(part.type, part.bytes, "part");
    size_t size = 0;
    if (const CUresult linked = linker->Complete(&image, &size); linked != CUDA_SUCCESS) return fail(linked);
    load_options = &no_options;
  }
  CUresult result = CUDA_SUCCESS;
  CUmodule native_module = nullptr;
  CUlibrary native_library = nullptr;
  if (module.context) {
    result = driver_.cuModuleLoadDataEx(&native_module, image, load_options->count(), load_options->options(),
                                        load_options->values());
    if (result == CUDA_SUCCESS) module.module = OwnedModule(&driver_, native_module);
  } else {
    result = driver_.cuLibraryLoadData(&native_library, image, load_options->options(), load_options->values(),
                                       load_options->count(), nullptr, nullptr, 0);
    if (result == CUDA_SUCCESS) module.library = std::make_shared<OwnedLibrary>(&driver_, native_library);
  }
  if (result != CUDA_SUCCESS) return fail(result);
  module.code->variables->Begin(native_module, native_library);
  // Its kernels.
  std::vector<CUfunction> functions;
  unsigned count = 0;
  const bool is_library = native_library != nullptr;
  if (is_library) {
    if (driver_.cuLibraryGetKernelCount != nullptr && driver_.cuLibraryEnumerateKernels != nullptr &&
        driver_.cuKernelGetName != nullptr && driver_.cuLibraryGetKernelCount(&count, native_library) == CUDA_SUCCESS &&
        count <= kMaxKernels) {
      functions.resize(count);
      if (count != 0 && driver_.cuLibraryEnumerateKernels(reinterpret_cast<CUkernel*>(functions.data()), count,
                                                          native_library) != CUDA_SUCCESS) {
        functions.clear();
      }
    }
  } else if (driver_.cuModuleGetFunctionCount != nullptr && driver_.cuModuleEnumerateFunctions != nullptr &&
             driver_.cuFuncGetName != nullptr &&
             driver_.cuModuleGetFunctionCount(&count, native_module) == CUDA_SUCCESS && count <= kMaxKernels) {
    functions.resize(count);
    if (count != 0 && driver_.cuModuleEnumerateFunctions(functions.data(), count, native_module) != CUDA_SUCCESS) {
      functions.clear();
    }
  }
  std::vector<KernelText> texts(functions.size());
  std::vector<cuda::KernelInfo> kernels;
  kernels.reserve(functions.size());
  for (size_t i = 0; i < functions.size(); ++i) {
    const char* name = nullptr;
    const CUresult named = is_library ? driver_.cuKernelGetName(&name, reinterpret_cast<CUkernel>(functions[i]))
                                      : driver_.cuFuncGetName(&name, functions[i]);
    if (named != CUDA_SUCCESS || name == nullptr) continue;
    texts[i].name = name;
    const bool described =
        functions.size() <= kDescribed && DescribeFunction(functions[i], is_library, &texts[i].offsets, &texts[i].sizes,
                                                           &texts[i].attributes, load.device) == 0;
    kernels.push_back(texts[i].View(described));
  }
  cuda::ModuleInfo reply;
  reply.info_log = options.info();
  reply.error_log = options.error();
  reply.kernels = wire::ListView<cuda::KernelInfo>(std::span<const cuda::KernelInfo>(kernels));
  reply.wanted = wire::ArrayView<uint32_t>(load.wanted.data(), load.wanted.size());
  reply.all_kernels = !functions.empty() && kernels.size() == functions.size() ? 1 : 0;
  Hand(load.id, std::move(module));
  Reply(load.call, reply);
}

int32_t CudaBackend::DescribeKernel(const cuda::Call& call, const cuda::DescribeKernel& message) {
  cuda::KernelReply reply;
  KernelText text;
  CUdevice device = AnyDevice();
  const Module* module = Use<Module>(message.module, &reply.status);
  const wire::Id context_id = module != nullptr && module->context ? module->context : message.context;
  if (module != nullptr && context_id) {
    const Context* context = Enter(context_id, &reply.status);
    if (context != nullptr) device = context->device;
  }
  if (reply.status == 0) {
    text.name = message.name;
    CUfunction function = nullptr;
    const bool is_kernel = module->is_library();
    if (!is_kernel) {
      reply.status = driver_.cuModuleGetFunction(&function, module->native(), text.name.c_str());
    } else if (driver_.cuLibraryGetKernel != nullptr) {
      reply.status = driver_.cuLibraryGetKernel(reinterpret_cast<CUkernel*>(&function), module->native_library(),
                                                text.name.c_str());
    } else {
      reply.status = kNotSupported;
    }
    if (reply.status == 0) {
      const int32_t described =
          DescribeFunction(function, is_kernel, &text.offsets, &text.sizes, &text.attributes, device);
      reply.status = described;  // Without its parameters it cannot be launched.
      reply.kernel = text.View(described == 0);
    }
  }
  reason_.clear();
  Reply(call, reply);
  return 0;
}

int32_t CudaBackend::GetFunction(const cuda::Call& call, const cuda::GetFunction& message) {
  int32_t status = 0;
  const Module* module = Use<Module>(message.module, &status);
  if (module == nullptr) return Fail(call, status, message.function);
  if (module->context && Enter(module->context, &status) == nullptr) {
    return Fail(call, status, message.function, module->context);
  }
  const std::string name(message.name);
  Function function;
  function.module = message.module;
  function.is_kernel = module->is_library();
  CUresult result = CUDA_ERROR_NOT_SUPPORTED;
  if (!function.is_kernel) {
    result = driver_.cuModuleGetFunction(&function.native, module->native(), name.c_str());
  } else if (driver_.cuLibraryGetKernel != nullptr) {
    result = driver_.cuLibraryGetKernel(reinterpret_cast<CUkernel*>(&function.native), module->native_library(),
                                        name.c_str());
  }
  if (result != CUDA_SUCCESS) return Finish(call, result, module->context, message.function);
  std::vector<uint32_t> offsets, sizes;
  (void)DescribeFunction(function.native, function.is_kernel, &offsets, &sizes, nullptr, AnyDevice());
  function.parameter_bytes = ParameterBytes(offsets, sizes);
  function.facts = std::make_shared<KernelFacts>();
  function.facts->name = name;
  function.facts->parameter_bytes = function.parameter_bytes;
  function.facts->offsets = std::move(offsets);
  function.facts->code = module->code;
  function.facts->key = scheduler::KernelKey::Of(device_name_, module->code->hash, name);
  status = Keep(message.function, function);
  return status == 0 ? 0 : Fail(call, status);
}

int32_t CudaBackend::GetGlobal(const cuda::Call& call, const cuda::GetGlobal& message) {
  cuda::GlobalReply reply;
  const Module* module = Use<Module>(message.module, &reply.status);
  const wire::Id context = module != nullptr && module->context ? module->context : message.context;
  if (module != nullptr && context) (void)Enter(context, &reply.status);
  const std::string name(message.name);
  CUdeviceptr address = 0;
  size_t size = 0;
  if (reply.status == 0) {
    if (module->native() != nullptr) {
      reply.status = driver_.cuModuleGetGlobal(&address, &size, module->native(), name.c_str());
    } else {
      CUresult result = CUDA_ERROR_NOT_SUPPORTED;
      if (driver_.cuLibraryGetManaged != nullptr) {
        result = driver_.cuLibraryGetManaged(&address, &size, module->native_library(), name.c_str());
        if (result == CUDA_SUCCESS) reply.global.managed = 1;
      }
      if (result != CUDA_SUCCESS && driver_.cuLibraryGetGlobal != nullptr) {
        result = driver_.cuLibraryGetGlobal(&address, &size, module->native_library(), name.c_str());
      }
      reply.status = result;
    }
  }
  if (reply.status == 0) {
    reply.global.name = message.name;
    reply.global.address = address;
    reply.global.size = size;
    unsigned managed = 0;
    if (driver_.cuPointerGetAttribute != nullptr &&
        driver_.cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, address) == CUDA_SUCCESS &&
        managed != 0) {
      reply.global.managed = 1;
    }
    MemoryRange range;
    range.address = address;
    range.size = size;
    range.kind = MemoryKind::kGlobal;
    range.owner = message.module;
    (void)memory_.Add(range);  // It may be known already.
  }
  reason_.clear();
  Reply(call, reply);
  return 0;
}

int32_t CudaBackend::GetLibraryModule(const cuda::Call& call, const cuda::GetLibraryModule& message) {
  int32_t status = 0;
  const Module* library = Use<Module>(message.library, &status);
  if (library != nullptr && !library->is_library()) status = CUDA_ERROR_INVALID_HANDLE;
  Module part;
  if (status == 0) {
    part.context = message.context;
    part.library = library->library;
    part.code = library->code;
    (void)Enter(message.context, &status);
  }
  if (status == 0) {
    status = driver_.cuLibraryGetModule != nullptr
                 ? static_cast<int32_t>(driver_.cuLibraryGetModule(&part.part, part.native_library()))
                 : kNotSupported;
  }
  if (status == 0) status = Keep(message.module, std::move(part));
  reason_.clear();
  return ReplyStatus(call, status);
}

int32_t CudaBackend::SetFunctionAttribute(const cuda::Call& call, const cuda::SetFunctionAttribute& message) {
  int32_t status = 0;
  const Function* function = Use<Function>(message.function, &status);
  if (function == nullptr) return Fail(call, status, {}, message.context);
  CUdevice device = AnyDevice();
  if (message.context) {
    const Context* context = Enter(message.context, &status);
    if (context == nullptr) return Fail(call, status);
    device = context->device;
  }
  const auto attribute = static_cast<CUfunction_attribute>(message.attribute);
  if (!function->is_kernel) {
    return Finish(call, driver_.cuFuncSetAttribute(function->native, attribute, message.value), message.context);
  }
  if (driver_.cuKernelSetAttribute == nullptr) return Fail(call, kNotSupported, {}, message.context);
  return Finish(
      call,
      driver_.cuKernelSetAttribute(attribute, message.value, reinterpret_cast<CUkernel>(function->native), device),
      message.context);
}

int32_t CudaBackend::DownloadImage(const cuda::Call& call, const cuda::DownloadImage& message) {
  const Image image = images_->Get(message.hash);
  if (image == nullptr || image->size() != message.size) {
    return FailRead(call, message.transfer, CUDA_ERROR_NOT_FOUND);
  }
  if (message.transfer == 0) {
    cuda::ReadReply reply;
    reply.data = *image;
    Reply(call, reply);
    return 0;
  }
  services_.bulk_out->Send(message.transfer, *image, [image]() mutable { image.get(); });
  return 0;
}

}  // namespace hawser::server::cuda_backend
