// SPDX-License-Identifier: Apache-2.0
#include "softcuda/driver/linker.h"

#include <string.h>

#include <cstdio>
#include <memory>

#include "proto/facts/fatbin.h"
#include "softcuda/driver/image_chooser.h"
#include "softcuda/driver/log.h"

namespace hawser::soft {
namespace {

CUresult Report(CUresult result, const JitLogs& logs, const std::string& what, const std::string& why) {
  logs.Error(why);
  Log(what + ": " + why);
  return result;
}

}  // namespace

CUresult ReadImage(const void* image, uint32_t capability, const JitLogs& logs, Units* units) {
  ChosenImage chosen;
  std::string why;
  CUresult result = ChooseImage(image, capability, &chosen, &why);
  if (result == CUDA_SUCCESS) result = ParseUnits(chosen, units, &why);
  if (logs.max_registers != 0) units->max_registers = logs.max_registers;
  return result == CUDA_SUCCESS ? result : Report(result, logs, "a module was not loaded", why);
}

CUresult ReadImageFile(const char* path, std::string* bytes) {
  if (path == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path, "rb"), &std::fclose);
  if (file == nullptr) return CUDA_ERROR_FILE_NOT_FOUND;
  char block[65536];
  for (;;) {
    const size_t got = std::fread(block, 1, sizeof(block), file.get());
    if (got == 0) break;
    bytes->append(block, got);
    if (bytes->size() > fatbin::kMaxImageBytes) return CUDA_ERROR_INVALID_IMAGE;
  }
  if (std::ferror(file.get()) != 0) return CUDA_ERROR_FILE_NOT_FOUND;
  return CUDA_SUCCESS;
}

CUresult LinkState::Add(CUjitInputType type, std::span<const std::byte> data, const std::string& name) {
  if (type >= CU_JIT_NUM_INPUT_TYPES) return CUDA_ERROR_INVALID_VALUE;
  const std::string what = "cuLinkAdd" + (name.empty() ? std::string() : " of " + name);
  ChosenImage chosen;
  std::string why;
  CUresult result = CUDA_SUCCESS;
  if (type == CU_JIT_INPUT_OBJECT || type == CU_JIT_INPUT_LIBRARY) {
    result = ChooseFromObject(data, capability, &chosen, &why);
    // Machine code alone, such as that of the device runtime, of which exec::DeviceRuntime has what runs here: when the
    // link is complete it is known what is missing.
    if (result == CUDA_ERROR_NO_BINARY_FOR_GPU) return CUDA_SUCCESS;
  } else if (type == CU_JIT_INPUT_PTX) {
    const auto* const text = reinterpret_cast<const char*>(data.data());
    chosen.texts.emplace_back(text, ::strnlen(text, data.size()));
  } else {
    result = ChooseImage(data, capability, &chosen, &why);
  }
  Units parsed;
  if (result == CUDA_SUCCESS) result = ParseUnits(chosen, &parsed, &why);
  if (result != CUDA_SUCCESS) return Report(result, logs, what, why);
  for (std::string& text : chosen.texts) texts.push_back(std::move(text));
  return CUDA_SUCCESS;
}

CUresult LinkState::Complete() {
  ChosenImage chosen;
  chosen.texts = texts;
  Units units;
  std::string why;
  if (const CUresult result = ParseUnits(chosen, &units, &why); result != CUDA_SUCCESS) {
    return Report(result, logs, "cuLinkComplete", why);
  }
  exec::LinkOptions options;
  options.compute_capability = capability;
  const auto program = exec::Program::Link(units, options);
  if (!program.ok()) return Report(CUDA_ERROR_INVALID_PTX, logs, "cuLinkComplete", program.status().text());
  linked = PackLinked(texts, capability, logs.max_registers);
  return CUDA_SUCCESS;
}

}  // namespace hawser::soft
