# SPDX-License-Identifier: Apache-2.0
# Fails when the checked-in table of calls is not the generated one, and says how to update it.
execute_process(COMMAND ${CMAKE_COMMAND} -E compare_files ${GENERATED} ${CHECKED_IN} RESULT_VARIABLE different
  OUTPUT_QUIET ERROR_QUIET)
if(different)
  message(FATAL_ERROR "${CHECKED_IN} is not what the description says. To update it:\n"
    "  cmake --build ${BUILD} --target update-coverage")
endif()
