// SPDX-License-Identifier: Apache-2.0
// Functions that programs expect from the device runtime library (`libcudadevrt.a`), of which the toolkit has machine
// code alone: those of cooperative groups (cuda_device_runtime_api.h), as PTX of our own.
#ifndef HAWSER_SOFTCUDA_EXEC_DEVICE_RUNTIME_H_
#define HAWSER_SOFTCUDA_EXEC_DEVICE_RUNTIME_H_

#include <memory>
#include <span>

#include "softcuda/ptx/module.h"

namespace hawser::exec {

/// The module to link along, or null where no module names a function of it, or one defines such a function itself.
std::shared_ptr<const ptx::Module> DeviceRuntimeFor(std::span<const std::shared_ptr<const ptx::Module>> modules);

}  // namespace hawser::exec

#endif  // HAWSER_SOFTCUDA_EXEC_DEVICE_RUNTIME_H_
