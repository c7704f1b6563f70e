// SPDX-License-Identifier: Apache-2.0
// The CUDA backend as the worker sees it.
#ifndef HAWSER_SERVER_BACKENDS_CUDA_CREATE_H_
#define HAWSER_SERVER_BACKENDS_CUDA_CREATE_H_

#include "server/worker/backend_factory.h"
#include "server/worker/dialect.h"

namespace hawser::server::cuda_backend {

/// Chooses and loads a driver as the settings say, and writes to the log which.
wire::Result<ChosenBackend> Create(const WorkerSettings& settings, SessionLog* log);

const Dialect& CudaDialect();

}  // namespace hawser::server::cuda_backend

#endif  // HAWSER_SERVER_BACKENDS_CUDA_CREATE_H_
