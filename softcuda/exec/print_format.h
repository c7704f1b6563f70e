// SPDX-License-Identifier: Apache-2.0
// printf of kernels: a format string and a buffer of arguments laid out as variadic arguments are (each at its natural
// alignment, floats as doubles). Both come from a kernel and are hostile.
#ifndef HAWSER_SOFTCUDA_EXEC_PRINT_FORMAT_H_
#define HAWSER_SOFTCUDA_EXEC_PRINT_FORMAT_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace hawser::exec {

/// Reads `size` (4 or 8) bytes at offset of the argument buffer; none stops the formatting.
using ArgumentReader = std::function<std::optional<uint64_t>(uint32_t offset, uint32_t size)>;
/// The NUL-terminated string at a device address, bounded; none when it cannot be read.
using StringReader = std::function<std::optional<std::string>(uint64_t address)>;

struct Printed {
  std::string text;
  int arguments = 0;  ///< What vprintf returns.
};

/// At most 64 KiB of text; widths and precisions above 1024 are clamped. %n writes nothing.
Printed FormatPrint(std::string_view format, const ArgumentReader& argument, const StringReader& string);

}  // namespace hawser::exec

#endif  // HAWSER_SOFTCUDA_EXEC_PRINT_FORMAT_H_
