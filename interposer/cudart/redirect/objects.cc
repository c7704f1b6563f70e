// SPDX-License-Identifier: Apache-2.0
#include "interposer/cudart/redirect/objects.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "interposer/core/log.h"
#include "interposer/cudart/redirect/nvrtc.h"
#include "interposer/cudart/redirect/our_runtime.h"
#include "interposer/cudart/redirect/patcher.h"
#include "interposer/cudart/redirect/trampolines.h"

namespace hawser::redirect {
namespace {

using guest::Log;
using guest::LogLevel;

Objects* g_objects = nullptr;

// What the loader calls in place of its empty notice to debuggers (r_brk of <link.h>).
void LoaderChanged() {
  if (g_objects != nullptr && _r_debug.r_state == r_debug::RT_CONSISTENT) g_objects->Scan();
}

class Descriptor {
 public:
  explicit Descriptor(const char* path) : value_(open(path, O_RDONLY | O_CLOEXEC)) {}
  ~Descriptor() {
    if (value_ >= 0) close(value_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return value_; }

 private:
  int value_;
};

std::string PathOfProgram() {
  char path[4096];
  const ssize_t size = readlink("/proc/self/exe", path, sizeof(path));
  return size > 0 ? std::string(path, static_cast<size_t>(size)) : "this program";
}

const Elf64_Phdr* SegmentOf(const ElfReader& file, uint64_t value, uint64_t size) {
  for (const Elf64_Phdr& segment : file.segments()) {
    if (segment.p_type == PT_LOAD && (segment.p_flags & PF_X) != 0 && value >= segment.p_vaddr &&
        segment.p_filesz >= size && value - segment.p_vaddr <= segment.p_filesz - size) {
      return &segment;
    }
  }
  return nullptr;
}

}  // namespace

bool IsSameFile(const ElfReader& file, uintptr_t base) {
  // The first segment begins with the file's headers.
  for (const Elf64_Phdr& segment : file.segments()) {
    if (segment.p_type != PT_LOAD || segment.p_offset != 0) continue;
    const uint64_t headers = file.segments().size() * sizeof(Elf64_Phdr);
    if (segment.p_filesz < sizeof(Elf64_Ehdr) + headers || file.header().e_phoff != sizeof(Elf64_Ehdr)) return false;
    const auto* loaded = reinterpret_cast<const uint8_t*>(base + segment.p_vaddr);
    return std::memcmp(loaded, &file.header(), sizeof(Elf64_Ehdr)) == 0 &&
           std::memcmp(loaded + sizeof(Elf64_Ehdr), file.segments().data(), headers) == 0;
  }
  return false;
}

void Objects::Scan() {
  std::vector<const link_map*> now;
  bool first = true;  // The loader lists the program first.
  for (const link_map* object = _r_debug.r_map; object != nullptr; object = object->l_next) {
    now.push_back(object);
    if (std::find(known_.begin(), known_.end(), object) == known_.end()) Look(*object, first);
    first = false;
  }
  known_.swap(now);
}

void Objects::Look(const link_map& object, bool is_program) {
  const char* path = is_program ? "/proc/self/exe" : object.l_name;
  if (path == nullptr || path[0] == '\0') return;  // The vDSO.
  const Descriptor descriptor(path);
  if (descriptor.get() < 0) return;
  const FileSource source(descriptor.get());
  ElfReader file(source);
  if (!file.Open()) return;
  if (!is_program && MayBeNvrtc(path)) return LookAtNvrtc(path, object.l_addr, file);
  const EmbeddedRuntime runtime = FindRuntime(file);
  if (runtime.major != 0) {
    if (!IsSameFile(file, object.l_addr)) {
      Log(LogLevel::kWarning, "%s is not the file that was loaded; its CUDA calls are not redirected", path);
      return;
    }
    Redirect(is_program ? PathOfProgram() : path, object.l_addr, file, runtime);
    return;
  }
  if (!runtime.device_code || runtime.imports_runtime) return;
  // Libraries that embed a runtime are many, and may never be called: the program is what the user can relink.
  Log(is_program ? LogLevel::kError : LogLevel::kInfo,
      "%s contains CUDA's static runtime but no symbol table, so its CUDA calls cannot be redirected and will fail. "
      "Do not strip it, or relink it with 'nvcc -cudart shared', or with 'nvcc -cudart none' and Hawser's "
      "libcudart.so.13",
      is_program ? PathOfProgram().c_str() : path);
}

void Objects::Redirect(const std::string& path, uintptr_t base, const ElfReader& file, const EmbeddedRuntime& runtime) {
  std::vector<const RuntimeEntry*> entries;
  std::vector<std::string> names;
  for (const RuntimeEntry& entry : runtime.entries) {
    if (entry.room < kJumpSize || SegmentOf(file, entry.value, kJumpSize) == nullptr) {
      Log(LogLevel::kWarning, "%s: no room to redirect %s", path.c_str(), entry.name.c_str());
      continue;
    }
    entries.push_back(&entry);
    names.push_back(entry.name);
  }
  if (entries.empty()) return;
  const auto trampolines = MakeTrampolines(names, OurRuntime(runtime.major), base + entries.front()->value,
                                           base + entries.back()->value + entries.back()->room);
  if (trampolines.empty()) {
    Log(LogLevel::kError, "%s: there is no memory near its code for redirecting its CUDA calls", path.c_str());
    return;
  }
  std::vector<Patch> patches;
  for (size_t i = 0; i < entries.size(); ++i) {
    patches.push_back({base + entries[i]->value, entries[i]->room, trampolines[i]});
  }
  if (!Apply(patches)) {
    Log(LogLevel::kError,
        "%s: the system forbids changing code in memory (%s), so its CUDA calls cannot be redirected. Relink it with "
        "'nvcc -cudart shared'",
        path.c_str(), std::strerror(errno));
    return;
  }
  Log(LogLevel::kInfo, "%s: %zu functions of its CUDA %d runtime are redirected", path.c_str(), patches.size(),
      runtime.major);
  if (runtime.unknown.empty()) return;
  // One line: a newer toolkit brings dozens, into each library, and hardly any program calls them. Who does finds the
  // library named when it asks for private driver interfaces.
  std::string names_of_unknown;
  for (const std::string& name : runtime.unknown)
    names_of_unknown.append(names_of_unknown.empty() ? "" : ", ").append(name);
  Log(LogLevel::kInfo,
      "%s: its CUDA runtime has %zu functions that Hawser's does not know; they are not redirected, and calls of them "
      "fail: %s",
      path.c_str(), runtime.unknown.size(), names_of_unknown.c_str());
}

void Objects::LookAtNvrtc(const std::string& path, uintptr_t base, const ElfReader& file) {
  const char* const setting = std::getenv("HAWSER_NVRTC");
  if (setting != nullptr && std::string_view(setting) == "cubin") return;
  const NvrtcFunctions functions = FindNvrtc(file);
  if (!functions.complete() || !IsSameFile(file, base)) return;
  for (const NvrtcFunction& function : {functions.get, functions.size}) {
    if (SegmentOf(file, function.cubin, kJumpSize) == nullptr || SegmentOf(file, function.ptx, 1) == nullptr) return;
  }
  // Never destroyed: whoever calls NVRTC comes to it. A library that is opened again is another one.
  auto* nvrtc = new Nvrtc(path, base, functions, &DeviceExecutesPtxAlone);
  if (nvrtc->Attach()) return;
  Log(LogLevel::kInfo,
      "%s: the system forbids changing code in memory (%s); where the device executes PTX alone, have it compile for "
      "compute_NN",
      path.c_str(), std::strerror(errno));
}

bool Objects::Follow() {
  g_objects = this;
  const auto notice = static_cast<uintptr_t>(_r_debug.r_brk);
  if (notice == 0) return false;
  // The loader's function does nothing: [endbr64;] ret, and the next function begins at the next multiple of 16. A
  // debugger may have put something else there: then it stays.
  const auto* code = reinterpret_cast<const uint8_t*>(notice);
  constexpr uint8_t kEmpty[] = {0xc3};
  constexpr uint8_t kMarkedEmpty[] = {0xf3, 0x0f, 0x1e, 0xfa, 0xc3};
  const bool empty =
      std::memcmp(code, kEmpty, sizeof(kEmpty)) == 0 || std::memcmp(code, kMarkedEmpty, sizeof(kMarkedEmpty)) == 0;
  const size_t room = 16 - notice % 16;
  if (!empty || room < kJumpSize) return false;
  const uintptr_t jump = MakeJumpTo(notice, reinterpret_cast<uintptr_t>(&LoaderChanged));
  return jump != 0 && Apply({{notice, room, jump}});
}

}  // namespace hawser::redirect
