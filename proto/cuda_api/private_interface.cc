// SPDX-License-Identifier: Apache-2.0
#include "proto/cuda_api/private_interface.h"

#include <dlfcn.h>

namespace hawser::cuda_api {

bool WorksWithout(std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  for (const std::string_view compiler : {"libnvrtc.so", "libnvJitLink.so"}) {
    if (name.substr(0, compiler.size()) == compiler) return true;
  }
  return false;
}

std::string PrivateInterfaceText(const void* caller) {
  Dl_info info{};
  const bool known = ::dladdr(caller, &info) != 0 && info.dli_fname != nullptr && info.dli_fname[0] != '\0';
  if (known && WorksWithout(info.dli_fname)) return "";
  return std::string(known ? info.dli_fname : "the program") +
         " asks for private interfaces of NVIDIA's driver, which are not here. If it contains CUDA's static runtime "
         "without "
         "a symbol table, its CUDA calls fail: do not strip it, or relink it with 'nvcc -cudart shared'. NVIDIA's own "
         "libraries (cuBLAS, cuDNN, ...) need NVIDIA's driver in the same process";
}

}  // namespace hawser::cuda_api
