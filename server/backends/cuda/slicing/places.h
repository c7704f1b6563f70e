// SPDX-License-Identifier: Apache-2.0
// Where in a PTX module's text its kernels, functions and variables stand.
#ifndef HAWSER_SERVER_BACKENDS_CUDA_SLICING_PLACES_H_
#define HAWSER_SERVER_BACKENDS_CUDA_SLICING_PLACES_H_

#include <cstddef>
#include <string_view>
#include <vector>

#include "wire/status.h"

namespace hawser::server::cuda_slicing {

/// Where a kernel or another function stands in its module's text: byte offsets.
struct FunctionPlace {
  std::string_view name;
  bool entry = false;
  size_t begin = 0;  ///< With .visible and the like before .entry or .func.
  size_t end = 0;    ///< Behind the closing brace, or behind ';'.
  size_t name_end = 0;
  size_t parameters_begin = 0;  ///< Behind '('; 0: there is no list.
  size_t parameters_end = 0;    ///< At its ')'.
  size_t body = 0;              ///< Behind '{'; 0: declared only.
};

/// A statement that declares variables of .global or .const space.
struct VariablePlace {
  size_t begin = 0;  ///< With .visible and the like.
  size_t end = 0;    ///< Behind its ';'.
};

struct Places {
  std::vector<FunctionPlace> functions;
  std::vector<VariablePlace> variables;
  size_t first = 0;  ///< Where the first declaration of any kind begins; the text's end when there is none.
};

/// All of a text that ptx::Parse() has taken, up to its first zero byte. kInvalid when they cannot be told apart.
wire::Result<Places> FindPlaces(std::string_view text);

}  // namespace hawser::server::cuda_slicing

#endif  // HAWSER_SERVER_BACKENDS_CUDA_SLICING_PLACES_H_
