// SPDX-License-Identifier: Apache-2.0
// Device code within what host compilers make of CUDA sources: object files and archives of them, as they are given to
// cuLinkAddFile. nvcc puts fatbins one behind the other into a section of the object file, `.nv_fatbin`, or
// `__nv_relfatbin` for relocatable code (seen with nvcc 12 and 13). The container formats are System V's: the ELF-64
// object file and the common archive.
//
// Threads: nothing here keeps state.
#ifndef HAWSER_PROTO_FACTS_HOST_OBJECT_H_
#define HAWSER_PROTO_FACTS_HOST_OBJECT_H_

#include <cstddef>
#include <span>
#include <vector>

#include "wire/status.h"

namespace hawser::fatbin {

/// Most fatbins that are taken from one file.
inline constexpr size_t kMaxObjectFatbins = 65536;

/// The fatbins of an object file or archive, in its order; they point into `file`. An archive's members that are no
/// object files are passed over, as linkers do. kInvalid: neither of the two, damaged, or without device code.
wire::Result<std::vector<std::span<const std::byte>>> FindFatbins(std::span<const std::byte> file);

}  // namespace hawser::fatbin

#endif  // HAWSER_PROTO_FACTS_HOST_OBJECT_H_
