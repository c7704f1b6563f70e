/* SPDX-License-Identifier: Apache-2.0 */
/* The header stands alone: nothing is included before it. */
#include "hawser/policy.h"

int main(void) { return sizeof(hawser_policy) > 0 ? 0 : 1; }
