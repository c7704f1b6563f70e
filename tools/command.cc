// SPDX-License-Identifier: Apache-2.0
#include "tools/command.h"

#include <iostream>

namespace hawser::tools {

void Complain(std::string_view text) { std::cerr << "hawser: " << text << std::endl; }

}  // namespace hawser::tools
