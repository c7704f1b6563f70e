// SPDX-License-Identifier: Apache-2.0
#include "server/backends/opencl/slicing/il/il_module.h"

#include <cstring>
#include <memory>
#include <string>

#include "spirv-tools/libspirv.h"
#include "spirv/unified1/spirv.hpp11"

namespace hawser::server::slicing {
namespace {

using wire::Code;
using wire::Result;
using wire::Status;

bool IsId(spv_operand_type_t type) {
  return type == SPV_OPERAND_TYPE_ID || type == SPV_OPERAND_TYPE_SCOPE_ID ||
         type == SPV_OPERAND_TYPE_MEMORY_SEMANTICS_ID;
}

}  // namespace

struct IlReader {
  IlModule module;

  static spv_result_t OnHeader(void* reader, spv_endianness_t /*order*/, uint32_t magic, uint32_t version,
                               uint32_t generator, uint32_t bound, uint32_t schema) {
    if (bound > IlModule::kMostIds) return SPV_ERROR_INVALID_ID;
    static_cast<IlReader*>(reader)->module.header_ = {magic, version, generator, bound, schema};
    return SPV_SUCCESS;
  }

  static spv_result_t OnInstruction(void* reader, const spv_parsed_instruction_t* instruction) {
    IlModule& module = static_cast<IlReader*>(reader)->module;
    if (instruction->type_id >= module.bound() || instruction->result_id >= module.bound()) return SPV_ERROR_INVALID_ID;
    IlModule::Record record;
    record.opcode = instruction->opcode;
    record.type = instruction->type_id;
    record.result = instruction->result_id;
    record.first_word = static_cast<uint32_t>(module.words_.size());
    record.words = instruction->num_words;
    module.words_.insert(module.words_.end(), instruction->words, instruction->words + instruction->num_words);
    record.first_input = static_cast<uint32_t>(module.inputs_.size());
    for (uint16_t i = 0; i < instruction->num_operands; ++i) {
      const spv_parsed_operand_t& operand = instruction->operands[i];
      if (!IsId(operand.type)) continue;
      const uint32_t id = instruction->words[operand.offset];
      if (id >= module.bound()) return SPV_ERROR_INVALID_ID;
      module.inputs_.push_back(id);
    }
    record.inputs = static_cast<uint32_t>(module.inputs_.size()) - record.first_input;
    module.records_.push_back(record);
    return SPV_SUCCESS;
  }
};

Result<IlModule> IlModule::Parse(std::span<const std::byte> bytes) {
  if (bytes.size() % sizeof(uint32_t) != 0 || bytes.size() < kHeaderWords * sizeof(uint32_t)) {
    return Status(Code::kInvalid, "its intermediate language is not made of words");
  }
  if (bytes.size() / sizeof(uint32_t) > kMostWords) {
    return Status(Code::kInvalid, "its intermediate language is too long to be looked at");
  }
  // A copy, because a guest's bytes may lie anywhere.
  std::vector<uint32_t> words(bytes.size() / sizeof(uint32_t));
  std::memcpy(words.data(), bytes.data(), bytes.size());
  // SPIRV-Tools turns words round, but not the texts in them.
  if (words[0] == __builtin_bswap32(spv::MagicNumber)) {
    for (uint32_t& word : words) word = __builtin_bswap32(word);
  }
  const std::unique_ptr<spv_context_t, decltype(&spvContextDestroy)> context(spvContextCreate(SPV_ENV_UNIVERSAL_1_6),
                                                                             &spvContextDestroy);
  if (context == nullptr) return Status(Code::kExhausted, "no memory is left to look at its intermediate language");
  IlReader reader;
  spv_diagnostic diagnostic = nullptr;
  const spv_result_t result = spvBinaryParse(context.get(), &reader, words.data(), words.size(), &IlReader::OnHeader,
                                             &IlReader::OnInstruction, &diagnostic);
  const std::unique_ptr<spv_diagnostic_t, decltype(&spvDiagnosticDestroy)> owned(diagnostic, &spvDiagnosticDestroy);
  if (result != SPV_SUCCESS) {
    std::string text = "its intermediate language cannot be read";
    if (diagnostic != nullptr && diagnostic->error != nullptr) text.append(": ").append(diagnostic->error);
    return Status(Code::kInvalid, std::move(text));
  }
  return std::move(reader.module);
}

IlInstruction IlModule::at(size_t index) const {
  const Record& record = records_[index];
  IlInstruction instruction;
  instruction.opcode = record.opcode;
  instruction.type = record.type;
  instruction.result = record.result;
  instruction.words = std::span(words_).subspan(record.first_word, record.words);
  instruction.inputs = std::span(inputs_).subspan(record.first_input, record.inputs);
  return instruction;
}

std::string_view IlText(std::span<const uint32_t> words) {
  const char* text = reinterpret_cast<const char*>(words.data());
  return {text, strnlen(text, words.size() * sizeof(uint32_t))};
}

}  // namespace hawser::server::slicing
