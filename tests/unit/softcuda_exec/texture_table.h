// SPDX-License-Identifier: Apache-2.0
// Textures and surfaces of a test by their handles.
#ifndef HAWSER_TESTS_UNIT_SOFTCUDA_EXEC_TEXTURE_TABLE_H_
#define HAWSER_TESTS_UNIT_SOFTCUDA_EXEC_TEXTURE_TABLE_H_

#include <map>

#include "softcuda/exec/texture.h"

namespace hawser::exec {

class MapTextureTable : public TextureTable {
 public:
  const TextureDescriptor* FindTexture(uint64_t handle) const override { return Find(textures, handle); }
  const TextureDescriptor* FindSurface(uint64_t handle) const override { return Find(surfaces, handle); }
  std::map<uint64_t, TextureDescriptor> textures, surfaces;  ///< Not to be changed during a launch.

 private:
  static const TextureDescriptor* Find(const std::map<uint64_t, TextureDescriptor>& map, uint64_t handle) {
    const auto it = map.find(handle);
    return it == map.end() ? nullptr : &it->second;
  }
};

}  // namespace hawser::exec

#endif  // HAWSER_TESTS_UNIT_SOFTCUDA_EXEC_TEXTURE_TABLE_H_
