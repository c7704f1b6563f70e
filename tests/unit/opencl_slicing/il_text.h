// SPDX-License-Identifier: Apache-2.0
// Modules of intermediate language for tests, written as assembly.
#ifndef HAWSER_TESTS_UNIT_OPENCL_SLICING_IL_TEXT_H_
#define HAWSER_TESTS_UNIT_OPENCL_SLICING_IL_TEXT_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "spirv-tools/libspirv.h"

namespace hawser::server::slicing {

/// A module with one kernel `k` (ptr to global ulong `%out`, ptr to global uint `%flag`, uint `%n`) with that body, all
/// built-ins declared, and `more` declarations.
inline std::string IlKernel(const std::string& body, const std::string& more = "",
                            const std::string& decorations = "") {
  return R"(
OpCapability Addresses
OpCapability Kernel
OpCapability Int64
OpCapability Linkage
%ext = OpExtInstImport "OpenCL.std"
OpMemoryModel Physical64 OpenCL
OpEntryPoint Kernel %k "k" %gid %lid %wgid %nwg %gsize %wsize %goff %glin %dim
OpSource OpenCL_C 200000
)" + decorations +
         R"(
OpDecorate %gid BuiltIn GlobalInvocationId
OpDecorate %lid BuiltIn LocalInvocationId
OpDecorate %wgid BuiltIn WorkgroupId
OpDecorate %nwg BuiltIn NumWorkgroups
OpDecorate %gsize BuiltIn GlobalSize
OpDecorate %wsize BuiltIn WorkgroupSize
OpDecorate %goff BuiltIn GlobalOffset
OpDecorate %glin BuiltIn GlobalLinearId
OpDecorate %dim BuiltIn WorkDim
%void = OpTypeVoid
%bool = OpTypeBool
%uint = OpTypeInt 32 0
%ulong = OpTypeInt 64 0
%v3 = OpTypeVector %ulong 3
%in_v3 = OpTypePointer Input %v3
%in_ulong = OpTypePointer Input %ulong
%in_uint = OpTypePointer Input %uint
%global_ulong = OpTypePointer CrossWorkgroup %ulong
%global_uint = OpTypePointer CrossWorkgroup %uint
%private_uint = OpTypePointer Function %uint
%main_type = OpTypeFunction %void %global_ulong %global_uint %uint
%u0 = OpConstant %uint 0
%u1 = OpConstant %uint 1
%u2 = OpConstant %uint 2
%u272 = OpConstant %uint 272
%u528 = OpConstant %uint 528
%gid = OpVariable %in_v3 Input
%lid = OpVariable %in_v3 Input
%wgid = OpVariable %in_v3 Input
%nwg = OpVariable %in_v3 Input
%gsize = OpVariable %in_v3 Input
%wsize = OpVariable %in_v3 Input
%goff = OpVariable %in_v3 Input
%glin = OpVariable %in_ulong Input
%dim = OpVariable %in_uint Input
)" + more +
         R"(
%k = OpFunction %void None %main_type
%out = OpFunctionParameter %global_ulong
%flag = OpFunctionParameter %global_uint
%n = OpFunctionParameter %uint
%begin = OpLabel
)" + body +
         R"(
OpReturn
OpFunctionEnd
)";
}

inline std::vector<uint32_t> Assemble(const std::string& text) {
  const std::unique_ptr<spv_context_t, decltype(&spvContextDestroy)> context(spvContextCreate(SPV_ENV_UNIVERSAL_1_2),
                                                                             &spvContextDestroy);
  spv_binary binary = nullptr;
  spv_diagnostic diagnostic = nullptr;
  if (spvTextToBinary(context.get(), text.data(), text.size(), &binary, &diagnostic) != SPV_SUCCESS) {
    ADD_FAILURE() << "line " << diagnostic->position.line + 1 << ": " << diagnostic->error << "\n" << text;
    spvDiagnosticDestroy(diagnostic);
    return {};
  }
  std::vector<uint32_t> words(binary->code, binary->code + binary->wordCount);
  spvBinaryDestroy(binary);
  return words;
}

/// What the validator says for OpenCL 2.2; empty: it is valid.
inline std::string Problem(const std::vector<uint32_t>& words) {
  const std::unique_ptr<spv_context_t, decltype(&spvContextDestroy)> context(spvContextCreate(SPV_ENV_OPENCL_2_2),
                                                                             &spvContextDestroy);
  spv_diagnostic diagnostic = nullptr;
  const spv_result_t result = spvValidateBinary(context.get(), words.data(), words.size(), &diagnostic);
  std::string text = diagnostic != nullptr ? diagnostic->error : "";
  spvDiagnosticDestroy(diagnostic);
  return result == SPV_SUCCESS ? "" : "invalid: " + text;
}

}  // namespace hawser::server::slicing

#endif  // HAWSER_TESTS_UNIT_OPENCL_SLICING_IL_TEXT_H_
