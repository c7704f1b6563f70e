// SPDX-License-Identifier: Apache-2.0
#include "interposer/cudart/redirect/nvrtc.h"

#include <cuda.h>
#include <dlfcn.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "interposer/core/log.h"

namespace hawser::redirect {
namespace {

using guest::Log;
using guest::LogLevel;

constexpr std::string_view kGet = "nvrtcGetCUBIN";
constexpr std::string_view kSize = "nvrtcGetCUBINSize";
constexpr std::string_view kGetPtx = "nvrtcGetPTX";
constexpr std::string_view kSizePtx = "nvrtcGetPTXSize";

// The name that the software device gives (softcuda/driver/device.cc), here and through a server.
constexpr std::string_view kSoftwareDevice = "Hawser software device";

// What both functions answer when they can neither be had nor put back: NVRTC_ERROR_INTERNAL_ERROR.
int Broken() { return 11; }

const ElfSymbol* FunctionOf(const ElfSymbols& symbols, std::string_view name) {
  for (const ElfSymbol& symbol : symbols.symbols) {
    if (symbol.defined && symbol.type == STT_FUNC && symbol.name == name) return &symbol;
  }
  return nullptr;
}

// Bytes from the function to the next, of which those that no symbol names are not known: its own size, and the padding
// to the next multiple of 16, where functions begin.
size_t RoomOf(const ElfSymbols& symbols, const ElfSymbol& function) {
  uint64_t room = (std::min<uint64_t>(function.size, UINT32_MAX) + 15) & ~uint64_t{15};
  for (const ElfSymbol& symbol : symbols.symbols) {
    if (symbol.defined && symbol.value > function.value) room = std::min(room, symbol.value - function.value);
  }
  return static_cast<size_t>(room);
}

NvrtcFunction Pair(const ElfSymbols& symbols, std::string_view cubin, std::string_view ptx) {
  const ElfSymbol* const from = FunctionOf(symbols, cubin);
  const ElfSymbol* const to = FunctionOf(symbols, ptx);
  if (from == nullptr || to == nullptr || from->value == to->value) return {};
  return {from->value, RoomOf(symbols, *from), to->value};
}

}  // namespace

bool MayBeNvrtc(std::string_view path) {
  const size_t slash = path.rfind('/');
  const std::string_view name = slash == std::string_view::npos ? path : path.substr(slash + 1);
  return name.starts_with("libnvrtc");
}

bool NvrtcFunctions::complete() const {
  return get.cubin != 0 && size.cubin != 0 && get.cubin != size.cubin && get.room >= kJumpSize &&
         size.room >= kJumpSize;
}

NvrtcFunctions FindNvrtc(const ElfReader& file) {
  NvrtcFunctions found;
  ElfSymbols symbols;
  if (!file.NamesContain(SHT_DYNSYM, kSize) || !file.ReadSymbols(SHT_DYNSYM, &symbols)) return found;
  found.get = Pair(symbols, kGet, kGetPtx);
  found.size = Pair(symbols, kSize, kSizePtx);
  return found;
}

bool DeviceExecutesPtxAlone() {
  // Never closed: the program uses it.
  void* const driver = dlopen("libcuda.so.1", RTLD_NOW);
  if (driver == nullptr) return false;
  const auto init = reinterpret_cast<decltype(&cuInit)>(dlsym(driver, "cuInit"));
  const auto get = reinterpret_cast<decltype(&cuDeviceGet)>(dlsym(driver, "cuDeviceGet"));
  const auto name_of = reinterpret_cast<decltype(&cuDeviceGetName)>(dlsym(driver, "cuDeviceGetName"));
  if (init == nullptr || get == nullptr || name_of == nullptr) return false;
  CUdevice device = 0;
  char name[128] = {};
  if (init(0) != CUDA_SUCCESS || get(&device, 0) != CUDA_SUCCESS) return false;
  if (name_of(name, static_cast<int>(sizeof(name)), device) != CUDA_SUCCESS) return false;
  return std::string_view(name) == kSoftwareDevice;
}

Nvrtc::Nvrtc(std::string path, uintptr_t base, const NvrtcFunctions& functions, DeviceQuestion question)
    : path_(std::move(path)), question_(question) {
  get_.cubin = base + functions.get.cubin;
  get_.ptx = base + functions.get.ptx;
  get_.room = functions.get.room;
  size_.cubin = base + functions.size.cubin;
  size_.ptx = base + functions.size.ptx;
  size_.room = functions.size.room;
}

bool Nvrtc::Attach() {
  const auto [low, high] = std::minmax(get_.cubin, size_.cubin);
  const std::vector<uintptr_t> trampolines =
      MakeTrampolines({std::string(kGet), std::string(kSize)}, this, low, high + kJumpSize);
  if (trampolines.empty()) {
    errno = ENOMEM;
    return false;
  }
  Function* const functions[] = {&get_, &size_};
  for (size_t i = 0; i < 2; ++i) {
    Function& function = *functions[i];
    function.place = PlaceOfJump(function.cubin, function.room);
    std::memcpy(function.original.data(), reinterpret_cast<const void*>(function.place), function.original.size());
  }
  // As it will be put back, so that a system on which that is impossible is known now.
  if (!Replace(get_.place, MakeJump(get_.place, trampolines[0]))) return false;
  if (Replace(size_.place, MakeJump(size_.place, trampolines[1]))) return true;
  const int error = errno;
  PutBack(get_);
  errno = error;
  return false;
}

bool Nvrtc::PutBack(const Function& function) const { return Replace(function.place, function.original); }

void Nvrtc::Decide() {
  gives_ptx_ = question_();
  if (gives_ptx_) {
    Log(LogLevel::kInfo, "%s: the device executes PTX alone; whoever asks for machine code (cubins) gets PTX",
        path_.c_str());
    return;
  }
  const bool get = PutBack(get_);
  const bool size = PutBack(size_);
  broken_ = !get || !size;
  if (broken_) Log(LogLevel::kError, "%s: its functions for cubins cannot be put back", path_.c_str());
}

uintptr_t Nvrtc::Find(const std::string& name) {
  std::call_once(decided_, [this] { Decide(); });
  const Function& function = name == kGet ? get_ : size_;
  if (gives_ptx_) return function.ptx;
  return broken_ ? reinterpret_cast<uintptr_t>(&Broken) : function.cubin;
}

}  // namespace hawser::redirect
