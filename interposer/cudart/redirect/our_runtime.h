// SPDX-License-Identifier: Apache-2.0
// Our runtime as what redirected functions go to. It is opened by the first that is called.
#ifndef HAWSER_INTERPOSER_CUDART_REDIRECT_OUR_RUNTIME_H_
#define HAWSER_INTERPOSER_CUDART_REDIRECT_OUR_RUNTIME_H_

#include "interposer/cudart/redirect/trampolines.h"

namespace hawser::redirect {

/// The destination of functions of a runtime of that version, 12 or 13. Lives for ever.
Destination* OurRuntime(int major);

}  // namespace hawser::redirect

#endif  // HAWSER_INTERPOSER_CUDART_REDIRECT_OUR_RUNTIME_H_
