// SPDX-License-Identifier: Apache-2.0
#include "server/backends/cuda/slicing/guard.h"

#include <algorithm>
#include <array>
#include <span>
#include <unordered_set>

#include "server/backends/cuda/slicing/places.h"
#include "server/backends/cuda/slicing/scan.h"
#include "server/backends/cuda/slicing/text_edits.h"
#include "server/backends/cuda/slicing/variables.h"
#include "softcuda/ptx/lexer.h"

namespace hawser::server::cuda_slicing {
namespace {

using ptx::Lexer;
using ptx::TokenKind;
using wire::Code;
using wire::Result;
using wire::Status;

/// A text that has this already is not rewritten: names could meet.
constexpr std::string_view kMark = "__hawser_";
constexpr std::string_view kGuardParameters = ".param .u64 __hawser_low, .param .u64 __hawser_high";
constexpr std::string_view kOffsetParameters =
    ".param .align 8 .u32 __hawser_low, .param .u32 __hawser_nx, .param .u32 __hawser_ny, .param .u32 __hawser_nz";
/// In a scope of its own. z * ny + y is less than 2^32 in every grid, x + nx * that less than 2^63.
constexpr std::string_view kGuard =
    "\n{\n"
    ".reg .pred %__hawser_p<2>;\n"
    ".reg .b32 %__hawser_a<6>;\n"
    ".reg .b64 %__hawser_d<4>;\n"
    "ld.param.u64 %__hawser_d0, [__hawser_low];\n"
    "ld.param.u64 %__hawser_d1, [__hawser_high];\n"
    "mov.u32 %__hawser_a0, %ctaid.x;\n"
    "mov.u32 %__hawser_a1, %ctaid.y;\n"
    "mov.u32 %__hawser_a2, %ctaid.z;\n"
    "mov.u32 %__hawser_a3, %nctaid.x;\n"
    "mov.u32 %__hawser_a4, %nctaid.y;\n"
    "mad.lo.u32 %__hawser_a5, %__hawser_a2, %__hawser_a4, %__hawser_a1;\n"
    "cvt.u64.u32 %__hawser_d2, %__hawser_a0;\n"
    "mad.wide.u32 %__hawser_d3, %__hawser_a5, %__hawser_a3, %__hawser_d2;\n"
    "setp.lt.u64 %__hawser_p0, %__hawser_d3, %__hawser_d0;\n"
    "setp.ge.u64 %__hawser_p1, %__hawser_d3, %__hawser_d1;\n"
    "@%__hawser_p0 exit;\n"
    "@%__hawser_p1 exit;\n"
    "}\n";

/// What the body names instead of %ctaid and %nctaid is declared in the body's scope. A launch in parts of this kind
/// has less than 2^32 blocks.
constexpr std::string_view kOffset =
    "\n.reg .b32 %__hawser_x, %__hawser_y, %__hawser_z, %__hawser_nx, %__hawser_ny, %__hawser_nz;\n"
    "{\n"
    ".reg .b32 %__hawser_a<3>;\n"
    "ld.param.u32 %__hawser_a0, [__hawser_low];\n"
    "ld.param.u32 %__hawser_nx, [__hawser_nx];\n"
    "ld.param.u32 %__hawser_ny, [__hawser_ny];\n"
    "ld.param.u32 %__hawser_nz, [__hawser_nz];\n"
    "mov.u32 %__hawser_a1, %ctaid.x;\n"
    "add.u32 %__hawser_a0, %__hawser_a0, %__hawser_a1;\n"
    "div.u32 %__hawser_a1, %__hawser_a0, %__hawser_nx;\n"
    "mul.lo.u32 %__hawser_a2, %__hawser_a1, %__hawser_nx;\n"
    "sub.u32 %__hawser_x, %__hawser_a0, %__hawser_a2;\n"
    "div.u32 %__hawser_z, %__hawser_a1, %__hawser_ny;\n"
    "mul.lo.u32 %__hawser_a2, %__hawser_z, %__hawser_ny;\n"
    "sub.u32 %__hawser_y, %__hawser_a1, %__hawser_a2;\n"
    "}\n";

/// Most launches have one row, and many have blocks so short that what each of them does first is felt (0014). A part
/// has one row as well, so of the other directions the device's own answers are true.
constexpr std::string_view kRow =
    "\n.reg .b32 %__hawser_x;\n"
    "{\n"
    ".reg .b32 %__hawser_a0;\n"
    "ld.param.u32 %__hawser_x, [__hawser_low];\n"
    "mov.u32 %__hawser_a0, %ctaid.x;\n"
    "add.u32 %__hawser_x, %__hawser_x, %__hawser_a0;\n"
    "}\n";
constexpr std::string_view kRowExtent =
    ".reg .b32 %__hawser_nx;\n"
    "ld.param.u32 %__hawser_nx, [__hawser_nx];\n";

using Name = std::array<std::string_view, 2>;
/// What stands for a special register in a kernel with an offset.
constexpr Name kOffsetNames[] = {{"%ctaid.x", "%__hawser_x"},   {"%ctaid.y", "%__hawser_y"},
                                 {"%ctaid.z", "%__hawser_z"},   {"%nctaid.x", "%__hawser_nx"},
                                 {"%nctaid.y", "%__hawser_ny"}, {"%nctaid.z", "%__hawser_nz"}};
constexpr Name kRowNames[] = {{"%ctaid.x", "%__hawser_x"}, {"%nctaid.x", "%__hawser_nx"}};

/// Those names in a kernel's body, which is the text from `begin` to `end`. True: the extent of a row is among them.
bool TakeNames(std::span<const Name> names, size_t begin, size_t end, TextEdits* edits) {
  bool extent = false;
  for (Lexer lexer(edits->text().substr(begin, end - begin)); lexer.Peek().kind != TokenKind::kEnd; lexer.Next()) {
    const std::string_view word = lexer.Peek().kind == TokenKind::kWord ? lexer.Peek().text : "";
    const auto name = std::find_if(names.begin(), names.end(), [&](const Name& each) { return each[0] == word; });
    if (name == names.end()) continue;
    const size_t at = edits->Offset(word);
    edits->Replace(at, at + word.size(), std::string((*name)[1]));
    extent = extent || (*name)[1] == "%__hawser_nx";
  }
  return extent;
}

/// What the kernel does first, and its body made to use what that finds out.
void Begin(Way way, size_t begin, size_t end, TextEdits* edits) {
  std::string first(way == Way::kGuard ? kGuard : way == Way::kOffset ? kOffset : kRow);
  if (way == Way::kOffset) TakeNames(kOffsetNames, begin, end, edits);
  if (way == Way::kRow && TakeNames(kRowNames, begin, end, edits)) first += kRowExtent;
  edits->Insert(begin, first);
}

uint64_t RoundUp(uint64_t value, uint64_t alignment) {
  return alignment <= 1 ? value : (value + alignment - 1) / alignment * alignment;
}

Status Unclear(const char* what) {
  return Status(Code::kInvalid, std::string("a kernel's text cannot be told from the rest: ") + what);
}

}  // namespace

uint64_t MostParameterBytes(uint32_t version_major, uint32_t version_minor, uint32_t target) {
  const bool many = version_major > 8 || (version_major == 8 && version_minor >= 1);
  return many && target >= 70 ? 32764 : 4352;
}

Result<ParameterLayout> LayoutOf(const ptx::Module& module, const ptx::Function& kernel) {
  ParameterLayout layout;
  for (const uint32_t index : kernel.parameters) {
    if ((index & ptx::Function::kRegisterFlag) != 0 || index >= kernel.variables.size()) {
      return Status(Code::kInvalid, "a parameter is in a register");
    }
    const ptx::Variable& parameter = kernel.variables[index];
    if (parameter.size > MostParameterBytes(9, 0, 90)) return Status(Code::kInvalid, "it has too many parameters");
    layout.own_bytes = RoundUp(layout.own_bytes, parameter.alignment) + parameter.size;
  }
  layout.added_offset = RoundUp(layout.own_bytes, 8);
  layout.total_bytes = layout.added_offset + 16;
  if (layout.total_bytes > MostParameterBytes(module.version_major, module.version_minor, module.target)) {
    return Status(Code::kInvalid, "it has too many parameters");
  }
  return layout;
}

Result<Copy> Rewrite(const ptx::Module& module, std::string_view kernel, Way way) {
  const std::string_view text = *module.text;
  if (text.find(kMark) != std::string_view::npos) return Unclear("it has names of ours");
  Result<Places> places = FindPlaces(text);
  if (!places.ok()) return places.status();
  const std::vector<const ptx::Function*> reached = ReachedFrom(module, kernel);
  if (reached.empty()) return Unclear("it is not there");
  TextEdits edits(text);
  VariableUses variables(module, &edits);
  for (const ptx::Function* function : reached) {
    if (Status status = variables.Redirect(*function); !status.ok()) return status;
  }
  if (Status status = variables.Declare(*places); !status.ok()) return status;
  std::unordered_set<std::string_view> wanted, defined;
  for (const ptx::Function* function : reached) wanted.insert(function->name);
  for (const FunctionPlace& place : places->functions) {
    if (place.body != 0) defined.insert(place.name);
  }
  size_t found = 0;
  for (const FunctionPlace& place : places->functions) {
    if (!place.entry) {
      // Declarations of what is elsewhere stay: the driver's own functions are among them.
      if (defined.contains(place.name) && !wanted.contains(place.name)) edits.Replace(place.begin, place.end, "\n");
      continue;
    }
    if (place.name != kernel || place.body == 0) {
      edits.Replace(place.begin, place.end, "\n");  // So that what was before and what comes behind stay two words.
      continue;
    }
    ++found;
    const std::string_view parameters = way == Way::kGuard ? kGuardParameters : kOffsetParameters;
    if (place.parameters_begin == 0) {
      edits.Insert(place.name_end, "(" + std::string(parameters) + ")");
    } else {
      const std::string_view own = text.substr(place.parameters_begin, place.parameters_end - place.parameters_begin);
      const bool none = Lexer(own).Peek().kind == TokenKind::kEnd;
      edits.Insert(place.parameters_end, (none ? "\n" : ",\n") + std::string(parameters));
    }
    Begin(way, place.body, place.end, &edits);
  }
  if (found != 1) return Unclear("it is not there once");
  Copy copy;
  copy.text = edits.Apply();
  if (!edits.clean()) return Unclear("what must change lies one in the other");
  copy.variables = variables.Take();
  return copy;
}

}  // namespace hawser::server::cuda_slicing
