// SPDX-License-Identifier: Apache-2.0
// Looks at each object of the process as it is loaded, before its constructors run, and redirects the CUDA runtime that
// it embeds, if any, to ours; of NVRTC, the functions for machine code (nvrtc.h).
//
// Threads: Scan() runs under the dynamic loader's lock: in this library's constructor, and from then on whenever the
// loader says that objects came or went. Nothing else touches the state.
#ifndef HAWSER_INTERPOSER_CUDART_REDIRECT_OBJECTS_H_
#define HAWSER_INTERPOSER_CUDART_REDIRECT_OBJECTS_H_

#include <link.h>

#include <cstdint>
#include <string>
#include <vector>

#include "interposer/cudart/redirect/runtime_finder.h"

namespace hawser::redirect {

class Objects {
 public:
  /// Looks at the objects that are new since the last time.
  void Scan();
  /// Has the loader call Scan() when objects are loaded later. False when this loader's notice is not understood.
  bool Follow();

 private:
  void Look(const link_map& object, bool is_program);
  void LookAtNvrtc(const std::string& path, uintptr_t base, const ElfReader& file);
  void Redirect(const std::string& path, uintptr_t base, const ElfReader& file, const EmbeddedRuntime& runtime);

  std::vector<const link_map*> known_;
};

/// The file of the object: what is on disk may have been replaced since it was loaded.
bool IsSameFile(const ElfReader& file, uintptr_t base);

}  // namespace hawser::redirect

#endif  // HAWSER_INTERPOSER_CUDART_REDIRECT_OBJECTS_H_
