// SPDX-License-Identifier: Apache-2.0
#include "server/backends/opencl/slicing/program_text.h"

#include <string>
#include <utility>

namespace hawser::server::slicing {
namespace {

using wire::Code;
using wire::Result;
using wire::Status;

// More would not be looked at in time.
constexpr size_t kLongestOptions = size_t{64} << 10;

Status Unclear(std::string what) { return Status(Code::kInvalid, std::move(what)); }

// Words of an option string; blanks within quotes belong to a word, quotes and backslashes do not.
Result<std::vector<std::string>> Words(std::string_view options) {
  std::vector<std::string> words;
  std::string word;
  bool in_word = false;
  for (const char c : options) {
    if (c == '"' || c == '\'' || c == '\\') return Unclear("the build options have quotes");
    if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
      if (in_word) words.push_back(std::exchange(word, {}));
      in_word = false;
    } else {
      word += c;
      in_word = true;
    }
  }
  if (in_word) words.push_back(std::move(word));
  return words;
}

bool StartsWith(std::string_view text, std::string_view start) { return text.substr(0, start.size()) == start; }

// Options that change nothing of what is found out. All others, a driver's own among them, may.
bool IsHarmless(std::string_view option) {
  if (StartsWith(option, "-cl-std=")) return StartsWith(option, "-cl-std=CL") && !StartsWith(option, "-cl-std=CLC++");
  if (StartsWith(option, "-cl-")) return true;
  if (StartsWith(option, "-I")) return true;  // Programs with #include are not looked at anyway.
  if (StartsWith(option, "-O") && option.size() == 3) return true;
  for (const std::string_view known : {"-w", "-Werror", "-g"}) {
    if (option == known) return true;
  }
  return false;
}

// Words that name no object of the program.
bool IsWord(std::string_view name) {
  static const std::unordered_set<std::string_view> kWords = {
      "__attribute__", "__attribute", "void",     "bool",    "char",     "uchar",  "short",   "ushort",   "int",
      "uint",          "long",        "ulong",    "float",   "double",   "half",   "size_t",  "signed",   "unsigned",
      "const",         "volatile",    "restrict", "static",  "inline",   "extern", "typedef", "struct",   "union",
      "enum",          "kernel",      "__kernel", "global",  "__global", "local",  "__local", "constant", "__constant",
      "private",       "__private",   "generic",  "return",  "if",       "for",    "while",   "switch",   "do",
      "else",          "sizeof",      "event_t",  "aligned", "packed"};
  return kWords.count(name) != 0;
}

// Another implementation's names for what get_group_id and the like return, or for anything else. What is a word in C++
// alone is not among them: programs in C++ say so in their options, which is enough.
bool IsForeign(std::string_view name) {
  for (const std::string_view known : {"asm", "__asm", "__asm__", "_Pragma", "__pragma"}) {
    if (name == known) return true;
  }
  for (const std::string_view start :
       {"__builtin_amdgcn", "__builtin_r600", "__builtin_nvvm", "__nvvm", "__nv_", "__builtin_IB_", "__spirv", "__ocml",
        "__ockl", "_Z", "pocl_", "_pocl", "__pocl", "hawser_"}) {
    if (StartsWith(name, start)) return true;
  }
  return false;
}

}  // namespace

Result<ProgramText> ProgramText::Parse(std::string_view source, std::string_view options) {
  ProgramText text;
  if (Status status = text.ReadOptions(options); !status.ok()) return status;
  Result<TokenList> tokens = TokenList::Lex(source);
  if (!tokens.ok()) return tokens.status();
  text.owned_.push_back(std::move(*tokens));
  if (Status status = text.ReadText(text.owned_.back().tokens()); !status.ok()) return status;
  text.IndexNames();
  return text;
}

std::span<const uint32_t> ProgramText::Named(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? std::span<const uint32_t>() : std::span<const uint32_t>(found->second);
}

void ProgramText::ForEachToken(const std::function<void(const Token*, const Token&, const Token*)>& visit) const {
  for (const Part& part : parts_) {
    for (size_t i = 0; i < part.tokens.size(); ++i) {
      visit(i == 0 ? nullptr : &part.tokens[i - 1], part.tokens[i],
            i + 1 == part.tokens.size() ? nullptr : &part.tokens[i + 1]);
    }
  }
}

Status ProgramText::ReadOptions(std::string_view options) {
  options = options.substr(0, options.find('\0'));
  if (options.size() > kLongestOptions) return Unclear("the build options are too long to be looked at");
  Result<std::vector<std::string>> words = Words(options);
  if (!words.ok()) return words.status();
  for (size_t i = 0; i < words->size(); ++i) {
    const std::string& word = words.value()[i];
    if (StartsWith(word, "-D")) {
      const bool apart = word.size() == 2;
      if (apart && ++i == words->size()) return Unclear("the build options end with -D");
      const std::string_view definition = apart ? std::string_view(words.value()[i]) : std::string_view(word).substr(2);
      if (Status status = DefineFromOption(definition); !status.ok()) return status;
    } else if (word == "-I") {
      ++i;
    } else if (!IsHarmless(word)) {
      return Unclear("build option '" + word.substr(0, 64) + "' is not known here");
    }
  }
  return {};
}

// As "#define name value" would.
Status ProgramText::DefineFromOption(std::string_view definition) {
  std::string line(definition);
  if (const size_t equals = line.find('='); equals != std::string::npos) {
    line[equals] = ' ';
  } else {
    line += " 1";
  }
  Result<TokenList> tokens = TokenList::Lex(line);
  if (!tokens.ok()) return tokens.status();
  if (tokens->tokens().empty() || !tokens->tokens()[0].IsIdentifier()) {
    return Unclear("a -D of the build options defines no name");
  }
  owned_.push_back(std::move(*tokens));
  Define(owned_.back().tokens());
  return {};
}

Status ProgramText::ReadText(const std::vector<Token>& tokens) {
  std::vector<Token> rest;
  for (size_t i = 0; i < tokens.size();) {
    size_t end = i + 1;
    if (tokens[i].starts_line && tokens[i].Is("#")) {
      while (end < tokens.size() && !tokens[end].starts_line) ++end;
      const std::span<const Token> line(tokens.data() + i + 1, end - i - 1);
      if (Status status = ReadDirective(line); !status.ok()) return status;
    } else {
      rest.push_back(tokens[i]);
    }
    i = end;
  }
  Divide(rest);
  for (const Part& part : parts_) {
    for (const Token& token : part.tokens) {
      if (token.IsIdentifier() && IsForeign(token.text)) {
        return Unclear("the text names '" + std::string(token.text.substr(0, 64)) + "'");
      }
      // A call of a macro may have arguments that span a directive; nothing more is known about those.
      if (token.Is("##")) pastes_ = true;
    }
  }
  return {};
}

Status ProgramText::ReadDirective(std::span<const Token> line) {
  if (line.empty()) return {};
  const std::string_view name = line[0].text;
  line = line.subspan(1);
  if (name == "define") {
    if (line.empty() || !line[0].IsIdentifier()) return Unclear("a #define without a name");
    Define(line);
  } else if (name == "if" || name == "elif" || name == "ifdef" || name == "ifndef" || name == "undef" ||
             name == "elifdef" || name == "elifndef") {
    for (const Token& token : line) {
      if (token.IsIdentifier()) preprocessor_names_.insert(token.text);
    }
  } else if (name != "else" && name != "endif" && name != "pragma" && name != "error" && name != "warning" &&
             name != "line") {
    return Unclear("the text has a directive #" + std::string(name.substr(0, 32)));  // #include, ...
  }
  return {};
}

void ProgramText::Define(std::span<const Token> line) {
  Part macro;
  macro.kind = Part::Kind::kMacro;
  macro.names.push_back(line[0].text);
  preprocessor_names_.insert(line[0].text);
  // Parameters, if these are any, count as part of the body: that harms nobody.
  macro.tokens.assign(line.begin() + 1, line.end());
  parts_.push_back(std::move(macro));
}

void ProgramText::Divide(const std::vector<Token>& tokens) {
  size_t begin = 0, header_end = 0;
  int braces = 0, others = 0;
  bool initializer = false;
  for (size_t i = 0; i < tokens.size(); ++i) {
    const Token& token = tokens[i];
    const std::span<const Token> header(tokens.data() + begin, (braces == 0 ? i : header_end) - begin);
    if (token.Is("(") || token.Is("[")) {
      ++others;
    } else if (token.Is(")") || token.Is("]")) {
      --others;
    } else if (token.Is("=") && braces == 0 && others == 0) {
      initializer = true;
    } else if (token.Is("{")) {
      if (braces++ == 0) header_end = i;
    } else if (token.Is("}") && --braces == 0) {
      // The body of a function, unless it is a struct's or an initializer: those go on to their semicolon.
      const bool is_function = !initializer && i > begin && tokens[header_end - (header_end > begin ? 1 : 0)].Is(")");
      const bool may_be_type = !is_function && i + 1 < tokens.size();
      if (!may_be_type) {
        AddChunk(header, {tokens.data() + header_end, i + 1 - header_end});
        begin = i + 1;
      }
    } else if (token.Is(";") && braces == 0 && others == 0) {
      AddChunk({tokens.data() + begin, i + 1 - begin}, {});
      begin = i + 1;
      initializer = false;
    }
    if (braces < 0 || others < 0) {
      is_clear_ = false;
      break;
    }
  }
  if (braces != 0 || others != 0) is_clear_ = false;
  if (is_clear_) {
    if (begin < tokens.size()) AddChunk({tokens.data() + begin, tokens.size() - begin}, {});
    return;
  }
  // One part with everything.
  std::erase_if(parts_, [](const Part& part) { return part.kind != Part::Kind::kMacro; });
  AddChunk({tokens.data(), 0}, tokens);
}

void ProgramText::AddChunk(std::span<const Token> header, std::span<const Token> body) {
  Part part;
  part.tokens.assign(header.begin(), header.end());
  part.tokens.insert(part.tokens.end(), body.begin(), body.end());
  std::vector<std::string_view> called, all;
  int depth = 0;
  bool plain = true;
  for (size_t i = 0; i < header.size(); ++i) {
    if (header[i].Is("(")) ++depth;
    if (header[i].Is(")")) --depth;
    if (header[i].Is("=") || header[i].Is("{") || header[i].Is("typedef")) plain = false;
    if (!header[i].IsIdentifier() || IsWord(header[i].text)) continue;
    all.push_back(header[i].text);
    if (depth == 0 && i + 1 < header.size() && header[i + 1].Is("(")) called.push_back(header[i].text);
  }
  // Of a function, or its declaration, every name that could be its own; of anything else simply all.
  const bool is_function = !body.empty() || (plain && !called.empty());
  part.kind = is_function ? Part::Kind::kFunction : Part::Kind::kDeclaration;
  part.names = is_function ? std::move(called) : std::move(all);
  parts_.push_back(std::move(part));
}

void ProgramText::IndexNames() {
  std::unordered_set<std::string_view> macros;
  for (uint32_t i = 0; i < parts_.size(); ++i) {
    for (const std::string_view name : parts_[i].names) {
      std::vector<uint32_t>& parts = by_name_[name];
      if (parts.empty() || parts.back() != i) parts.push_back(i);
      if (parts_[i].kind == Part::Kind::kMacro) macros.insert(name);
    }
  }
  // A function whose name is a macro is called otherwise.
  for (const Part& part : parts_) {
    if (part.kind != Part::Kind::kFunction) continue;
    for (const std::string_view name : part.names) {
      if (macros.count(name) != 0) is_clear_ = false;
    }
  }
}

}  // namespace hawser::server::slicing
