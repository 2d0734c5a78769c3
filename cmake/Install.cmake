# `cmake --install`, and packages by `cpack -G DEB`: tcasim, and tcasim-dev for programs on the TCA library.
#
# The program is lib/tcasim/tcasim with a link in bin; its data are in share/tcasim and the libraries that programs load in
# lib/tcasim/lib, both found relative to it. So a prefix can be moved.
#
# The folders are fixed, because the program and the pkg-config files find the others relative to themselves.
set(home share/tcasim)
set(program lib/tcasim)
set(documents share/doc/tcasim)
set(runtime COMPONENT tcasim)
set(development COMPONENT tcasim-dev)

install(TARGETS tcasim RUNTIME DESTINATION ${program} ${runtime})
install(DIRECTORY ${CMAKE_BINARY_DIR}/lib/ DESTINATION ${program}/lib ${runtime} USE_SOURCE_PERMISSIONS
        PATTERN pkgconfig EXCLUDE PATTERN *.so* EXCLUDE)
install(DIRECTORY ${CMAKE_BINARY_DIR}/lib/ DESTINATION ${program}/lib ${runtime}
        FILE_PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ FILES_MATCHING PATTERN pkgconfig EXCLUDE PATTERN *.so*)
install(CODE "
    file(GLOB files \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${program}/lib/*\")
    if(CMAKE_INSTALL_DO_STRIP)
        foreach(file \${files}) # scripts are refused, and stay as they are
            execute_process(COMMAND ${CMAKE_STRIP} --strip-unneeded \${file} ERROR_QUIET)
        endforeach()
    endif()
    file(MAKE_DIRECTORY \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/bin\")
    file(CREATE_LINK ../${program}/tcasim \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/bin/tcasim\" SYMBOLIC)" ${runtime})
install(DIRECTORY configs DESTINATION ${home} ${runtime})
install(DIRECTORY scenarios DESTINATION ${home} ${runtime} USE_SOURCE_PERMISSIONS PATTERN CMakeLists.txt EXCLUDE PATTERN invalid EXCLUDE)
install(FILES results/reference/papers.csv DESTINATION ${home}/results/reference ${runtime})
install(FILES docs/accuracy.md DESTINATION ${home}/docs ${runtime}) # `tcasim report` shows its paragraphs
install(DIRECTORY docs/ DESTINATION ${documents} ${runtime} PATTERN site EXCLUDE)
install(FILES README.md DESTINATION ${documents} ${runtime})
install(FILES LICENSE DESTINATION ${documents} RENAME copyright ${runtime})
install(FILES cmake/install/tcasim.bash DESTINATION share/bash-completion/completions
        RENAME tcasim ${runtime})
install(FILES cmake/install/_tcasim DESTINATION share/zsh/vendor-completions ${runtime})

# Manual pages, from the tables of options, made when they are installed.
set(manual ${CMAKE_BINARY_DIR}/man)
install(CODE "
    execute_process(COMMAND ${CMAKE_COMMAND} -DPROGRAM=$<TARGET_FILE:tcasim> -DFOLDER=${manual} -DVERSION=${PROJECT_VERSION}
                            -DSOURCE=${CMAKE_SOURCE_DIR} -P ${CMAKE_SOURCE_DIR}/cmake/install/manual.cmake
                    COMMAND_ERROR_IS_FATAL ANY)" ${runtime})
install(DIRECTORY ${manual}/ DESTINATION share/man/man1 ${runtime} FILES_MATCHING PATTERN *.1.gz)
install(DIRECTORY ${manual}/ DESTINATION share/man/man5 ${runtime} FILES_MATCHING PATTERN *.5.gz)
install(FILES ${CMAKE_BINARY_DIR}/CHANGELOG.md.gz ${CMAKE_BINARY_DIR}/changelog.gz DESTINATION ${documents} ${runtime})

# Programs on the TCA library: headers, pkg-config files, a CMake package.
foreach(header ${TCASIM_PROGRAM_HEADERS})
    install(FILES verbs-shim/${header} DESTINATION include/tcasim ${development})
endforeach()
function(install_pc name)
    set(TCASIM_PC_PREFIX "prefix=\${pcfiledir}/../..\n")
    set(TCASIM_PROGRAM_INCLUDE "\${prefix}/include/tcasim")
    set(TCASIM_LIBRARIES "\${prefix}/${program}/lib")
    configure_file(verbs-shim/dropin/${name}.pc.in ${CMAKE_BINARY_DIR}/install/${name}.pc @ONLY)
    install(FILES ${CMAKE_BINARY_DIR}/install/${name}.pc DESTINATION share/pkgconfig ${development})
endfunction()
install_pc(acp)
install_pc(libtcasim)
install_pc(tcasim)
configure_file(cmake/install/tcasim-config.cmake.in ${CMAKE_BINARY_DIR}/install/tcasim-config.cmake @ONLY)
include(CMakePackageConfigHelpers)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/install/tcasim-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/install/tcasim-config.cmake ${CMAKE_BINARY_DIR}/install/tcasim-config-version.cmake
        DESTINATION lib/cmake/tcasim ${development})
install(FILES LICENSE DESTINATION share/doc/tcasim-dev RENAME copyright ${development})
install(FILES ${CMAKE_BINARY_DIR}/changelog.gz DESTINATION share/doc/tcasim-dev ${development})

# --- packages ---------------------------------------------------------------------------------------------------------

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME tcasim)
set(CPACK_PACKAGE_CONTACT "The tcasim authors <tcasim@example.org>")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_COMPONENTS_ALL tcasim tcasim-dev)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_TCASIM_PACKAGE_NAME tcasim)
set(CPACK_DEBIAN_TCASIM_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${CMAKE_BINARY_DIR}/lib)
set(CPACK_DEBIAN_TCASIM_PACKAGE_DEPENDS "gnuplot-nox | gnuplot")
set(CPACK_DEBIAN_TCASIM_PACKAGE_RECOMMENDS "perftest, ibverbs-utils")
set(CPACK_COMPONENT_TCASIM_DESCRIPTION
    "full-system simulator of the TCA/PEACH2 fabric\nRuns unmodified programs on libibverbs, MPI and the TCA library in\nsimulated time, on a cycle-approximate model of PEACH2 boards, PCI\nExpress and InfiniBand.")
set(CPACK_DEBIAN_TCASIM-DEV_PACKAGE_NAME tcasim-dev)
set(CPACK_DEBIAN_TCASIM-DEV_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_TCASIM-DEV_PACKAGE_DEPENDS "tcasim (= ${PROJECT_VERSION})")
set(CPACK_COMPONENT_TCASIM-DEV_DESCRIPTION
    "headers of the TCA library for the tcasim simulator\nFor programs on the TCA library, ACP and the CUDA memory calls that\ntcasim runs.")
include(CPack)
