# tcasim_test(tests/kernel ROOMS sim/kernel ... SOURCES test_event.c ...)
# One GoogleTest program a room, named after its folder; each of its tests is a test of ctest's. SLOW: a filter of
# GoogleTest's, for those that run in release only (the label `slow`). With sanitizers a quarter of a room's tests is one, since
# a program's start takes longer there than most tests.
function(tcasim_test path)
    cmake_parse_arguments(TEST "" "SLOW" "ROOMS;SOURCES;LIBRARIES" ${ARGN})
    string(REPLACE "/" "_" name ${path})
    list(TRANSFORM TEST_SOURCES PREPEND ${CMAKE_SOURCE_DIR}/${path}/)
    add_executable(${name} ${TEST_SOURCES})
    target_include_directories(${name} PRIVATE ${TCASIM_INCLUDE_ROOT}/tests_shim ${TCASIM_INCLUDE_ROOT}/tests_support)
    foreach(used ${TEST_ROOMS})
        string(REPLACE "/" "_" used_name ${used})
        target_link_libraries(${name} PRIVATE ${used_name})
    endforeach()
    target_link_libraries(${name} PRIVATE tests_shim sim_kernel ${TEST_LIBRARIES})
    target_link_options(${name} PRIVATE -fno-lto)
    target_compile_definitions(${name} PRIVATE TCASIM_SOURCE_DIR="${CMAKE_SOURCE_DIR}"
                                               TCASIM_BINARY_DIR="${CMAKE_BINARY_DIR}")
    tcasim_strict(${name})
    if(TCASIM_SANITIZE)
        foreach(quarter 0 1 2 3)
            add_test(NAME Sanitized.${name}.${quarter} COMMAND ${name} --gtest_filter=-${TEST_SLOW} --gtest_brief=1)
            set_tests_properties(Sanitized.${name}.${quarter} PROPERTIES TIMEOUT 900
                                 ENVIRONMENT "GTEST_TOTAL_SHARDS=4;GTEST_SHARD_INDEX=${quarter}")
        endforeach()
        return()
    endif()
    gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST TEST_FILTER "-${TEST_SLOW}" PROPERTIES TIMEOUT 300)
    if(TEST_SLOW)
        gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST TEST_FILTER "${TEST_SLOW}"
                             PROPERTIES TIMEOUT 300 LABELS slow)
    endif()
endfunction()

# The shim: C tests on one side, GoogleTest on the other.
tcasim_room_view(tests_shim tests/shim)
add_library(tests_shim STATIC ${CMAKE_SOURCE_DIR}/tests/shim/test_main.cpp ${CMAKE_SOURCE_DIR}/tests/shim/checks.cpp
                              ${CMAKE_SOURCE_DIR}/tests/shim/trace.cpp)
target_include_directories(tests_shim PRIVATE ${TCASIM_INCLUDE_ROOT}/tests_shim ${TCASIM_INCLUDE_ROOT}/sim_kernel)
target_link_libraries(tests_shim PUBLIC GTest::gtest)
tcasim_strict(tests_shim)

# Fixtures that several test rooms use: a room lists those that it needs in SOURCES as ../support/hca_fixture.c.
tcasim_room_view(tests_support tests/support)
