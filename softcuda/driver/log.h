// SPDX-License-Identifier: Apache-2.0
// Messages for people, on stderr: faults of kernels, images that cannot run, calls that are not implemented.
#ifndef HAWSER_SOFTCUDA_DRIVER_LOG_H_
#define HAWSER_SOFTCUDA_DRIVER_LOG_H_

#include <string_view>

namespace hawser::soft {

/// Writes "hawser: software device: <text>" in one piece. Any thread.
void Log(std::string_view text);
/// The same without the beginning.
void LogAsIs(std::string_view text);

}  // namespace hawser::soft

#endif  // HAWSER_SOFTCUDA_DRIVER_LOG_H_
