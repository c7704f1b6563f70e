// SPDX-License-Identifier: Apache-2.0
// How a launch ended, and where a kernel went wrong.
#ifndef HAWSER_SOFTCUDA_EXEC_FAULT_H_
#define HAWSER_SOFTCUDA_EXEC_FAULT_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "softcuda/exec/address_space.h"

namespace hawser::exec {

struct Fault {
  enum class Kind : uint8_t {
    kNone,
    kIllegalAddress,       ///< CUDA_ERROR_ILLEGAL_ADDRESS
    kMisaligned,           ///< CUDA_ERROR_MISALIGNED_ADDRESS
    kInvalidAddressSpace,  ///< CUDA_ERROR_INVALID_ADDRESS_SPACE: an atomic on local memory, on old devices
    kIllegalInstruction,  ///< CUDA_ERROR_ILLEGAL_INSTRUCTION: an instruction this device does not know; `message` names
                          ///< it
    kInvalidPc,           ///< CUDA_ERROR_INVALID_PC: call through a pointer that is no function
    kTrap,                ///< CUDA_ERROR_LAUNCH_FAILED
    kAssert,              ///< CUDA_ERROR_ASSERT; `message` is the line that CUDA prints on stderr
    kStackOverflow,       ///< CUDA_ERROR_HARDWARE_STACK_ERROR
    kDeadlock,            ///< CUDA_ERROR_LAUNCH_FAILED: all threads of a block wait for a barrier that cannot complete
    kOutOfMemory,         ///< CUDA_ERROR_OUT_OF_MEMORY: no host memory for the blocks' state
    kCancelled,           ///< LaunchConfig::cancel was set
    kBadLaunch,           ///< CUDA_ERROR_INVALID_VALUE: the launch itself makes no sense; nothing ran
  };

  Kind kind = Kind::kNone;
  std::string kernel;
  std::string function;  ///< Where it happened, when not in the kernel itself.
  std::array<uint32_t, 3> block{};
  std::array<uint32_t, 3> thread{};
  std::string instruction;  ///< PTX statement.
  uint32_t line = 0;        ///< In its PTX text.
  uint64_t address = 0;
  uint32_t size = 0;  ///< Bytes of the access.
  bool write = false;
  std::optional<Range> nearest;
  std::string message;

  /// One report of a few lines for people.
  std::string Text() const;
};

const char* Name(Fault::Kind kind);

struct Outcome {
  Fault fault;  ///< kNone when all blocks ran to the end.
  bool ok() const { return fault.kind == Fault::Kind::kNone; }
};

}  // namespace hawser::exec

#endif  // HAWSER_SOFTCUDA_EXEC_FAULT_H_
