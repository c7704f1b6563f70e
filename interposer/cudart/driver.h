// SPDX-License-Identifier: Apache-2.0
// The public driver API, found at run time: libcuda.so.1 is opened at the first real use, so that a process which never
// calls CUDA pays nothing, and so that the same runtime runs on NVIDIA's driver, on Hawser's guest library or on the
// software device. Nothing but the public API is used.
#ifndef HAWSER_INTERPOSER_CUDART_DRIVER_H_
#define HAWSER_INTERPOSER_CUDART_DRIVER_H_

#include <cuda.h>
#include <cudaProfiler.h>

namespace hawser::cudart {

/// One member per driver function that the runtime uses, named like the function. A function that the driver lacks
/// answers CUDA_ERROR_NOT_SUPPORTED, so callers need no checks.
struct Driver {
// cuda.h renames functions to their newest variant by macros; members are renamed alongside.
#define X(name, text, symbol, version) decltype(&::name) name = nullptr;
#include "interposer/cudart/driver_functions.inc"
#undef X
};

/// Finds one function; null when there is none.
using DriverLookup = void* (*)(const char* name, const char* symbol, int version);

/// Fills the table through `lookup`. False when the functions without which nothing works are missing.
bool FillDriver(Driver& driver, DriverLookup lookup);

/// Opens libcuda.so.1 and fills the table through cuGetProcAddress_v2, or by symbol name where that is missing.
/// False when there is no usable driver; the reason is logged.
bool OpenDriver(Driver& driver);

/// Tests put a driver of their own here before the first call; null: libcuda.so.1.
void SetDriverLookupForTest(DriverLookup lookup);

}  // namespace hawser::cudart

#endif  // HAWSER_INTERPOSER_CUDART_DRIVER_H_
