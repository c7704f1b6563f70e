// SPDX-License-Identifier: Apache-2.0
// The number by which two builds recognise that they speak the same description.
#ifndef HAWSER_PROTO_PLUGIN_DESCRIPTION_HASH_H_
#define HAWSER_PROTO_PLUGIN_DESCRIPTION_HASH_H_

#include <google/protobuf/descriptor.h>

#include <cstdint>
#include <vector>

namespace hawser::plugin {

/// 64-bit FNV-1a over the serialized descriptors, options included, in the order of the files'
/// names. Comments and layout of the source do not count, nor do calls that never cross the wire.
uint64_t DescriptionHash(std::vector<const google::protobuf::FileDescriptor*> files);

}  // namespace hawser::plugin

#endif  // HAWSER_PROTO_PLUGIN_DESCRIPTION_HASH_H_
