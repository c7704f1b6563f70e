// SPDX-License-Identifier: Apache-2.0
// cuLink*: the inputs are kept here and linked by one message when cuLinkComplete wants the result. So what a driver
// would say of an input at cuLinkAddData is said at cuLinkComplete.
#include <cstring>
#include <deque>

#include "interposer/cuda/entry.h"
#include "interposer/cuda/file_bytes.h"
#include "interposer/cuda/host_region.h"
#include "interposer/cuda/module.h"
#include "interposer/cuda/transfer.h"

using namespace hawser;      // NOLINT(google-build-using-namespace): entry points live outside of namespaces.
using namespace hawser::cu;  // NOLINT(google-build-using-namespace)

struct CUlinkState_st final : Object {
  using Object::Object;

  struct Input {
    CUjitInputType type;
    std::string name;
    std::vector<std::byte> bytes;  ///< A copy: the application may free its own.
    ImageOffer offer;
  };
  CUctx_st* context = nullptr;
  JitOptions options;
  std::deque<Input> inputs;
  std::vector<std::byte> cubin;
};

namespace {

constexpr int kRounds = 8;

CUresult Check(CUlinkState state) {
  if (const CUresult error = Client::Get().Check(); error != CUDA_SUCCESS) return error;
  return CheckObject(state, Kind::kLinker);
}

CUresult Keep(CUlinkState state, CUjitInputType type, const char* name, std::vector<std::byte> bytes) {
  const bool object = type == CU_JIT_INPUT_OBJECT || type == CU_JIT_INPUT_LIBRARY;
  if (!object && type != CU_JIT_INPUT_CUBIN && type != CU_JIT_INPUT_PTX && type != CU_JIT_INPUT_FATBINARY) {
    return type < CU_JIT_NUM_INPUT_TYPES ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_VALUE;
  }
  auto& input = state->inputs.emplace_back();
  input.type = type;
  input.name = name != nullptr ? name : "";
  input.bytes = std::move(bytes);
  const CUresult error = object ? input.offer.AddObject(input.bytes) : input.offer.AddBytes(input.bytes);
  if (error != CUDA_SUCCESS) state->inputs.pop_back();
  return error;
}

CUresult Download(guest::Session* session, const cuda::LinkResult& result, std::vector<std::byte>* cubin) {
  cubin->resize(result.size);
  cuda::DownloadImage message;
  message.hash = result.hash;
  message.size = result.size;
  const HostRegion region = HostRegion::Linear(cubin->data(), cubin->size());
  auto* read = new RemoteRead(session, region, nullptr, nullptr);
  int32_t sent;
  if (result.size > session->inline_limit()) {
    message.transfer = session->NewTransfer();
    session->ExpectBulk(message.transfer, read);
    sent = session->Send(message);
  } else {
    sent = session->SendForReply(cuda::Opcode::kDownloadImage, message, read);
  }
  return ConcludeRead(session, read, FromWire(sent), message.transfer, /*wait=*/true);
}

CUresult Link(CUlinkState state) {
  guest::Session* session = Client::Get().session();
  std::vector<cuda::LinkInput> inputs;
  std::vector<const ImageOffer*> offers;
  for (const auto& input : state->inputs) {
    cuda::LinkInput wire_input;
    wire_input.type = input.type;
    wire_input.name = input.name;
    wire_input.entries = wire::ListView<cuda::ImageEntry>(input.offer.entries());
    inputs.push_back(wire_input);
    offers.push_back(&input.offer);
  }
  cuda::LinkImages message;
  message.context = state->context->id;
  message.inputs = wire::ListView<cuda::LinkInput>(std::span<const cuda::LinkInput>(inputs));
  message.options = wire::ListView<cuda::JitOption>(state->options.numbers());
  message.info_log_size = state->options.info_size();
  message.error_log_size = state->options.error_size();
  for (int round = 0; round < kRounds; ++round) {
    Answer<cuda::LinkResult> answer;
    if (const CUresult error = answer.Get(session, cuda::Opcode::kLinkImages, message); error != CUDA_SUCCESS) {
      return error;
    }
    if (answer->status == 0 && !answer->missing.empty()) {
      if (const CUresult error = UploadMissing(session, answer->missing, offers); error != CUDA_SUCCESS) return error;
      continue;
    }
    state->options.Answer(answer->info_log, answer->error_log);
    if (answer->status == CUDA_ERROR_NO_BINARY_FOR_GPU) SayNoCode("modules cannot be linked", answer->error_log);
    if (answer->status != 0) return FromWire(answer->status);
    if (answer->size == 0 || answer->size > (uint64_t{1} << 31)) return CUDA_ERROR_UNKNOWN;
    return Download(session, *answer, &state->cubin);
  }
  return CUDA_ERROR_UNKNOWN;
}

}  // namespace

CUresult CUDAAPI cuLinkCreate_v2(unsigned int count, CUjit_option* options, void** values, CUlinkState* result) {
  CUctx_st* context = nullptr;
  if (const CUresult error = CurrentContext(&context); error != CUDA_SUCCESS) return error;
  if (result == nullptr) return CUDA_ERROR_INVALID_VALUE;
  JitOptions jit;
  if (const CUresult error = jit.Read(count, options, values); error != CUDA_SUCCESS) return error;
  auto* state = new CUlinkState_st(Kind::kLinker);
  state->context = context;
  state->options = std::move(jit);
  *result = state;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuLinkCreate(unsigned int count, CUjit_option* options, void** values, CUlinkState* result) {
  return cuLinkCreate_v2(count, options, values, result);
}

CUresult CUDAAPI cuLinkAddData_v2(CUlinkState state, CUjitInputType type, void* data, size_t size, const char* name,
                                  unsigned int count, CUjit_option* options, void** values) {
  if (const CUresult error = Check(state); error != CUDA_SUCCESS) return error;
  if (data == nullptr || size == 0) return CUDA_ERROR_INVALID_VALUE;
  JitOptions jit;
  if (const CUresult error = jit.Read(count, options, values); error != CUDA_SUCCESS) return error;
  const auto* begin = static_cast<const std::byte*>(data);
  std::vector<std::byte> bytes(begin, begin + size);
  if (type == CU_JIT_INPUT_PTX && bytes.back() != std::byte{0}) bytes.push_back(std::byte{0});
  return Keep(state, type, name, std::move(bytes));
}

CUresult CUDAAPI cuLinkAddData(CUlinkState state, CUjitInputType type, void* data, size_t size, const char* name,
                               unsigned int count, CUjit_option* options, void** values) {
  return cuLinkAddData_v2(state, type, data, size, name, count, options, values);
}

CUresult CUDAAPI cuLinkAddFile_v2(CUlinkState state, CUjitInputType type, const char* path, unsigned int count,
                                  CUjit_option* options, void** values) {
  if (const CUresult error = Check(state); error != CUDA_SUCCESS) return error;
  if (path == nullptr) return CUDA_ERROR_INVALID_VALUE;
  JitOptions jit;
  if (const CUresult error = jit.Read(count, options, values); error != CUDA_SUCCESS) return error;
  std::vector<std::byte> bytes;
  if (const CUresult error = ReadFile(path, &bytes); error != CUDA_SUCCESS) return error;
  if (type != CU_JIT_INPUT_PTX) bytes.pop_back();
  return Keep(state, type, path, std::move(bytes));
}

CUresult CUDAAPI cuLinkAddFile(CUlinkState state, CUjitInputType type, const char* path, unsigned int count,
                               CUjit_option* options, void** values) {
  return cuLinkAddFile_v2(state, type, path, count, options, values);
}

CUresult CUDAAPI cuLinkComplete(CUlinkState state, void** cubin, size_t* size) {
  if (const CUresult error = Check(state); error != CUDA_SUCCESS) return error;
  if (cubin == nullptr || state->inputs.empty()) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult error = CheckContext(state->context); error != CUDA_SUCCESS) return error;
  if (const CUresult error = Link(state); error != CUDA_SUCCESS) return error;
  *cubin = state->cubin.data();
  if (size != nullptr) *size = state->cubin.size();
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuLinkDestroy(CUlinkState state) {
  if (const CUresult error = Check(state); error != CUDA_SUCCESS) return error;
  state->inputs.clear();
  state->cubin = {};
  Registry::Get().Bury(state);
  return CUDA_SUCCESS;
}
