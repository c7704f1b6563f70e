// SPDX-License-Identifier: Apache-2.0
// Program: names resolved across modules, functions decoded, initial values written.
#include <algorithm>
#include <cstring>
#include <functional>
#include <set>
#include <unordered_map>

#include "softcuda/exec/allocation.h"
#include "softcuda/exec/decoder.h"
#include "softcuda/exec/device_runtime.h"
#include "softcuda/exec/program.h"
#include "softcuda/exec/shared_layout.h"

namespace hawser::exec {
namespace {

using ptx::Linkage;
using ptx::Module;
using ptx::Space;
using ptx::Variable;
using ModulePointer = std::shared_ptr<const Module>;

std::string Quoted(std::string_view name) { return "'" + std::string(name.substr(0, 120)) + "'"; }

}  // namespace

class Linker : public SymbolScope {
 public:
  Linker(std::span<const ModulePointer> modules, const LinkOptions& options)
      : modules_(modules.begin(), modules.end()),
        alone_(modules.size() == 1),
        options_(options),
        program_(new Program()) {
    for (auto& runtime : DeviceRuntimeFor(modules)) modules_.push_back(std::move(runtime));
  }

  wire::Result<std::shared_ptr<Program>> Run() {
    if (!CheckTargets() || !PlaceVariables() || !PlaceFunctions() || !PlaceAliases() || !AdoptVariables() ||
        !PlaceShared() || !Decode() || !DescribeKernels()) {
      return wire::Status(wire::Code::kInvalid, error_);
    }
    Image& image = *program_->image_;
    image.modules = modules_;
    for (const Code& code : image.codes) image.function_pointers[code.name] = image.PointerTo(code);
    return std::move(program_);
  }

  Found Find(const Module& module, std::string_view name) const override {
    const auto local = locals_.find(&module);
    if (local != locals_.end()) {
      const auto it = local->second.find(std::string(name));
      if (it != local->second.end()) return it->second;
    }
    const auto it = globals_.find(std::string(name));
    if (it != globals_.end()) return it->second.found;
    if (const SystemCall* const call = FindSystemCall(name)) {
      Found found;
      found.kind = Kind::kSystemCall;
      found.call = call;
      return found;
    }
    return {};
  }

 private:
  struct Global {
    Found found;
    Linkage linkage = Linkage::kExtern;
    uint64_t size = 0;
  };

  bool Fail(std::string text) {
    if (error_.empty()) error_ = std::move(text);
    return false;
  }

  bool CheckTargets() {
    if (modules_.empty()) return Fail("nothing to link");
    for (const ModulePointer& module : modules_) {
      // sm_90 runs on what is newer too, sm_100f within its family only, sm_90a on nothing else.
      const uint32_t device = options_.compute_capability;
      const char suffix = module->target_suffix;
      const bool fits = suffix == 0     ? module->target <= device
                        : suffix == 'f' ? module->target <= device && module->target / 10 == device / 10
                                        : module->target == device;
      if (!fits) {
        return Fail("the PTX is for sm_" + std::to_string(module->target) +
                    (suffix == 0 ? "" : std::string(1, suffix)) + ", this device is sm_" + std::to_string(device));
      }
    }
    return true;
  }

  /// True: this definition is the one to take. False and no error: another one stands already.
  bool Claim(std::string_view name, Linkage linkage, uint64_t size, bool* take) {
    const auto [it, fresh] = globals_.try_emplace(std::string(name));
    Global& known = it->second;
    *take = fresh || known.linkage == Linkage::kExtern;
    if (!*take) {
      const bool soft = linkage == Linkage::kWeak || linkage == Linkage::kCommon;
      const bool known_soft = known.linkage == Linkage::kWeak || known.linkage == Linkage::kCommon;
      if (!soft && !known_soft) return Fail("two modules define " + Quoted(name));
      // A strong definition would replace a weak one; the first of the weak ones stands. Strong ones are placed first.
      return true;
    }
    known.linkage = linkage;
    known.size = size;
    return true;
  }

  Found PlaceVariable(const ModulePointer& module, const Variable& variable) {
    Found found;
    found.space = variable.space;
    Image& image = *program_->image_;
    if (variable.space == Space::kShared) {
      found.kind = Kind::kShared;
      if (variable.unsized) {
        found.dynamic = true;
        image.dynamic_alignment = std::max(image.dynamic_alignment, std::min(variable.alignment, 1024u));
        return found;
      }
      found.index = shared_.Add(variable);
      return found;
    }
    found.kind = Kind::kVariable;
    found.index = static_cast<uint32_t>(program_->symbols_.size());
    Symbol symbol;
    symbol.name = variable.name;
    symbol.space = variable.space == Space::kConst ? SymbolSpace::kConst : SymbolSpace::kGlobal;
    symbol.size = std::max<uint64_t>(variable.size, 1);
    symbol.alignment = variable.alignment;
    symbol.managed = variable.managed;
    symbol.visible = variable.linkage != Linkage::kInternal;
    program_->symbols_.push_back(symbol);
    image.initials.push_back({found.index, &variable, module});
    return found;
  }

  bool PlaceVariables() {
    for (const bool strong : {true, false}) {
      for (const ModulePointer& module : modules_) {
        for (const Variable& variable : module->variables) {
          const bool soft = variable.linkage == Linkage::kWeak || variable.linkage == Linkage::kCommon;
          if (variable.linkage == Linkage::kExtern && !variable.unsized) continue;
          if (strong == soft) continue;
          if (variable.unsized && variable.space != Space::kShared && variable.linkage == Linkage::kExtern) continue;
          if (variable.linkage == Linkage::kInternal || (variable.space == Space::kShared && variable.unsized)) {
            locals_[module.get()][variable.name] = PlaceVariable(module, variable);
            continue;
          }
          bool take = false;
          if (!Claim(variable.name, variable.linkage, variable.size, &take)) return false;
          if (take) globals_[variable.name].found = PlaceVariable(module, variable);
        }
      }
    }
    return error_.empty();
  }

  bool PlaceFunctions() {
    Image& image = *program_->image_;
    for (const bool strong : {true, false}) {
      for (const ModulePointer& module : modules_) {
        for (const ptx::Function& function : module->functions) {
          if (!function.defined) continue;
          const bool soft = function.linkage == Linkage::kWeak;
          if (strong == soft) continue;
          Found found;
          found.kind = Kind::kFunction;
          found.index = static_cast<uint32_t>(image.codes.size());
          if (function.linkage == Linkage::kInternal) {
            locals_[module.get()][function.name] = found;
          } else {
            bool take = false;
            if (!Claim(function.name, function.linkage, 0, &take)) return false;
            if (!take) continue;
            globals_[function.name].found = found;
          }
          Code& code = image.codes.emplace_back();
          code.name = function.name;
          code.function = &function;
          code.module = module;
          code.index = found.index;
          code.entry = function.entry;
        }
      }
    }
    return true;
  }

  bool PlaceAliases() {
    for (const ModulePointer& module : modules_) {
      for (const ptx::Alias& alias : module->aliases) {
        const Found target = Find(*module, alias.target);
        if (target.kind != Kind::kFunction || program_->image_->codes[target.index].entry) {
          return Fail("line " + std::to_string(alias.line) + ": " + Quoted(alias.name) + " is an alias of " +
                      Quoted(alias.target) + ", which is no function that can be called");
        }
        Linkage linkage = Linkage::kInternal;
        for (const ptx::Function& function : module->functions) {
          if (function.name != alias.name) continue;
          if (function.defined) return Fail(Quoted(alias.name) + " is a function and an alias");
          linkage = function.linkage == Linkage::kExtern ? Linkage::kVisible : function.linkage;
        }
        if (linkage == Linkage::kInternal) {
          locals_[module.get()][alias.name] = target;
          continue;
        }
        bool take = false;
        if (!Claim(alias.name, linkage, 0, &take)) return false;
        if (take) globals_[alias.name].found = target;
      }
    }
    return true;
  }

  /// A program of one module has nobody else to define what it declares with .extern and a size: it does so itself, as
  /// far as it names it (ptxas 13.0: "ignoring extern qualifier").
  bool AdoptVariables() {
    if (!alone_) return true;
    const ModulePointer& module = modules_.front();
    std::set<std::string_view> named;
    for (const ptx::Function& function : module->functions) {
      for (const ptx::Operand& operand : function.operands) {
        if (operand.kind == ptx::OperandKind::kSymbol && operand.index < module->names.size()) {
          named.insert(module->names[operand.index]);
        }
      }
    }
    for (const Variable& variable : module->variables) {
      for (const ptx::InitialAddress& address : variable.addresses) named.insert(module->names[address.name]);
    }
    for (const Variable& variable : module->variables) {
      if (variable.linkage != Linkage::kExtern || variable.unsized || !named.contains(variable.name)) continue;
      bool take = false;
      if (!Claim(variable.name, Linkage::kVisible, variable.size, &take)) return false;
      if (take) globals_[variable.name].found = PlaceVariable(module, variable);
    }
    return error_.empty();
  }

  bool PlaceShared() {
    const std::string error = shared_.Place(&program_->image_->codes, *this);
    if (!error.empty()) return Fail(error);
    const auto place = [this](Found* found) {
      if (found->kind == Kind::kShared && !found->dynamic) found->offset = shared_.OffsetOf(found->index);
    };
    for (auto& [module, names] : locals_) {
      for (auto& [name, found] : names) place(&found);
    }
    for (auto& [name, global] : globals_) place(&global.found);
    return true;
  }

  bool Decode() {
    Image& image = *program_->image_;
    std::vector<std::unique_ptr<FunctionDecoder>> decoders;
    for (Code& code : image.codes) {
      decoders.push_back(std::make_unique<FunctionDecoder>(&image, &code, this, &program_->unsupported_));
      const std::string error = decoders.back()->Prepare();
      if (!error.empty()) return Fail(error);
    }
    for (auto& decoder : decoders) {
      const std::string error = decoder->Decode();
      if (!error.empty()) return Fail(error);
    }
    // Names that nobody defines are errors of the link, as with a device linker, when an instruction uses them.
    for (const std::string& text : program_->unsupported_) {
      const size_t at = text.find("unknown name '");
      const size_t call = text.find("unknown function '");
      if (at != std::string::npos || call != std::string::npos) return Fail("unresolved: " + text);
    }
    return true;
  }

  /// Local bytes of the deepest chain of calls; sets `recursive` when a chain comes back to itself.
  uint32_t Depth(const Code& code, std::set<const Code*>* path, bool* recursive, bool* indirect,
                 std::unordered_map<const Code*, uint32_t>* known) {
    const auto it = known->find(&code);
    if (it != known->end()) return it->second;
    if (path->size() > 256 || !path->insert(&code).second) {
      *recursive = true;
      return 0;
    }
    uint32_t deepest = 0;
    if (code.calls_indirect || code.uses_stack) *indirect = true;
    for (const Code* callee : code.callees) {
      deepest = std::max(deepest, std::max(32u, Depth(*callee, path, recursive, indirect, known) + 16));
    }
    path->erase(&code);
    const uint32_t total = std::min<uint32_t>(code.local_bytes + deepest, 1u << 26);
    (*known)[&code] = total;
    return total;
  }

  /// What the kernel is said to use. The interpreter has as many as a kernel wants; a compiler would keep to these
  /// limits and put the rest into local memory. So a block of as many threads as the kernel allows always fits.
  uint32_t Registers(const ptx::Function& function, uint32_t max_threads) const {
    constexpr uint32_t kLeast = 16, kMost = 255, kUnit = 8;
    // A multiprocessor's four schedulers share the registers, and the warps of a block.
    constexpr uint32_t kWarp = 32, kSchedulers = 4;
    const uint32_t warps = (std::max(max_threads, 1u) + kWarp * kSchedulers - 1) / (kWarp * kSchedulers);
    uint32_t limit = std::min(kMost, options_.registers_per_block / kSchedulers / warps / kWarp / kUnit * kUnit);
    for (const uint32_t wish : {function.max_registers, options_.max_registers}) {
      if (wish != 0) limit = std::min(limit, wish);
    }
    return std::clamp(LayOutRegisters(function).live_words + 4, kLeast, std::max(kLeast, limit));
  }

  bool DescribeKernels() {
    Image& image = *program_->image_;
    uint32_t const_bytes = 0;
    for (const Symbol& symbol : program_->symbols_) {
      if (symbol.space == SymbolSpace::kConst) {
        const_bytes += static_cast<uint32_t>(std::min<uint64_t>(symbol.size, 1u << 24));
      }
    }
    for (Code& code : image.codes) {
      if (!code.entry) continue;
      const ptx::Function& function = *code.function;
      KernelInfo info;
      info.name = function.name;
      for (uint32_t i = 0; i < function.parameters.size(); ++i) {
        const Variable& variable = function.variables[i];
        KernelParameter parameter;
        parameter.size = static_cast<uint32_t>(variable.size);
        parameter.alignment = variable.alignment;
        parameter.offset = (info.parameter_bytes + variable.alignment - 1) / variable.alignment * variable.alignment;
        info.parameter_bytes = parameter.offset + parameter.size;
        if (info.parameter_bytes > (1u << 20)) return Fail("the parameters of " + Quoted(info.name) + " are too large");
        info.parameters.push_back(parameter);
      }
      info.max_threads = options_.max_threads_per_block;
      info.required_threads = function.required_threads;
      info.max_block = function.max_threads;
      for (const auto& shape : {function.required_threads, function.max_threads}) {
        const uint64_t product = uint64_t{shape[0]} * shape[1] * shape[2];
        if (product != 0) info.max_threads = static_cast<uint32_t>(std::min<uint64_t>(info.max_threads, product));
      }
      info.required_cluster = function.required_cluster;
      info.explicit_cluster = function.explicit_cluster;
      info.blocks_are_clusters = function.blocks_are_clusters;
      info.max_cluster = function.max_cluster;
      info.min_blocks = function.min_blocks;
      info.static_shared_bytes = code.static_shared;
      bool indirect = false;
      std::set<const Code*> path;
      std::unordered_map<const Code*, uint32_t> known;
      info.local_bytes = Depth(code, &path, &info.recursive, &indirect, &known);
      info.recursive = info.recursive || indirect;
      info.const_bytes = const_bytes;
      info.registers = Registers(function, info.max_threads);
      info.ptx_version = code.module->target;
      image.kernel_codes.push_back(static_cast<int>(code.index));
      program_->kernels_.push_back(std::move(info));
    }
    return true;
  }

  std::vector<ModulePointer> modules_;
  const bool alone_;
  const LinkOptions options_;
  std::shared_ptr<Program> program_;
  std::unordered_map<const Module*, std::unordered_map<std::string, Found>> locals_;
  std::unordered_map<std::string, Global> globals_;
  SharedLayout shared_;
  std::string error_;

  friend class Program;
};

Program::Program() : image_(std::make_unique<Image>()) {}
Program::~Program() = default;

wire::Result<std::shared_ptr<Program>> Program::Link(std::span<const std::shared_ptr<const ptx::Module>> modules,
                                                     const LinkOptions& options) {
  Linker linker(modules, options);
  auto result = linker.Run();
  if (!result.ok()) return result;
  // Initial values may name functions and symbols: resolve the names now, so that Bind needs no scope.
  Program& program = **result;
  for (const Image::PendingInitial& initial : program.image_->initials) {
    for (const ptx::InitialAddress& address : initial.variable->addresses) {
      const SymbolScope::Found found = linker.Find(*initial.module, initial.module->names[address.name]);
      ResolvedInitial resolved;
      resolved.symbol = initial.symbol;
      resolved.address = &address;
      if (found.kind == SymbolScope::Kind::kVariable) {
        resolved.target = static_cast<int>(found.index);
      } else if (found.kind == SymbolScope::Kind::kFunction) {
        resolved.value = program.image_->PointerTo(program.image_->codes[found.index]);
      } else if (found.kind == SymbolScope::Kind::kShared) {
        resolved.value = found.offset;
      } else {
        return wire::Status(wire::Code::kInvalid, "the initial value of " + Quoted(initial.variable->name) + " names " +
                                                      Quoted(initial.module->names[address.name]) +
                                                      ", which nothing defines");
      }
      program.initial_addresses_.push_back(resolved);
    }
  }
  return result;
}

int Program::FindKernel(std::string_view name) const {
  for (size_t i = 0; i < kernels_.size(); ++i) {
    if (kernels_[i].name == name) return static_cast<int>(i);
  }
  return -1;
}

int Program::FindSymbol(std::string_view name) const {
  for (size_t i = 0; i < symbols_.size(); ++i) {
    if (symbols_[i].name == name) return static_cast<int>(i);
  }
  return -1;
}

wire::Status Program::Bind(std::span<const uint64_t> addresses) {
  if (bound_) return {wire::Code::kInvalid, "this program is bound already"};
  if (addresses.size() != symbols_.size()) return {wire::Code::kInvalid, "one address for each symbol is needed"};
  for (size_t i = 0; i < addresses.size(); ++i) {
    if (addresses[i] == 0 || addresses[i] % symbols_[i].alignment != 0) {
      return {wire::Code::kInvalid, "the address of " + Quoted(symbols_[i].name) + " is not aligned as the symbol"};
    }
  }
  for (const Image::PendingInitial& initial : image_->initials) {
    auto* place = reinterpret_cast<uint8_t*>(addresses[initial.symbol]);
    const uint64_t given = std::min<uint64_t>(initial.variable->initial.size(), symbols_[initial.symbol].size);
    if (given > 0) std::memcpy(place, initial.variable->initial.data(), given);
    std::memset(place + given, 0, symbols_[initial.symbol].size - given);
  }
  for (const ResolvedInitial& resolved : initial_addresses_) {
    const ptx::InitialAddress& address = *resolved.address;
    uint64_t value = resolved.target >= 0 ? addresses[static_cast<size_t>(resolved.target)] : resolved.value;
    value = (value + static_cast<uint64_t>(address.addend)) >> address.shift;
    if (address.offset + address.width > symbols_[resolved.symbol].size) continue;
    std::memcpy(reinterpret_cast<uint8_t*>(addresses[resolved.symbol]) + address.offset, &value, address.width);
  }
  image_->Resolve({addresses.begin(), addresses.end()});
  bound_ = true;
  return {};
}

}  // namespace hawser::exec
