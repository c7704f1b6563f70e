// SPDX-License-Identifier: Apache-2.0
// Finds the CUDA runtime that nvcc links into programs by default (libcudart_static.a), by the names in the file's
// symbol table; and a shared one that is not ours, which programs bring along (DT_RPATH, or opened by its full path).
#ifndef HAWSER_INTERPOSER_CUDART_REDIRECT_RUNTIME_FINDER_H_
#define HAWSER_INTERPOSER_CUDART_REDIRECT_RUNTIME_FINDER_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "interposer/cudart/redirect/elf_reader.h"

namespace hawser::redirect {

/// True when libcudart.so.<major> exports the name.
bool IsRuntimeName(std::string_view name, int major);

struct RuntimeEntry {
  std::string name;
  uint64_t value = 0;  ///< As the file has it: without the address at which it is loaded.
  size_t room = 0;     ///< Bytes from there to the next function.
};

struct EmbeddedRuntime {
  int major = 0;                      ///< 12 or 13; 0: no runtime was found.
  std::vector<RuntimeEntry> entries;  ///< In order of value, each value once.
  std::vector<std::string> unknown;   ///< Functions of the runtime that ours does not have.
  bool device_code = false;           ///< The file has device images...
  bool imports_runtime = false;       ///< ...and takes the runtime from a shared library.
};

EmbeddedRuntime FindRuntime(const ElfReader& file);

}  // namespace hawser::redirect

#endif  // HAWSER_INTERPOSER_CUDART_REDIRECT_RUNTIME_FINDER_H_
