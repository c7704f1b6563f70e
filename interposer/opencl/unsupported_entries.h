// SPDX-License-Identifier: Apache-2.0
// Slots of the dispatch table for sharing with graphics APIs of the guest, which a remote device cannot do.
#ifndef HAWSER_INTERPOSER_OPENCL_UNSUPPORTED_ENTRIES_H_
#define HAWSER_INTERPOSER_OPENCL_UNSUPPORTED_ENTRIES_H_

#include "interposer/opencl/objects.h"

namespace hawser::ocl {

/// Fills them with functions that say so once in the log and return the code that the extension gives for it, and the
/// slots of calls that became core under another name with the core call. The loader calls through the table without
/// looking, so that an empty slot would be a crash.
void FillUnsupported(cl_icd_dispatch& table);

}  // namespace hawser::ocl

#endif  // HAWSER_INTERPOSER_OPENCL_UNSUPPORTED_ENTRIES_H_
