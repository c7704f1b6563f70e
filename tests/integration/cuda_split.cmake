# SPDX-License-Identifier: Apache-2.0
# CUDA launches that wait for a gate, or run in parts: the same results, and the same behaviour among other commands.
if(NOT TARGET hawser_cuda OR NOT TARGET hawser_soft_cuda OR NOT TARGET hawser_backend_cuda)
  return()
endif()

file(GLOB programs CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/cuda_*_test.cc)
foreach(program ${programs})
  get_filename_component(name ${program} NAME_WE)
  foreach(case split:shm:blocks=1 refused:shm:gate,refuse=2 split_refused:tcp:blocks=3,refuse=3)
    string(REPLACE ":" ";" case ${case})
    list(GET case 0 suffix)
    list(GET case 1 transport)
    list(GET case 2 setting)
    set(environment ${HAWSER_TEST_ENVIRONMENT})
    if(setting MATCHES refuse)
      list(APPEND environment HAWSER_TEST_LAUNCHES=6000)  # Half a millisecond each.
    endif()
    add_test(NAME ${name}_${suffix}
      COMMAND ${HAWSER_PYTHON} ${PROJECT_SOURCE_DIR}/tests/support/with_server.py --build ${PROJECT_BINARY_DIR} --cuda
              --transport ${transport} --env HAWSER_CUDA_SPLIT=${setting} -- $<TARGET_FILE:${name}>)
    set_tests_properties(${name}_${suffix} PROPERTIES LABELS integration TIMEOUT ${HAWSER_TIME_LIMIT}
      ENVIRONMENT "${environment}")
  endforeach()
endforeach()

# Programs of nvcc's: all of the tests' and examples', in parts. Launches of one block (asserts, conditionals) and those
# that graphs make stay whole, and so do kernels that launch kernels: of these it is seen that the gate and what waits
# behind it change nothing.
set(examples vector_add mandelbrot pipeline driver_api)
set(runtime asserts boxes conditionals device dynamic faults graphs launches managed rdc sharing streams streams_per_thread
    symbols symbols_fixed textures)
if(HAWSER_NVCC_LEFT_OUT)
  set(names cuda_split_same_shm cuda_split_same_tcp)
  foreach(name ${examples})
    list(APPEND names cuda_example_${name}_split)
  endforeach()
  foreach(name ${runtime})
    list(APPEND names cudart_${name}_split)
  endforeach()
  hawser_left_out(integration "${HAWSER_NVCC_LEFT_OUT}" ${names} cuda_copies_assemble)
  return()
endif()
hawser_nvcc_program(cuda_split_kernels SOURCES cuda_split_kernels.cu)
add_executable(rewrite_kernels ${PROJECT_SOURCE_DIR}/tests/support/rewrite_kernels.cc)
target_link_libraries(rewrite_kernels PRIVATE hawser_options hawser_cuda_slicing)
add_test(NAME cuda_copies_assemble
  COMMAND ${HAWSER_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/cuda_copies_assemble.py --rewrite $<TARGET_FILE:rewrite_kernels> --nvcc ${HAWSER_NVCC}
          ${CMAKE_CURRENT_SOURCE_DIR}/cuda_split_kernels.cu ${CMAKE_CURRENT_SOURCE_DIR}/cudart/symbols.cu
          ${CMAKE_CURRENT_SOURCE_DIR}/cudart/textures.cu ${CMAKE_CURRENT_SOURCE_DIR}/cudart/asserts.cu)
set_tests_properties(cuda_copies_assemble PROPERTIES LABELS integration TIMEOUT ${HAWSER_TIME_LIMIT} SKIP_RETURN_CODE 77)
foreach(transport shm tcp)
  add_test(NAME cuda_split_same_${transport}
    COMMAND ${HAWSER_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/cuda_split_same.py --build ${PROJECT_BINARY_DIR}
            --transport ${transport} --settings off gate gate,refuse=2 gate,refuse=2,cores=1 blocks=1 blocks=3 blocks=7,refuse=3
            --split places --split matmul --split stride --split histogram --split last_done --split greatest
            --split reversed --split guarded --split counted --split weighted --split last_counts --split listed
            --whole addressed --whole timed --whole kept --whole voted --never together --alarm later
            -- ${CMAKE_CURRENT_BINARY_DIR}/cuda_split_kernels)
  set_tests_properties(cuda_split_same_${transport} PROPERTIES LABELS integration TIMEOUT ${HAWSER_TIME_LIMIT} SKIP_RETURN_CODE 77
    ENVIRONMENT "${HAWSER_TEST_ENVIRONMENT}")
endforeach()

# The same kernels as nvcc's users have them, machine code with its text: of the code parts cannot be made, of the text
# they can, which comes to the server after the code. The driver takes machine code, in so far as it runs its text.
set(text ${CMAKE_CURRENT_BINARY_DIR}/cuda_split_kernels.ptx)
add_custom_command(OUTPUT ${text}
  COMMAND ${HAWSER_NVCC} -std=c++17 -O2 -ptx -arch=compute_90 -o ${text} ${CMAKE_CURRENT_SOURCE_DIR}/cuda_split_kernels.cu
  DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/cuda_split_kernels.cu VERBATIM COMMENT "nvcc -ptx cuda_split_kernels")
add_custom_target(nvcc_cuda_split_text ALL DEPENDS ${text})
hawser_nvcc_program(cuda_split_code SOURCES cuda_split_kernels.cu ARCH compute_90 CODE [compute_90,sm_90])
foreach(transport shm tcp)
  add_test(NAME cuda_split_code_${transport}
    COMMAND ${HAWSER_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/cuda_split_same.py --build ${PROJECT_BINARY_DIR}
            --transport ${transport} --settings off gate blocks=1 blocks=7,refuse=3
            --server-arg=--cuda-driver --server-arg=$<TARGET_FILE:cubin_driver> --server-env HAWSER_TEST_CUBIN_TEXT=${text}
            --split places --split matmul --split histogram --split guarded --split counted --split weighted
            --whole addressed --whole timed --never together -- ${CMAKE_CURRENT_BINARY_DIR}/cuda_split_code)
  set_tests_properties(cuda_split_code_${transport} PROPERTIES LABELS integration TIMEOUT ${HAWSER_TIME_LIMIT} SKIP_RETURN_CODE 77
    ENVIRONMENT "${HAWSER_TEST_ENVIRONMENT}")
endforeach()
foreach(name ${examples})
  add_test(NAME cuda_example_${name}_split
    COMMAND ${HAWSER_PYTHON} ${PROJECT_SOURCE_DIR}/tests/support/cuda_program.py --build ${PROJECT_BINARY_DIR}
            --way shm --env HAWSER_CUDA_SPLIT=blocks=5,refuse=4
            --expect ${PROJECT_SOURCE_DIR}/examples/cuda/expected/${name}.txt -- ${PROJECT_BINARY_DIR}/examples/cuda/${name})
  set_tests_properties(cuda_example_${name}_split PROPERTIES LABELS integration TIMEOUT ${HAWSER_TIME_LIMIT} SKIP_RETURN_CODE 77)
endforeach()
foreach(name ${runtime})
  add_test(NAME cudart_${name}_split
    COMMAND ${HAWSER_PYTHON} ${PROJECT_SOURCE_DIR}/tests/support/cuda_program.py --build ${PROJECT_BINARY_DIR}
            --way shm --env HAWSER_CUDA_SPLIT=blocks=1,refuse=3
            -- ${CMAKE_CURRENT_BINARY_DIR}/cudart/cudart_${name})
  set_tests_properties(cudart_${name}_split PROPERTIES LABELS integration TIMEOUT ${HAWSER_TIME_LIMIT} SKIP_RETURN_CODE 77)
endforeach()
