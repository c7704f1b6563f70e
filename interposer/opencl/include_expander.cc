// SPDX-License-Identifier: Apache-2.0
#include "interposer/opencl/include_expander.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

namespace hawser::ocl {
namespace {

constexpr char kSourceName[] = "program.cl";

std::string_view SkipBlanks(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t");
  return begin == std::string_view::npos ? std::string_view() : text.substr(begin);
}

/// What follows "# word" on this line; nothing if it is another line.
std::optional<std::string_view> AfterDirective(std::string_view line, std::string_view word) {
  line = SkipBlanks(line);
  if (line.empty() || line.front() != '#') return std::nullopt;
  line = SkipBlanks(line.substr(1));
  if (line.substr(0, word.size()) != word) return std::nullopt;
  return SkipBlanks(line.substr(word.size()));
}

bool IsPragmaOnce(std::string_view line) {
  const std::optional<std::string_view> rest = AfterDirective(line, "pragma");
  return rest && rest->substr(0, 4) == "once";
}

/// Whether a block comment is open after this line.
bool CommentOpenAfter(std::string_view line, bool open) {
  for (size_t i = 0; i < line.size(); ++i) {
    const std::string_view two = line.substr(i, 2);
    if (open) {
      if (two == "*/") {
        open = false;
        ++i;
      }
    } else if (two == "//") {
      return false;
    } else if (two == "/*") {
      open = true;
      ++i;
    } else if (line[i] == '"' || line[i] == '\'') {
      const char quote = line[i];
      for (++i; i < line.size() && line[i] != quote; ++i) {
        if (line[i] == '\\') ++i;
      }
    }
  }
  return open;
}

std::string DirectoryOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

void AddLine(size_t number, std::string_view name, std::string* out) {
  out->append("#line ").append(std::to_string(number)).append(" \"");
  for (const char c : name) {
    if (c == '"' || c == '\\') *out += '\\';
    *out += c;
  }
  *out += "\"\n";
}

}  // namespace

std::vector<std::string> IncludeDirectories(std::string_view options) {
  std::vector<std::string> words(1);
  char quote = 0;
  bool any = false;
  for (size_t i = 0; i < options.size(); ++i) {
    const char c = options[i];
    if (c == '\\' && i + 1 < options.size() && (options[i + 1] == ' ' || options[i + 1] == '"')) {
      words.back() += options[++i];
    } else if (quote != 0) {
      if (c == quote) {
        quote = 0;
      } else {
        words.back() += c;
      }
    } else if (c == '"' || c == '\'') {
      quote = c;
      any = true;
    } else if (c == ' ' || c == '\t' || c == '\n') {
      if (!words.back().empty() || any) words.emplace_back();
      any = false;
    } else {
      words.back() += c;
    }
  }
  std::vector<std::string> directories;
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word == "-I") {
      if (i + 1 < words.size()) directories.push_back(words[++i]);
    } else if (word.rfind("-I", 0) == 0) {
      // A quoted option may hold its blank: "-I /some path".
      directories.emplace_back(SkipBlanks(std::string_view(word).substr(2)));
    }
  }
  std::erase_if(directories, [](const std::string& directory) { return directory.empty(); });
  return directories;
}

std::optional<std::string> ReadIncludeFile(const std::string& path) {
  constexpr off_t kLargestFile = 16 << 20;
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return std::nullopt;
  std::optional<std::string> text;
  struct stat status;
  if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_size <= kLargestFile) {
    text.emplace(static_cast<size_t>(status.st_size), '\0');
    size_t done = 0;
    while (done < text->size()) {
      const ssize_t got = read(fd, text->data() + done, text->size() - done);
      if (got <= 0) break;
      done += static_cast<size_t>(got);
    }
    text->resize(done);
  }
  close(fd);
  return text;
}

std::optional<std::string> IncludeExpander::Expand(std::string_view source) {
  open_.clear();
  once_.clear();
  replaced_ = too_large_ = false;
  if (source.find("include") == std::string_view::npos) return std::nullopt;
  std::string out;
  ExpandInto(source, kSourceName, ".", &out);
  if (!replaced_ || too_large_) return std::nullopt;
  return out;
}

void IncludeExpander::ExpandInto(std::string_view text, const std::string& name, const std::string& directory,
                                 std::string* out) {
  bool in_comment = false;
  size_t number = 0;
  while (!text.empty() && !too_large_) {
    const size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    ++number;
    const bool was_comment = in_comment;
    in_comment = CommentOpenAfter(line, in_comment);
    if (!was_comment && !open_.empty() && IsPragmaOnce(line)) {
      *out += '\n';  // Taken care of here; in the one text that the compiler sees it would mean something else.
      continue;
    }
    if (!was_comment && ExpandDirective(line, directory, out)) {
      AddLine(number + 1, name, out);
      continue;
    }
    *out += line;
    *out += '\n';
    too_large_ = out->size() > kLargest;
  }
}

bool IncludeExpander::ExpandDirective(std::string_view line, const std::string& directory, std::string* out) {
  const std::optional<std::string_view> rest = AfterDirective(line, "include");
  if (!rest || rest->empty() || (rest->front() != '"' && rest->front() != '<')) return false;
  const bool quoted = rest->front() == '"';
  const size_t end = rest->find(quoted ? '"' : '>', 1);
  if (end == std::string_view::npos) return false;
  const std::string name(rest->substr(1, end - 1));
  if (std::find(kept_.begin(), kept_.end(), name) != kept_.end()) return false;
  auto file = FindFile(name, quoted, directory);
  if (!file) return false;
  replaced_ = true;
  const std::string& path = file->first;
  const auto has = [&](const std::vector<std::string>& list) {
    return std::find(list.begin(), list.end(), path) != list.end();
  };
  // Files that include each other have guards, so that the inner one comes to nothing.
  if (has(once_) || has(open_) || open_.size() == kDeepest) return true;
  if (file->second.find("#pragma once") != std::string::npos) once_.push_back(path);
  open_.push_back(path);
  AddLine(1, path, out);
  ExpandInto(file->second, path, DirectoryOf(path), out);
  open_.pop_back();
  return true;
}

std::optional<std::pair<std::string, std::string>> IncludeExpander::FindFile(const std::string& name, bool quoted,
                                                                             const std::string& directory) const {
  std::vector<std::string> candidates;
  if (!name.empty() && name.front() == '/') {
    candidates.push_back(name);
  } else {
    if (quoted) candidates.push_back(directory == "." ? name : directory + "/" + name);
    for (const std::string& each : directories_) candidates.push_back(each + "/" + name);
  }
  for (const std::string& candidate : candidates) {
    if (std::optional<std::string> text = read_(candidate)) return std::pair(candidate, std::move(*text));
  }
  return std::nullopt;
}

}  // namespace hawser::ocl
