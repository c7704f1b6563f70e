// SPDX-License-Identifier: Apache-2.0
// Whether a text is JSON, without a library for it: a policy's dump() is put into a larger text.
#ifndef HAWSER_SCHEDULER_CORE_JSON_TEXT_H_
#define HAWSER_SCHEDULER_CORE_JSON_TEXT_H_

#include <string_view>

namespace hawser::scheduler {

/// One value of RFC 8259 and white space around it, at most 64 deep. Bytes above 0x7f in strings are not looked at.
bool IsJson(std::string_view text);

}  // namespace hawser::scheduler

#endif  // HAWSER_SCHEDULER_CORE_JSON_TEXT_H_
