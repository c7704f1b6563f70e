// SPDX-License-Identifier: Apache-2.0
// The lane handlers for x86-64 processors with AVX2 and FMA; compiled with those options.
#define HAWSER_LANES lanes_v3
#include "softcuda/exec/lanes.inc"
