# SPDX-License-Identifier: Apache-2.0
# What `cmake --install` puts where. Included last, when all targets exist.
#   <prefix>/bin/hawser, hawserd            <prefix>/libexec/hawser/hawser-worker, hawser-admin, hawser-bench-opencl,
#                                           hawser-policy-host
#   <prefix>/lib/libhawser_opencl.so        <prefix>/share/hawser/icd/hawser.icd
#   <prefix>/lib/hawser/guest, soft: CUDA's libraries under CUDA's names; only `hawser run` points programs there
include(GNUInstallDirs)

install(TARGETS hawser hawserd RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(TARGETS hawser-admin hawser-bench-opencl hawser-worker RUNTIME DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/hawser)
if(TARGET hawser-bench-cuda)
  install(TARGETS hawser-bench-cuda RUNTIME DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/hawser)
endif()
install(TARGETS hawser_opencl_icd LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
# The files as they are in the build tree, links included: their names are CUDA's and not the targets'.
foreach(part guest soft)
  install(DIRECTORY ${PROJECT_BINARY_DIR}/${part}/ DESTINATION ${CMAKE_INSTALL_LIBDIR}/hawser/${part}
    USE_SOURCE_PERMISSIONS OPTIONAL FILES_MATCHING PATTERN "lib*.so*")
endforeach()

# In a directory of its own: `hawser run` points the OpenCL loader there, and programs that were not started by it do
# not see the platform. The path is the final one, also when DESTDIR stages the files elsewhere.
file(WRITE ${PROJECT_BINARY_DIR}/install/hawser.icd "${CMAKE_INSTALL_FULL_LIBDIR}/libhawser_opencl.so\n")
install(FILES ${PROJECT_BINARY_DIR}/install/hawser.icd DESTINATION ${CMAKE_INSTALL_DATADIR}/hawser/icd)
if(EXISTS ${PROJECT_SOURCE_DIR}/deploy/hawserd.toml)
  install(FILES ${PROJECT_SOURCE_DIR}/deploy/hawserd.toml DESTINATION ${CMAKE_INSTALL_DOCDIR})
endif()
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/README.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
