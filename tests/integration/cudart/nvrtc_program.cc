// SPDX-License-Identifier: Apache-2.0
// nvrtc_program LIBRARY|- ptx|cubin [run]: compiles a kernel for sm_90 with NVRTC, or with a library that looks like
// it, and has several threads ask at once for the machine code. Says "passed" when each got what is expected and, with
// "run", the driver has run it. LIBRARY is opened; "-" is the one that the program is linked with.
#include <cuda.h>
#include <dlfcn.h>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace {

constexpr char kSource[] = "extern \"C\" __global__ void seven(int* to) { *to = 7; }";

void* g_nvrtc = nullptr;
void* g_driver = nullptr;

template <typename Function>
Function Find(void* library, const char* name) {
  void* const found = dlsym(library != nullptr ? library : RTLD_DEFAULT, name);
  if (found == nullptr) std::printf("%s is missing\n", name);
  return reinterpret_cast<Function>(found);
}

void* Compile() {
  const auto create = Find<int (*)(void**, const char*, const char*, int, const char* const*, const char* const*)>(
      g_nvrtc, "nvrtcCreateProgram");
  const auto compile = Find<int (*)(void*, int, const char* const*)>(g_nvrtc, "nvrtcCompileProgram");
  if (create == nullptr || compile == nullptr) return nullptr;
  void* program = nullptr;
  const char* const options[] = {"--gpu-architecture=sm_90"};
  if (create(&program, kSource, "seven.cu", 0, nullptr, nullptr) != 0 || compile(program, 1, options) != 0) {
    std::printf("the source does not compile\n");
    return nullptr;
  }
  return program;
}

std::string MachineCode(void* program) {
  const auto size_of = Find<int (*)(void*, size_t*)>(g_nvrtc, "nvrtcGetCUBINSize");
  const auto get = Find<int (*)(void*, char*)>(g_nvrtc, "nvrtcGetCUBIN");
  size_t size = 0;
  if (size_of == nullptr || get == nullptr || size_of(program, &size) != 0) return {};
  std::string code(size, '\0');
  return get(program, code.data()) == 0 ? code : std::string();
}

bool Run(const std::string& code) {
#define F(name) const auto name##_ = Find<decltype(&name)>(g_driver, #name)
  F(cuInit);
  F(cuDeviceGet);
  F(cuDevicePrimaryCtxRetain);
  F(cuCtxSetCurrent);
  F(cuModuleLoadData);
  F(cuModuleGetFunction);
  const auto allocate = Find<CUresult (*)(CUdeviceptr*, size_t)>(g_driver, "cuMemAlloc_v2");
  const auto fetch = Find<CUresult (*)(void*, CUdeviceptr, size_t)>(g_driver, "cuMemcpyDtoH_v2");
  F(cuLaunchKernel);
#undef F
  CUdevice device = 0;
  CUcontext context = nullptr;
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  CUdeviceptr memory = 0;
  int value = 0;
  if (cuInit_(0) != CUDA_SUCCESS || cuDeviceGet_(&device, 0) != CUDA_SUCCESS ||
      cuDevicePrimaryCtxRetain_(&context, device) != CUDA_SUCCESS || cuCtxSetCurrent_(context) != CUDA_SUCCESS) {
    std::printf("no device\n");
    return false;
  }
  if (const CUresult result = cuModuleLoadData_(&module, code.c_str()); result != CUDA_SUCCESS) {
    std::printf("the module is not loaded: %d\n", result);
    return false;
  }
  void* parameters[] = {&memory};
  const bool ran = cuModuleGetFunction_(&function, module, "seven") == CUDA_SUCCESS &&
                   allocate(&memory, sizeof(value)) == CUDA_SUCCESS &&
                   cuLaunchKernel_(function, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr) == CUDA_SUCCESS &&
                   fetch(&value, memory, sizeof(value)) == CUDA_SUCCESS;
  if (!ran || value != 7) std::printf("the kernel gave %d\n", value);
  return ran && value == 7;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const std::string_view library = argv[1];
  const bool expects_ptx = std::string_view(argv[2]) == "ptx";
  if (library != "-") {
    g_nvrtc = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (g_nvrtc == nullptr) {
      std::printf("%s\n", dlerror());
      return 1;
    }
  }
  void* const program = Compile();
  if (program == nullptr) return 1;
  std::atomic<int> wrong{0};
  std::atomic<bool> go{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      while (!go.load()) std::this_thread::yield();
      for (int round = 0; round < 100; ++round) {
        const std::string code = MachineCode(program);
        const bool is_cubin = code.starts_with("\177ELF");
        const bool is_ptx = code.find(".entry seven") != std::string::npos;
        if (expects_ptx ? !is_ptx : !is_cubin) wrong.fetch_add(1);
      }
    });
  }
  go.store(true);
  for (std::thread& thread : threads) thread.join();
  if (wrong.load() != 0) {
    std::printf("%d of 800 times it was not %s\n", wrong.load(), argv[2]);
    return 1;
  }
  if (argc > 3) {
    g_driver = dlopen("libcuda.so.1", RTLD_NOW);
    if (g_driver == nullptr || !Run(MachineCode(program))) return 1;
  }
  std::printf("passed\n");
  return 0;
}
