# SPDX-License-Identifier: Apache-2.0
# Policies and shares in a real server.
add_test(NAME isolated_policy_killed
  COMMAND ${HAWSER_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/isolated_policy_test.py ${PROJECT_BINARY_DIR}
          $<TARGET_FILE:hawser_policy_drr>)
set_tests_properties(isolated_policy_killed PROPERTIES LABELS integration TIMEOUT 300
  ENVIRONMENT "${HAWSER_TEST_ENVIRONMENT}")
add_test(NAME max_share_alone
  COMMAND ${HAWSER_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/max_share_test.py ${PROJECT_BINARY_DIR})
set_tests_properties(max_share_alone PROPERTIES LABELS integration TIMEOUT 300
  ENVIRONMENT "${HAWSER_TEST_ENVIRONMENT}")
