// SPDX-License-Identifier: Apache-2.0
// Launch attributes as they travel: a typed union, nothing unknown.
#ifndef HAWSER_INTERPOSER_CUDA_LAUNCH_ATTRIBUTES_H_
#define HAWSER_INTERPOSER_CUDA_LAUNCH_ATTRIBUTES_H_

#include <vector>

#include "interposer/cuda/driver_api.h"
#include "proto/cuda/messages.h"

namespace hawser::cu {

/// CUDA_ERROR_INVALID_VALUE for an attribute that does not exist, CUDA_ERROR_NOT_SUPPORTED for one that does not
/// travel.
CUresult ToWire(const CUlaunchAttribute& attribute, cuda::LaunchAttribute* message);
CUresult ToWire(const CUlaunchAttribute* attributes, unsigned count, std::vector<cuda::LaunchAttribute>* messages);

/// What a node of a graph answers.
CUresult FromWire(const cuda::LaunchAttribute& message, CUlaunchAttributeValue* value);

}  // namespace hawser::cu

#endif  // HAWSER_INTERPOSER_CUDA_LAUNCH_ATTRIBUTES_H_
