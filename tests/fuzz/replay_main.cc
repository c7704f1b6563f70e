// SPDX-License-Identifier: Apache-2.0
// main() for fuzz targets where the compiler has no libFuzzer: replays corpus files, then a fixed
// number of seeded mutations of them. The same arguments always do the same work, so a failure can
// be repeated; the input being tried when the program dies is written to <program>.crash.
//
//   target [--mutations N] [--seed N] [file or directory]...
#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

using Input = std::vector<uint8_t>;

constexpr size_t kMaxInput = 64u << 10;

// What a signal handler can reach: the input at hand and where to put it.
const Input* g_current = nullptr;
std::string g_crash_path;

void SaveAndDie(int signal) {
  if (g_current != nullptr) {
    if (std::FILE* file = std::fopen(g_crash_path.c_str(), "wb")) {
      std::fwrite(g_current->data(), 1, g_current->size(), file);
      std::fclose(file);
      std::fprintf(stderr, "the input that failed is in %s\n", g_crash_path.c_str());
    }
  }
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

void Try(const Input& input) {
  // An exact copy on the heap, so that the sanitizers see a read one past the end.
  const Input exact(input.begin(), input.end());
  g_current = &exact;
  LLVMFuzzerTestOneInput(exact.data(), exact.size());
  g_current = nullptr;
}

Input ReadFile(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    std::fprintf(stderr, "cannot read '%s'\n", path.c_str());
    std::exit(2);
  }
  return Input(std::istreambuf_iterator<char>(file), {});
}

void Load(const std::filesystem::path& path, std::vector<Input>* corpus) {
  if (!std::filesystem::is_directory(path)) {
    corpus->push_back(ReadFile(path));
    return;
  }
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(path)) {
    if (entry.is_regular_file()) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());  // The order of a directory differs between machines.
  for (const auto& file : files) corpus->push_back(ReadFile(file));
}

class Mutator {
 public:
  Mutator(const std::vector<Input>& corpus, uint64_t seed) : corpus_(corpus), random_(seed) {}

  Input Next() {
    Input input = corpus_[Below(corpus_.size())];
    for (size_t steps = 1 + Below(6); steps > 0; --steps) Step(&input);
    if (input.size() > kMaxInput) input.resize(kMaxInput);
    return input;
  }

 private:
  size_t Below(size_t limit) { return limit == 0 ? 0 : static_cast<size_t>(random_() % limit); }

  /// Numbers that decoders get wrong: limits, their neighbours, counts that wrap.
  uint64_t Interesting() {
    static constexpr uint64_t kValues[] = {0,
                                           1,
                                           2,
                                           7,
                                           8,
                                           127,
                                           128,
                                           255,
                                           256,
                                           4095,
                                           4096,
                                           0x7fff,
                                           0x8000,
                                           0xffff,
                                           0x10000,
                                           0x3ffffff,
                                           0x4000000,
                                           0x4000001,
                                           0x7fffffff,
                                           0x80000000,
                                           0xfffffffc,
                                           0xffffffff,
                                           0x100000000,
                                           0x7fffffffffffffff,
                                           0x8000000000000000,
                                           0xffffffffffffffff};
    return kValues[Below(std::size(kValues))];
  }

  void Step(Input* input) {
    const size_t at = Below(input->size() + 1);
    const auto here = input->begin() + static_cast<ptrdiff_t>(at);
    switch (Below(8)) {
      case 0:  // Flip a bit.
        if (!input->empty()) (*input)[Below(input->size())] ^= static_cast<uint8_t>(1u << Below(8));
        break;
      case 1:  // Overwrite a byte.
        if (!input->empty()) (*input)[Below(input->size())] = static_cast<uint8_t>(random_());
        break;
      case 2: {  // Overwrite a number.
        const uint64_t value = Interesting();
        const size_t width = size_t{1} << Below(4);
        if (at + width <= input->size()) std::memcpy(input->data() + at, &value, width);
        break;
      }
      case 3: {  // Insert a number.
        uint8_t raw[8];
        const uint64_t value = Interesting();
        std::memcpy(raw, &value, sizeof(raw));
        input->insert(here, raw, raw + (size_t{1} << Below(4)));
        break;
      }
      case 4:  // Insert a printable byte.
        input->insert(here, static_cast<uint8_t>(' ' + Below(95)));
        break;
      case 5:  // Cut something out.
        input->erase(here, here + static_cast<ptrdiff_t>(Below(input->size() - at + 1)));
        break;
      case 6: {  // Repeat a part.
        const size_t size = std::min(Below(input->size() - at + 1), size_t{256});
        const Input part(here, here + static_cast<ptrdiff_t>(size));
        const auto target = input->begin() + static_cast<ptrdiff_t>(Below(input->size() + 1));
        input->insert(target, part.begin(), part.end());
        break;
      }
      default: {  // Go on with the tail of another input.
        const Input& other = corpus_[Below(corpus_.size())];
        const size_t from = Below(other.size() + 1);
        input->resize(at);
        input->insert(input->end(), other.begin() + static_cast<ptrdiff_t>(from), other.end());
        break;
      }
    }
  }

  const std::vector<Input>& corpus_;
  std::mt19937_64 random_;
};

uint64_t Number(const char* text) {
  char* end = nullptr;
  const uint64_t value = std::strtoull(text, &end, 10);
  if (end == text || *end != '\0') {
    std::fprintf(stderr, "'%s' is not a number\n", text);
    std::exit(2);
  }
  return value;
}

}  // namespace

int main(int argc, char** argv) {
  uint64_t mutations = 0;
  uint64_t seed = 1;
  std::vector<Input> corpus(1);  // The empty input always.
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if ((argument == "--mutations" || argument == "--seed") && i + 1 < argc) {
      (argument == "--seed" ? seed : mutations) = Number(argv[++i]);
    } else if (!argument.empty() && argument[0] == '-') {
      std::fprintf(stderr, "usage: %s [--mutations N] [--seed N] [file or directory]...\n", argv[0]);
      return 2;
    } else {
      Load(argument, &corpus);
    }
  }
  g_crash_path = std::filesystem::path(argv[0]).filename().string() + ".crash";
  for (const int signal : {SIGSEGV, SIGBUS, SIGABRT, SIGILL, SIGFPE}) std::signal(signal, SaveAndDie);
  for (const Input& input : corpus) Try(input);
  Mutator mutator(corpus, seed);
  for (uint64_t i = 0; i < mutations; ++i) Try(mutator.Next());
  std::printf("%zu inputs and %llu mutations, no failure\n", corpus.size(), static_cast<unsigned long long>(mutations));
  return 0;
}
