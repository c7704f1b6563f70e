// SPDX-License-Identifier: Apache-2.0
// Functions that programs expect from the device runtime library (`libcudadevrt.a`), of which the toolkit has machine
// code alone: those of cooperative groups and the errors' names and texts (cuda_device_runtime_api.h), as PTX of our
// own. What needs the driver is in runtime_calls.cc.
#ifndef HAWSER_SOFTCUDA_EXEC_DEVICE_RUNTIME_H_
#define HAWSER_SOFTCUDA_EXEC_DEVICE_RUNTIME_H_

#include <memory>
#include <span>
#include <vector>

#include "softcuda/ptx/module.h"

namespace hawser::exec {

/// The modules to link along: of each part whose functions are named, and none of which is defined by the program
/// itself.
std::vector<std::shared_ptr<const ptx::Module>> DeviceRuntimeFor(
    std::span<const std::shared_ptr<const ptx::Module>> modules);

}  // namespace hawser::exec

#endif  // HAWSER_SOFTCUDA_EXEC_DEVICE_RUNTIME_H_
