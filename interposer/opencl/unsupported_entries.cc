// SPDX-License-Identifier: Apache-2.0
#include "interposer/opencl/unsupported_entries.h"

#include <tuple>
#include <type_traits>

#include "interposer/opencl/entry.h"
#include "proto/opencl/guest_entries.h"

namespace hawser::ocl {
namespace {

constexpr char kReason[] = "objects of graphics APIs live in the guest, the device does not";

/// A function of type F that returns kCode: as its result, or through its last parameter where it makes an object.
template <const char* kName, cl_int kCode, typename F>
struct Refusal;
template <const char* kName, cl_int kCode, typename Result, typename... Params>
struct Refusal<kName, kCode, Result(CL_API_CALL*)(Params...)> {
  static Result CL_API_CALL Call(Params... params) {
    RefuseOnce(kName, kReason);
    if constexpr (std::is_pointer_v<Result>) {
      cl_int* error = std::get<sizeof...(Params) - 1>(std::tie(params...));
      if (error != nullptr) *error = kCode;
      return nullptr;
    } else {
      return kCode;
    }
  }
};

#define HAWSER_NAME(call) constexpr char k_##call[] = #call;
HAWSER_NAME(clCreateFromGLTexture)
HAWSER_NAME(clCreateFromGLTexture2D)
HAWSER_NAME(clCreateFromGLTexture3D)
HAWSER_NAME(clCreateFromGLRenderbuffer)
HAWSER_NAME(clGetGLObjectInfo)
HAWSER_NAME(clGetGLTextureInfo)
HAWSER_NAME(clEnqueueAcquireGLObjects)
HAWSER_NAME(clEnqueueReleaseGLObjects)
HAWSER_NAME(clGetGLContextInfoKHR)
HAWSER_NAME(clCreateEventFromGLsyncKHR)
HAWSER_NAME(clCreateFromEGLImageKHR)
HAWSER_NAME(clEnqueueAcquireEGLObjectsKHR)
HAWSER_NAME(clEnqueueReleaseEGLObjectsKHR)
HAWSER_NAME(clCreateEventFromEGLSyncKHR)
HAWSER_NAME(clCreateSubDevicesEXT)
#undef HAWSER_NAME

}  // namespace

void FillUnsupported(cl_icd_dispatch& table) {
#define HAWSER_REFUSE(call, code) table.call = &Refusal<k_##call, code, decltype(table.call)>::Call
  HAWSER_REFUSE(clCreateFromGLTexture, CL_INVALID_CONTEXT);
  HAWSER_REFUSE(clCreateFromGLTexture2D, CL_INVALID_CONTEXT);
  HAWSER_REFUSE(clCreateFromGLTexture3D, CL_INVALID_CONTEXT);
  HAWSER_REFUSE(clCreateFromGLRenderbuffer, CL_INVALID_CONTEXT);
  HAWSER_REFUSE(clGetGLObjectInfo, CL_INVALID_GL_OBJECT);
  HAWSER_REFUSE(clGetGLTextureInfo, CL_INVALID_GL_OBJECT);
  HAWSER_REFUSE(clEnqueueAcquireGLObjects, CL_INVALID_CONTEXT);
  HAWSER_REFUSE(clEnqueueReleaseGLObjects, CL_INVALID_CONTEXT);
  HAWSER_REFUSE(clGetGLContextInfoKHR, CL_INVALID_OPERATION);
  HAWSER_REFUSE(clCreateEventFromGLsyncKHR, CL_INVALID_CONTEXT);
  HAWSER_REFUSE(clCreateFromEGLImageKHR, CL_INVALID_OPERATION);
  HAWSER_REFUSE(clEnqueueAcquireEGLObjectsKHR, CL_INVALID_OPERATION);
  HAWSER_REFUSE(clEnqueueReleaseEGLObjectsKHR, CL_INVALID_OPERATION);
  HAWSER_REFUSE(clCreateEventFromEGLSyncKHR, CL_INVALID_OPERATION);
  HAWSER_REFUSE(clCreateSubDevicesEXT, CL_INVALID_OPERATION);
#undef HAWSER_REFUSE
  table.clRetainDeviceEXT = &ocl::clRetainDevice;
  table.clReleaseDeviceEXT = &ocl::clReleaseDevice;
  table.clGetKernelSubGroupInfoKHR = &ocl::clGetKernelSubGroupInfo;
}

}  // namespace hawser::ocl
