// SPDX-License-Identifier: Apache-2.0
// A linked program: one or several PTX modules with their external names resolved, decoded for execution.
//
// Life: Link -> the driver places every symbol() in device memory -> Bind -> Run (launch.h) any number of times.
// Threads: immutable after Bind; kernels of a bound program may run concurrently.
#ifndef HAWSER_SOFTCUDA_EXEC_PROGRAM_H_
#define HAWSER_SOFTCUDA_EXEC_PROGRAM_H_

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "softcuda/ptx/module.h"
#include "wire/status.h"

namespace hawser::exec {

struct KernelParameter {
  uint32_t offset = 0;  ///< Bytes in the parameter buffer.
  uint32_t size = 0;
  uint32_t alignment = 1;
};

/// What a driver tells about a kernel (cuFuncGetAttribute, cuFuncGetParamInfo).
struct KernelInfo {
  std::string name;
  std::vector<KernelParameter> parameters;
  uint32_t parameter_bytes = 0;                ///< Of the whole buffer.
  uint32_t max_threads = 1024;                 ///< Per block, from .maxntid/.reqntid or the device's limit.
  std::array<uint32_t, 3> required_threads{};  ///< .reqntid; zeros when free. A launch of another shape is refused.
  std::array<uint32_t, 3> max_block{};         ///< .maxntid; zeros when free.
  std::array<uint32_t, 3> required_cluster{};  ///< .reqnctapercluster; zeros when free.
  bool explicit_cluster = false;               ///< .explicitcluster: every launch must have a size of clusters.
  bool blocks_are_clusters = false;            ///< .blocksareclusters: launches count clusters.
  uint32_t max_cluster = 0;                    ///< .maxclusterrank; 0 when free.
  uint32_t min_blocks = 0;                     ///< .minnctapersm
  uint32_t static_shared_bytes = 0;
  uint32_t local_bytes = 0;  ///< Per thread; the deepest call chain that is known without recursion.
  uint32_t const_bytes = 0;  ///< .const bytes of the program.
  uint32_t registers = 0;    ///< Estimate: 32-bit registers per thread, at most 255.
  uint32_t ptx_version = 0;  ///< 10 * target: 7.5 -> 75.
  bool recursive = false;
};

enum class SymbolSpace : uint8_t { kGlobal, kConst };

/// A .global or .const variable. The driver allocates `size` bytes for it and passes the address to Bind.
struct Symbol {
  std::string name;
  SymbolSpace space = SymbolSpace::kGlobal;
  uint64_t size = 0;  ///< At least 1.
  uint32_t alignment = 1;
  bool managed = false;  ///< Must live in managed memory.
  bool visible = false;  ///< .visible, .weak or .common: other programs could link to it. Lookups find all names.
};

struct LinkOptions {
  uint32_t compute_capability = 90;  ///< Modules for a newer target are refused.
  uint32_t max_threads_per_block = 1024;
  uint32_t registers_per_block = 65536;
  uint32_t max_registers = 0;  ///< For each thread, as a compiler is asked for; 0: no wish.
};

class Image;  // The decoded form; private to softcuda/exec.

/// An address in an initial value, as Bind needs it.
struct ResolvedInitial {
  uint32_t symbol = 0;  ///< Whose initial value.
  const ptx::InitialAddress* address = nullptr;
  int target = -1;     ///< Symbol whose address it is, or
  uint64_t value = 0;  ///< the value.
};

class Program {
 public:
  /// Links modules (one, or the relocatable units of a program). Unresolved names that are not system calls, double
  /// definitions and instructions with operands that make no sense are errors that name the culprit. An opcode that
  /// this device does not know does not fail the link: it faults when executed (Fault::Kind::kIllegalInstruction),
  /// naming it; unsupported() lists them.
  static wire::Result<std::shared_ptr<Program>> Link(std::span<const std::shared_ptr<const ptx::Module>> modules,
                                                     const LinkOptions& options = {});
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  const std::vector<KernelInfo>& kernels() const { return kernels_; }
  const std::vector<Symbol>& symbols() const { return symbols_; }
  /// Index in kernels() or symbols(), -1 when there is none of this name.
  int FindKernel(std::string_view name) const;
  int FindSymbol(std::string_view name) const;
  /// "name (line 12)" of every instruction that cannot be executed.
  const std::vector<std::string>& unsupported() const { return unsupported_; }

  /// Tells where the driver placed each symbol (as many addresses as symbols(), host addresses, writable, aligned),
  /// writes the initial values there, addresses included, and completes the code. Once; before any Run.
  wire::Status Bind(std::span<const uint64_t> addresses);
  bool bound() const { return bound_; }

  const Image& image() const { return *image_; }

 private:
  Program();

  std::vector<KernelInfo> kernels_;
  std::vector<Symbol> symbols_;
  std::vector<std::string> unsupported_;
  std::unique_ptr<Image> image_;
  std::vector<ResolvedInitial> initial_addresses_;
  bool bound_ = false;

  friend class Linker;
};

}  // namespace hawser::exec

#endif  // HAWSER_SOFTCUDA_EXEC_PROGRAM_H_
