// SPDX-License-Identifier: Apache-2.0
// What the server says unasked, handed to those whom it concerns.
#ifndef HAWSER_INTERPOSER_CUDA_NOTICES_H_
#define HAWSER_INTERPOSER_CUDA_NOTICES_H_

#include "interposer/core/session.h"

namespace hawser::cu {

/// The process's, never destroyed.
guest::NoticeSink* Notices();

}  // namespace hawser::cu

#endif  // HAWSER_INTERPOSER_CUDA_NOTICES_H_
