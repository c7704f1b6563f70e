// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "interposer/opencl/entry.h"
#include "interposer/opencl/properties.h"
#include "proto/opencl/guest_entries.h"

namespace hawser::ocl {
namespace {

cl_int Create(cl_context context, const cl_sampler_properties* list, bool keep_list, cl_sampler* out) {
  if (const cl_int error = CheckHandle(context)) return error;
  SamplerProperties properties;
  if (const cl_int error = ParseSamplerProperties(list, &properties)) return error;
  const auto& devices = context->devices;
  if (std::none_of(devices.begin(), devices.end(), [](cl_device_id device) { return device->images; })) {
    return CL_INVALID_OPERATION;
  }
  guest::Session* session = context->session;
  auto* sampler = new _cl_sampler(Magic::kSampler, session, session->NewId(HandleTraits<cl_sampler>::kType));
  sampler->context = Use(context);
  sampler->normalized = properties.normalized;
  sampler->addressing = properties.addressing;
  sampler->filter = properties.filter;
  sampler->has_property_list = keep_list;
  if (keep_list) sampler->property_list = CopyProperties(list);
  const uint64_t forwarded[] = {CL_SAMPLER_NORMALIZED_COORDS, properties.normalized,  CL_SAMPLER_ADDRESSING_MODE,
                                properties.addressing,        CL_SAMPLER_FILTER_MODE, properties.filter};
  opencl::CreateSampler message;
  message.sampler = sampler->id;
  message.context = context->id;
  message.properties = wire::ArrayView<uint64_t>(forwarded, std::size(forwarded));
  Registry::Get().Add(sampler);
  if (const cl_int error = session->Send(message)) {
    ReleaseObject(sampler);
    return error;
  }
  *out = sampler;
  return CL_SUCCESS;
}

}  // namespace

void Destroy(cl_sampler sampler) {
  Registry::Get().Remove(sampler);
  SendRelease(*sampler);
  cl_context context = sampler->context;
  sampler->magic = Magic::kFreed;
  delete sampler;
  DropUse(context);
}

// ---------------------------------------------------------------------- entry points

cl_sampler CL_API_CALL clCreateSamplerWithProperties(cl_context context, const cl_sampler_properties* properties,
                                                     cl_int* errcode) {
  cl_sampler sampler = nullptr;
  const cl_int error = Create(context, properties, properties != nullptr, &sampler);
  if (errcode != nullptr) *errcode = error;
  return sampler;
}

cl_sampler CL_API_CALL clCreateSampler(cl_context context, cl_bool normalized, cl_addressing_mode addressing,
                                       cl_filter_mode filter, cl_int* errcode) {
  const cl_sampler_properties list[] = {CL_SAMPLER_NORMALIZED_COORDS,
                                        normalized,
                                        CL_SAMPLER_ADDRESSING_MODE,
                                        addressing,
                                        CL_SAMPLER_FILTER_MODE,
                                        filter,
                                        0};
  cl_sampler sampler = nullptr;
  const cl_int error = Create(context, list, false, &sampler);
  if (errcode != nullptr) *errcode = error;
  return sampler;
}

cl_int CL_API_CALL clGetSamplerInfo(cl_sampler sampler, cl_sampler_info param, size_t size, void* value,
                                    size_t* size_ret) {
  if (const cl_int error = CheckHandle(sampler)) return error;
  switch (param) {
    case CL_SAMPLER_REFERENCE_COUNT:
      return ReturnInfo(cl_uint{sampler->refs}, size, value, size_ret);
    case CL_SAMPLER_CONTEXT:
      return ReturnInfo(sampler->context, size, value, size_ret);
    case CL_SAMPLER_NORMALIZED_COORDS:
      return ReturnInfo(sampler->normalized, size, value, size_ret);
    case CL_SAMPLER_ADDRESSING_MODE:
      return ReturnInfo(sampler->addressing, size, value, size_ret);
    case CL_SAMPLER_FILTER_MODE:
      return ReturnInfo(sampler->filter, size, value, size_ret);
    case CL_SAMPLER_PROPERTIES:
      return ReturnInfo(sampler->property_list.data(), sampler->property_list.size() * sizeof(cl_sampler_properties),
                        size, value, size_ret);
    default:
      return CL_INVALID_VALUE;
  }
}

}  // namespace hawser::ocl
