// SPDX-License-Identifier: Apache-2.0
// What the specification's tables say of image formats, for both sides.
#ifndef HAWSER_PROTO_FACTS_IMAGE_FORMATS_H_
#define HAWSER_PROTO_FACTS_IMAGE_FORMATS_H_

#include <cstdint>

namespace hawser::opencl {

/// Bytes of one element; 0 when channel order (cl_channel_order) and type (cl_channel_type) are no valid pair.
uint32_t ElementSize(uint32_t order, uint32_t type);

}  // namespace hawser::opencl

#endif  // HAWSER_PROTO_FACTS_IMAGE_FORMATS_H_
