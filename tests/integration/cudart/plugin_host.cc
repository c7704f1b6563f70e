// SPDX-License-Identifier: Apache-2.0
// Opens the library named on the command line, twice, and runs it; without an argument, the one it is linked with.
#include <dlfcn.h>

#include <cstdio>

extern "C" int plugin_run() __attribute__((weak));

int main(int argc, char** argv) {
  if (argc < 2) return plugin_run != nullptr ? plugin_run() : 2;
  for (int round = 0; round < 2; ++round) {
    void* library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      std::printf("%s\n", dlerror());
      return 1;
    }
    auto* run = reinterpret_cast<int (*)()>(dlsym(library, "plugin_run"));
    if (run == nullptr || run() != 0) return 1;
    dlclose(library);
  }
  return 0;
}
