// SPDX-License-Identifier: Apache-2.0
// A whole device for tests: PTX text in, kernels run, memory tracked.
#ifndef HAWSER_TESTS_UNIT_SOFTCUDA_EXEC_DEVICE_H_
#define HAWSER_TESTS_UNIT_SOFTCUDA_EXEC_DEVICE_H_

#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include "softcuda/exec/launch.h"
#include "softcuda/exec/program.h"
#include "softcuda/ptx/module.h"

namespace hawser::exec {

/// Collects what kernels print.
class StringSink : public PrintSink {
 public:
  void Write(std::string_view text) override {
    const std::lock_guard lock(mutex_);
    text_ += text;
  }
  std::string text() const {
    const std::lock_guard lock(mutex_);
    return text_;
  }

 private:
  mutable std::mutex mutex_;
  std::string text_;
};

/// Parameters of a launch, laid out as PTX lays them out.
class Arguments {
 public:
  template <typename T>
  Arguments& Add(const T& value) {
    const size_t begin = (bytes_.size() + alignof(T) - 1) / alignof(T) * alignof(T);
    bytes_.resize(begin + sizeof(T));
    std::memcpy(bytes_.data() + begin, &value, sizeof(T));
    return *this;
  }
  const std::vector<uint8_t>& bytes() const { return bytes_; }

 private:
  std::vector<uint8_t> bytes_;
};

class Device {
 public:
  explicit Device(unsigned threads = 1) : engine_(threads) {}
  ~Device() {
    for (const auto& [place, size] : blocks_)
      ::operator delete[](reinterpret_cast<void*>(place), std::align_val_t{256});
  }
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  uint64_t Allocate(uint64_t size) {
    const uint64_t rounded = (size + 15) / 16 * 16;
    auto* place = static_cast<char*>(::operator new[](rounded, std::align_val_t{256}));
    std::memset(place, 0, rounded);
    const auto address = reinterpret_cast<uint64_t>(place);
    memory_.Insert({address, address + size, true});
    blocks_.emplace_back(address, size);
    return address;
  }

  template <typename T>
  uint64_t Upload(const std::vector<T>& values) {
    const uint64_t address = Allocate(values.size() * sizeof(T));
    std::memcpy(reinterpret_cast<void*>(address), values.data(), values.size() * sizeof(T));
    return address;
  }

  template <typename T>
  std::vector<T> Download(uint64_t address, size_t count) const {
    std::vector<T> values(count);
    std::memcpy(values.data(), reinterpret_cast<const void*>(address), count * sizeof(T));
    return values;
  }

  /// Parses, links and binds. The error's text, empty when all is well.
  std::string Load(const std::vector<std::string>& texts, const LinkOptions& options = {}) {
    std::vector<std::shared_ptr<const ptx::Module>> modules;
    for (const std::string& text : texts) {
      auto module = ptx::Parse(text);
      if (!module.ok()) return module.status().text();
      modules.push_back(*module);
    }
    auto program = Program::Link(modules, options);
    if (!program.ok()) return program.status().text();
    program_ = *program;
    symbols_.clear();
    for (const Symbol& symbol : program_->symbols()) symbols_.push_back(Allocate(symbol.size));
    const wire::Status status = program_->Bind(symbols_);
    return status.text();
  }

  Outcome Run(const std::string& kernel, std::array<uint32_t, 3> grid, std::array<uint32_t, 3> block,
              const Arguments& arguments, uint32_t dynamic_shared = 0) {
    config.kernel = program_->FindKernel(kernel);
    config.grid = grid;
    config.block = block;
    config.dynamic_shared_bytes = dynamic_shared;
    config.parameters = arguments.bytes();
    config.memory = &memory_;
    if (config.print == nullptr) config.print = &sink;
    return engine_.Run(*program_, config);
  }

  Program& program() { return *program_; }
  AllocationMap& memory() { return memory_; }
  Engine& engine() { return engine_; }
  uint64_t symbol(const std::string& name) const {
    return symbols_.at(static_cast<size_t>(program_->FindSymbol(name)));
  }

  LaunchConfig config;  ///< Run fills in what its parameters say.
  StringSink sink;

 private:
  Engine engine_;
  AllocationMap memory_;
  std::vector<std::pair<uint64_t, uint64_t>> blocks_;
  std::shared_ptr<Program> program_;
  std::vector<uint64_t> symbols_;
};

}  // namespace hawser::exec

#endif  // HAWSER_TESTS_UNIT_SOFTCUDA_EXEC_DEVICE_H_
