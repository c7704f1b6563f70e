// SPDX-License-Identifier: Apache-2.0
#include "interposer/cudart/errors.h"

#include <algorithm>
#include <iterator>

namespace hawser::cudart {
namespace {

struct Entry {
  cudaError_t code;
  const char* name;
  const char* text;
};

#define E(code, text) \
  { code, #code, text }
// In ascending order.
constexpr Entry kErrors[] = {
    E(cudaSuccess, "no error"),
    E(cudaErrorInvalidValue, "invalid argument"),
    E(cudaErrorMemoryAllocation, "out of memory"),
    E(cudaErrorInitializationError, "initialization error"),
    E(cudaErrorCudartUnloading, "driver shutting down"),
    E(cudaErrorProfilerDisabled, "profiling is not possible in this process"),
    E(cudaErrorProfilerNotInitialized, "the profiler was not initialized"),
    E(cudaErrorProfilerAlreadyStarted, "the profiler runs already"),
    E(cudaErrorProfilerAlreadyStopped, "the profiler was stopped already"),
    E(cudaErrorInvalidConfiguration, "invalid configuration argument"),
    E(cudaErrorInvalidPitchValue, "invalid pitch argument"),
    E(cudaErrorInvalidSymbol, "invalid device symbol"),
    E(cudaErrorInvalidHostPointer, "invalid host pointer"),
    E(cudaErrorInvalidDevicePointer, "invalid device pointer"),
    E(cudaErrorInvalidTexture, "invalid texture"),
    E(cudaErrorInvalidTextureBinding, "the texture is not bound"),
    E(cudaErrorInvalidChannelDescriptor, "invalid channel descriptor"),
    E(cudaErrorInvalidMemcpyDirection, "invalid copy direction"),
    E(cudaErrorAddressOfConstant, "the address of a constant was taken"),
    E(cudaErrorTextureFetchFailed, "a texture fetch failed"),
    E(cudaErrorTextureNotBound, "the texture cannot be read because it is not bound"),
    E(cudaErrorSynchronizationError, "a synchronization failed"),
    E(cudaErrorInvalidFilterSetting, "invalid texture filter"),
    E(cudaErrorInvalidNormSetting, "invalid texture normalization"),
    E(cudaErrorMixedDeviceExecution, "device and emulated code cannot be mixed"),
    E(cudaErrorNotYetImplemented, "not implemented yet"),
    E(cudaErrorMemoryValueTooLarge, "a pointer does not fit"),
    E(cudaErrorStubLibrary, "the driver that was loaded is a stub for linking"),
    E(cudaErrorInsufficientDriver, "no CUDA driver, or one that is too old for this runtime"),
    E(cudaErrorCallRequiresNewerDriver, "this call needs a newer driver"),
    E(cudaErrorInvalidSurface, "invalid surface"),
    E(cudaErrorDuplicateVariableName, "two global variables have the same name"),
    E(cudaErrorDuplicateTextureName, "two textures have the same name"),
    E(cudaErrorDuplicateSurfaceName, "two surfaces have the same name"),
    E(cudaErrorDevicesUnavailable, "all devices are busy or cannot be used"),
    E(cudaErrorIncompatibleDriverContext, "the current driver context cannot be used by the runtime"),
    E(cudaErrorMissingConfiguration, "the launch has no configuration"),
    E(cudaErrorPriorLaunchFailure, "an earlier launch failed"),
    E(cudaErrorLaunchMaxDepthExceeded, "launches are nested too deeply"),
    E(cudaErrorLaunchFileScopedTex, "a child grid uses a texture of file scope"),
    E(cudaErrorLaunchFileScopedSurf, "a child grid uses a surface of file scope"),
    E(cudaErrorSyncDepthExceeded, "the device synchronizes too deeply"),
    E(cudaErrorLaunchPendingCountExceeded, "too many launches are pending on the device"),
    E(cudaErrorInvalidDeviceFunction, "invalid device function"),
    E(cudaErrorNoDevice, "no CUDA-capable device is detected"),
    E(cudaErrorInvalidDevice, "invalid device ordinal"),
    E(cudaErrorDeviceNotLicensed, "the device has no valid license"),
    E(cudaErrorSoftwareValidityNotEstablished, "the software could not be verified"),
    E(cudaErrorStartupFailure, "the runtime could not start"),
    E(cudaErrorInvalidKernelImage, "the device kernel image is invalid"),
    E(cudaErrorDeviceUninitialized, "invalid device context"),
    E(cudaErrorMapBufferObjectFailed, "mapping failed"),
    E(cudaErrorUnmapBufferObjectFailed, "unmapping failed"),
    E(cudaErrorArrayIsMapped, "the array is mapped"),
    E(cudaErrorAlreadyMapped, "the resource is mapped already"),
    E(cudaErrorNoKernelImageForDevice, "no kernel image is available for execution on the device"),
    E(cudaErrorAlreadyAcquired, "the resource was acquired already"),
    E(cudaErrorNotMapped, "the resource is not mapped"),
    E(cudaErrorNotMappedAsArray, "the resource is not mapped as an array"),
    E(cudaErrorNotMappedAsPointer, "the resource is not mapped as a pointer"),
    E(cudaErrorECCUncorrectable, "uncorrectable memory error"),
    E(cudaErrorUnsupportedLimit, "the device does not have this limit"),
    E(cudaErrorDeviceAlreadyInUse, "another thread uses the device exclusively"),
    E(cudaErrorPeerAccessUnsupported, "peer access is not supported between these two devices"),
    E(cudaErrorInvalidPtx, "the PTX code could not be compiled"),
    E(cudaErrorInvalidGraphicsContext, "invalid OpenGL or DirectX context"),
    E(cudaErrorNvlinkUncorrectable, "uncorrectable NVLink error"),
    E(cudaErrorJitCompilerNotFound, "there is no PTX compiler"),
    E(cudaErrorUnsupportedPtxVersion, "the PTX code is newer than the driver"),
    E(cudaErrorJitCompilationDisabled, "PTX compilation is disabled"),
    E(cudaErrorUnsupportedExecAffinity, "the device does not support this execution affinity"),
    E(cudaErrorUnsupportedDevSideSync, "the code synchronizes on the device in a way that is gone"),
    E(cudaErrorContained, "a contained memory error"),
    E(cudaErrorInvalidSource, "invalid device source"),
    E(cudaErrorFileNotFound, "file not found"),
    E(cudaErrorSharedObjectSymbolNotFound, "a shared object lacks a symbol"),
    E(cudaErrorSharedObjectInitFailed, "a shared object could not be initialized"),
    E(cudaErrorOperatingSystem, "an operating system call failed"),
    E(cudaErrorInvalidResourceHandle, "invalid resource handle"),
    E(cudaErrorIllegalState, "the object is in the wrong state for this call"),
    E(cudaErrorLossyQuery, "the answer would not be complete"),
    E(cudaErrorSymbolNotFound, "named symbol not found"),
    E(cudaErrorNotReady, "device not ready"),
    E(cudaErrorIllegalAddress, "an illegal memory access was encountered"),
    E(cudaErrorLaunchOutOfResources, "too many resources requested for launch"),
    E(cudaErrorLaunchTimeout, "the launch timed out and was terminated"),
    E(cudaErrorLaunchIncompatibleTexturing, "the launch uses an incompatible texturing mode"),
    E(cudaErrorPeerAccessAlreadyEnabled, "peer access is enabled already"),
    E(cudaErrorPeerAccessNotEnabled, "peer access is not enabled"),
    E(cudaErrorSetOnActiveProcess, "cannot be set while the device is in use"),
    E(cudaErrorContextIsDestroyed, "the context is destroyed"),
    E(cudaErrorAssert, "an assertion failed in a kernel"),
    E(cudaErrorTooManyPeers, "peer mapping resources are exhausted"),
    E(cudaErrorHostMemoryAlreadyRegistered, "part or all of the memory is registered already"),
    E(cudaErrorHostMemoryNotRegistered, "the pointer is not registered host memory"),
    E(cudaErrorHardwareStackError, "stack error on the device"),
    E(cudaErrorIllegalInstruction, "an illegal instruction was encountered"),
    E(cudaErrorMisalignedAddress, "misaligned address"),
    E(cudaErrorInvalidAddressSpace, "an operation is not available in this address space"),
    E(cudaErrorInvalidPc, "invalid program counter"),
    E(cudaErrorLaunchFailure, "unspecified launch failure"),
    E(cudaErrorCooperativeLaunchTooLarge, "too many blocks in a cooperative launch"),
    E(cudaErrorTensorMemoryLeak, "tensor memory was not freed when the kernel ended"),
    E(cudaErrorNotPermitted, "operation not permitted"),
    E(cudaErrorNotSupported, "operation not supported"),
    E(cudaErrorSystemNotReady, "the system is not ready for CUDA yet"),
    E(cudaErrorSystemDriverMismatch, "the parts of the driver do not match"),
    E(cudaErrorCompatNotSupportedOnDevice, "the device does not support forward compatibility"),
    E(cudaErrorMpsConnectionFailed, "cannot connect to the MPS daemon"),
    E(cudaErrorMpsRpcFailure, "a call to the MPS server failed"),
    E(cudaErrorMpsServerNotReady, "the MPS server is not ready"),
    E(cudaErrorMpsMaxClientsReached, "the MPS server has too many clients"),
    E(cudaErrorMpsMaxConnectionsReached, "the MPS server has too many connections"),
    E(cudaErrorMpsClientTerminated, "the MPS server ended this client"),
    E(cudaErrorCdpNotSupported, "launches from the device are not supported"),
    E(cudaErrorCdpVersionMismatch, "launches from the device use versions that do not match"),
    E(cudaErrorStreamCaptureUnsupported, "operation not permitted while a stream is captured"),
    E(cudaErrorStreamCaptureInvalidated, "the capture became invalid through an earlier error"),
    E(cudaErrorStreamCaptureMerge, "the operation would merge two captures"),
    E(cudaErrorStreamCaptureUnmatched, "the capture did not begin in this stream"),
    E(cudaErrorStreamCaptureUnjoined, "the capture ended with work that was not joined"),
    E(cudaErrorStreamCaptureIsolation, "a dependency would cross the capture's boundary"),
    E(cudaErrorStreamCaptureImplicit, "a captured stream would depend on the legacy stream"),
    E(cudaErrorCapturedEvent, "operation not permitted on an event that was recorded in a capture"),
    E(cudaErrorStreamCaptureWrongThread, "the capture began in another thread"),
    E(cudaErrorTimeout, "the wait timed out"),
    E(cudaErrorGraphExecUpdateFailure, "the graph cannot be updated because the two differ too much"),
    E(cudaErrorExternalDevice, "an error on another device"),
    E(cudaErrorInvalidClusterSize, "invalid cluster size"),
    E(cudaErrorFunctionNotLoaded, "the function is not loaded"),
    E(cudaErrorInvalidResourceType, "invalid resource type"),
    E(cudaErrorInvalidResourceConfiguration, "invalid resource configuration"),
    E(cudaErrorUnknown, "unknown error"),
};
#undef E

const Entry* Find(cudaError_t error) {
  const Entry* found = std::lower_bound(std::begin(kErrors), std::end(kErrors), error,
                                        [](const Entry& entry, cudaError_t code) { return entry.code < code; });
  return found != std::end(kErrors) && found->code == error ? found : nullptr;
}

}  // namespace

cudaError_t FromDriver(CUresult result) {
  if (result == CUDA_SUCCESS) return cudaSuccess;
  const auto same = static_cast<cudaError_t>(result);
  return Find(same) != nullptr ? same : cudaErrorUnknown;
}

bool IsSticky(cudaError_t error) {
  switch (error) {
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorContained:
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
    case cudaErrorTensorMemoryLeak:
    case cudaErrorExternalDevice:
      return true;
    default:
      return false;
  }
}

const char* ErrorName(cudaError_t error) {
  const Entry* entry = Find(error);
  return entry != nullptr ? entry->name : nullptr;
}

const char* ErrorText(cudaError_t error) {
  const Entry* entry = Find(error);
  return entry != nullptr ? entry->text : nullptr;
}

}  // namespace hawser::cudart
