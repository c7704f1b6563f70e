// SPDX-License-Identifier: Apache-2.0
#include "server/backends/cuda/slicing/guard.h"

#include <algorithm>

#include "softcuda/ptx/lexer.h"

namespace hawser::server::cuda_slicing {
namespace {

using ptx::Lexer;
using ptx::Token;
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
/// has less than 2^32 blocks. Most have one row, and need no division.
constexpr std::string_view kOffset =
    "\n.reg .b32 %__hawser_x, %__hawser_y, %__hawser_z, %__hawser_nx, %__hawser_ny, %__hawser_nz;\n"
    "{\n"
    ".reg .pred %__hawser_p;\n"
    ".reg .b32 %__hawser_a<4>;\n"
    "ld.param.u32 %__hawser_a0, [__hawser_low];\n"
    "ld.param.u32 %__hawser_nx, [__hawser_nx];\n"
    "ld.param.u32 %__hawser_ny, [__hawser_ny];\n"
    "ld.param.u32 %__hawser_nz, [__hawser_nz];\n"
    "mov.u32 %__hawser_a1, %ctaid.x;\n"
    "add.u32 %__hawser_x, %__hawser_a0, %__hawser_a1;\n"
    "mov.u32 %__hawser_y, 0;\n"
    "mov.u32 %__hawser_z, 0;\n"
    "or.b32 %__hawser_a2, %__hawser_ny, %__hawser_nz;\n"
    "setp.eq.u32 %__hawser_p, %__hawser_a2, 1;\n"
    "@%__hawser_p bra $__hawser_found;\n"
    "div.u32 %__hawser_a0, %__hawser_x, %__hawser_nx;\n"
    "mul.lo.u32 %__hawser_a1, %__hawser_a0, %__hawser_nx;\n"
    "sub.u32 %__hawser_x, %__hawser_x, %__hawser_a1;\n"
    "div.u32 %__hawser_z, %__hawser_a0, %__hawser_ny;\n"
    "mul.lo.u32 %__hawser_a1, %__hawser_z, %__hawser_ny;\n"
    "sub.u32 %__hawser_y, %__hawser_a0, %__hawser_a1;\n"
    "$__hawser_found:\n"
    "mov.u32 %__hawser_a3, 0;\n"
    "}\n";

/// What stands for this name in a kernel with an offset; empty: the name itself.
std::string_view OffsetName(std::string_view name) {
  constexpr std::string_view kNames[][2] = {{"%ctaid.x", "%__hawser_x"},   {"%ctaid.y", "%__hawser_y"},
                                            {"%ctaid.z", "%__hawser_z"},   {"%nctaid.x", "%__hawser_nx"},
                                            {"%nctaid.y", "%__hawser_ny"}, {"%nctaid.z", "%__hawser_nz"}};
  for (const auto& [from, to] : kNames) {
    if (name == from) return to;
  }
  return {};
}

/// A body, from behind its '{', with those names.
std::string WithOffsetNames(std::string_view body) {
  std::string out;
  size_t at = 0;
  for (Lexer lexer(body); lexer.Peek().kind != TokenKind::kEnd; lexer.Next()) {
    const std::string_view to = lexer.Peek().kind == TokenKind::kWord ? OffsetName(lexer.Peek().text) : "";
    if (to.empty()) continue;
    out.append(body.substr(at, lexer.Offset() - at)).append(to);
    at = lexer.Offset() + lexer.Peek().text.size();
  }
  return out.append(body.substr(at));
}

bool IsLinkage(std::string_view word) {
  return word == ".visible" || word == ".weak" || word == ".extern" || word == ".common";
}

uint64_t RoundUp(uint64_t value, uint64_t alignment) {
  return alignment <= 1 ? value : (value + alignment - 1) / alignment * alignment;
}

Status Unclear(const char* what) {
  return Status(Code::kInvalid, std::string("a kernel's text cannot be told from the rest: ") + what);
}

/// One pass over the text.
class KernelFinder {
 public:
  explicit KernelFinder(std::string_view text) : lexer_(text) {}

  Result<std::vector<KernelPlace>> Run() {
    size_t linkage = kNowhere;
    while (lexer_.Peek().kind != TokenKind::kEnd) {
      if (lexer_.Peek().kind == TokenKind::kBad) return Unclear("a byte that begins no token");
      const size_t at = lexer_.Offset();
      const Token token = lexer_.Next();
      if (IsLinkage(token.text)) {
        if (linkage == kNowhere) linkage = at;
        continue;
      }
      if (token.text == ".entry") {
        if (!Kernel(linkage == kNowhere ? at : linkage)) return Unclear(problem_);
      } else if (token.text == "{" && !lexer_.SkipBraces()) {
        return Unclear("a brace that does not close");
      }
      linkage = kNowhere;
    }
    return std::move(kernels_);
  }

 private:
  static constexpr size_t kNowhere = SIZE_MAX;

  bool Kernel(size_t begin) {
    KernelPlace kernel;
    kernel.begin = begin;
    if (lexer_.Peek().text == ".attribute") {
      lexer_.Next();
      if (lexer_.Next().text != "(" || !SkipParentheses()) return Problem("an attribute without its list");
    }
    if (lexer_.Peek().kind != TokenKind::kWord) return Problem("a kernel without a name");
    kernel.name = lexer_.Peek().text;
    kernel.name_end = lexer_.Offset() + kernel.name.size();
    lexer_.Next();
    if (lexer_.Peek().text == "(") {
      kernel.parameters_begin = lexer_.Offset() + 1;
      lexer_.Next();
      if (!SkipParentheses()) return Problem("a list of parameters that does not end");
      kernel.parameters_end = closed_at_;
    }
    for (;;) {
      if (lexer_.Peek().kind == TokenKind::kEnd) return Problem("a kernel that does not end");
      const size_t at = lexer_.Offset();
      const Token token = lexer_.Next();
      if (token.text == ".pragma") {
        while (lexer_.Peek().kind != TokenKind::kEnd && lexer_.Next().text != ";") {
        }
      } else if (token.text == ";") {
        kernel.end = at + 1;
        break;
      } else if (token.text == "{") {
        kernel.body = at + 1;
        if (!SkipBody(&kernel.end)) return Problem("a body that does not end");
        break;
      }
    }
    kernels_.push_back(kernel);
    return true;
  }

  /// Behind '(' to behind its ')'.
  bool SkipParentheses() {
    for (uint32_t depth = 1; lexer_.Peek().kind != TokenKind::kEnd;) {
      closed_at_ = lexer_.Offset();
      const Token token = lexer_.Next();
      if (token.text == "(") ++depth;
      if (token.text == ")" && --depth == 0) return true;
    }
    return false;
  }

  bool SkipBody(size_t* end) {
    for (uint32_t depth = 1; lexer_.Peek().kind != TokenKind::kEnd;) {
      const size_t at = lexer_.Offset();
      const Token token = lexer_.Next();
      if (token.text == "{") ++depth;
      if (token.text != "}" || --depth != 0) continue;
      *end = at + 1;
      return true;
    }
    return false;
  }

  bool Problem(const char* what) {
    problem_ = what;
    return false;
  }

  Lexer lexer_;
  size_t closed_at_ = 0;
  const char* problem_ = "";
  std::vector<KernelPlace> kernels_;
};

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

Result<std::vector<KernelPlace>> FindKernels(std::string_view text) {
  return KernelFinder(text.substr(0, text.find('\0'))).Run();
}

Result<std::string> Rewrite(const ptx::Module& module, std::string_view kernel, Way way) {
  const std::string_view prologue = way == Way::kGuard ? kGuard : kOffset;
  const std::string_view parameters = way == Way::kGuard ? kGuardParameters : kOffsetParameters;
  const std::string_view text = *module.text;
  if (text.find(kMark) != std::string_view::npos) return Unclear("it has names of ours");
  Result<std::vector<KernelPlace>> kernels = FindKernels(text);
  if (!kernels.ok()) return kernels.status();
  const auto is_ours = [&](const KernelPlace& place) { return place.name == kernel && place.body != 0; };
  if (std::count_if(kernels->begin(), kernels->end(), is_ours) != 1) return Unclear("it is not there once");
  std::string out;
  out.reserve(text.size() + prologue.size() + parameters.size() + 8);
  size_t at = 0;
  const auto copy_to = [&](size_t end) {
    out += text.substr(at, end - at);
    at = end;
  };
  for (const KernelPlace& place : *kernels) {
    copy_to(place.begin);
    if (!is_ours(place)) {
      at = place.end;
      out += '\n';  // So that what was before and what comes behind stay two words.
      continue;
    }
    if (place.parameters_begin == 0) {
      copy_to(place.name_end);
      out.append("(").append(parameters).append(")");
    } else {
      copy_to(place.parameters_end);
      const std::string_view own = text.substr(place.parameters_begin, place.parameters_end - place.parameters_begin);
      if (Lexer(own).Peek().kind != TokenKind::kEnd) out += ",";
      out.append("\n").append(parameters);
    }
    copy_to(place.body);
    out += prologue;
    if (way == Way::kGuard) {
      copy_to(place.end);
    } else {
      out += WithOffsetNames(text.substr(at, place.end - at));
      at = place.end;
    }
  }
  copy_to(text.size());
  return out;
}

}  // namespace hawser::server::cuda_slicing
