// SPDX-License-Identifier: Apache-2.0
// The parts of a program's text: its macros, and what stands between the braces and semicolons of the outermost level.
//
// Nothing is expanded and no condition is decided: both branches of an #if count, and whoever names a macro, a function
// or a variable depends on every part of that name. So what is found out is true of every way to read the text.
#ifndef HAWSER_SERVER_BACKENDS_OPENCL_SLICING_PROGRAM_TEXT_H_
#define HAWSER_SERVER_BACKENDS_OPENCL_SLICING_PROGRAM_TEXT_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "server/backends/opencl/slicing/lexer.h"
#include "wire/status.h"

namespace hawser::server::slicing {

struct Part {
  enum class Kind : uint8_t { kMacro, kFunction, kDeclaration };
  Kind kind = Kind::kDeclaration;
  std::vector<std::string_view> names;
  std::vector<Token> tokens;  ///< A macro's body; else all, from the type to the last brace or semicolon.
};

/// The text and what the build options define, taken apart.
/// Threading: none; const use from many threads.
class ProgramText {
 public:
  /// Fails, with the reason, when the text or the options cannot be understood with certainty. `options` as for
  /// clBuildProgram.
  static wire::Result<ProgramText> Parse(std::string_view source, std::string_view options);

  const std::vector<Part>& parts() const { return parts_; }
  /// Indices of the parts of that name; empty when there are none.
  std::span<const uint32_t> Named(std::string_view name) const;
  /// The outermost level could be told apart. Otherwise every function may contain every token.
  bool is_clear() const { return is_clear_; }
  /// Tokens are pasted together somewhere (##): names may appear that the text does not show.
  bool pastes() const { return pastes_; }
  /// The preprocessor is told, or asked, something about this name: #define, #undef, #ifdef, defined(...), -D.
  bool IsPreprocessorName(std::string_view name) const { return preprocessor_names_.count(name) != 0; }
  /// Calls visit(token before or null, token, token behind or null) for every token that is not a directive's.
  void ForEachToken(const std::function<void(const Token*, const Token&, const Token*)>& visit) const;

  ProgramText(ProgramText&&) = default;
  ProgramText& operator=(ProgramText&&) = default;
  ProgramText(const ProgramText&) = delete;
  ProgramText& operator=(const ProgramText&) = delete;

 private:
  ProgramText() = default;

  wire::Status ReadOptions(std::string_view options);
  wire::Status DefineFromOption(std::string_view definition);
  wire::Status ReadText(const std::vector<Token>& tokens);
  wire::Status ReadDirective(std::span<const Token> line);
  void Define(std::span<const Token> line);
  void Divide(const std::vector<Token>& tokens);
  void AddChunk(std::span<const Token> header, std::span<const Token> body);
  void IndexNames();

  std::vector<TokenList> owned_;  ///< What all tokens view.
  std::vector<Part> parts_;
  std::unordered_map<std::string_view, std::vector<uint32_t>> by_name_;
  std::unordered_set<std::string_view> preprocessor_names_;
  bool is_clear_ = true;
  bool pastes_ = false;
};

}  // namespace hawser::server::slicing

#endif  // HAWSER_SERVER_BACKENDS_OPENCL_SLICING_PROGRAM_TEXT_H_
