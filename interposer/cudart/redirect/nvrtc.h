// SPDX-License-Identifier: Apache-2.0
// Programs have NVRTC compile for their device: for sm_NN it makes machine code, and the PTX of which it was made. A
// device that executes PTX alone cannot use the first and can use the second, and what loads one loads the other. So on
// such a device nvrtcGetCUBIN() and nvrtcGetCUBINSize() give what nvrtcGetPTX() and nvrtcGetPTXSize() do.
//
// Which device there is, is not known when NVRTC is loaded. The first call finds out, and on a device that takes
// machine code, or where there is none, puts NVRTC's own code back.
#ifndef HAWSER_INTERPOSER_CUDART_REDIRECT_NVRTC_H_
#define HAWSER_INTERPOSER_CUDART_REDIRECT_NVRTC_H_

#include <array>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

#include "interposer/cudart/redirect/elf_reader.h"
#include "interposer/cudart/redirect/patcher.h"
#include "interposer/cudart/redirect/trampolines.h"

namespace hawser::redirect {

/// True for a file that may be NVRTC, by its name alone: libnvrtc.so.13, or libnvrtc-0123abcd.so.12 in a Python
/// package.
bool MayBeNvrtc(std::string_view path);

/// Where NVRTC has a function, and the one whose answer is given on a device that executes PTX alone.
struct NvrtcFunction {
  uint64_t cubin = 0;  ///< As the file has it. 0: it does not export both.
  size_t room = 0;     ///< Bytes that may be overwritten.
  uint64_t ptx = 0;
};

struct NvrtcFunctions {
  NvrtcFunction get;   ///< nvrtcGetCUBIN, nvrtcGetPTX
  NvrtcFunction size;  ///< nvrtcGetCUBINSize, nvrtcGetPTXSize

  /// True when both are there and have room for a jump.
  bool complete() const;
};

NvrtcFunctions FindNvrtc(const ElfReader& file);

/// Asks the CUDA driver that the process uses whether its devices execute PTX alone. False without driver or device.
using DeviceQuestion = bool (*)();
bool DeviceExecutesPtxAlone();

/// One NVRTC in the process. Lives as long as the process.
class Nvrtc : public Destination {
 public:
  /// `base` is where the file was loaded.
  Nvrtc(std::string path, uintptr_t base, const NvrtcFunctions& functions, DeviceQuestion question);

  /// Has the functions for machine code lead here. Nobody may call them yet. False, with errno set, when the system
  /// forbids it; then NVRTC is as it was.
  bool Attach();

  /// Asks for the device the first time. Any thread.
  uintptr_t Find(const std::string& name) override;

 private:
  struct Function {
    uintptr_t cubin = 0;
    uintptr_t ptx = 0;
    size_t room = 0;
    uintptr_t place = 0;                        // Of the jump...
    std::array<uint8_t, kJumpSize> original{};  // ...and what was there before.
  };

  void Decide();
  bool PutBack(const Function& function) const;

  const std::string path_;
  const DeviceQuestion question_;
  Function get_;
  Function size_;
  std::once_flag decided_;
  bool gives_ptx_ = false;  // Once decided.
  bool broken_ = false;     // Once decided: NVRTC's own code could not be put back.
};

}  // namespace hawser::redirect

#endif  // HAWSER_INTERPOSER_CUDART_REDIRECT_NVRTC_H_
