# Shared libraries that unmodified programs load in place of the system's, all in <build>/lib.
set(TCASIM_LIBRARIES ${CMAKE_BINARY_DIR}/lib)

# tcasim_dropin(name SONAME libibverbs.so.1 MAP libibverbs.map FOLDER ... WHOLE ... USES ... LIBRARIES ... SOURCES ...)
#   WHOLE    rooms whose functions programs call: all of them come with it. What those use comes as far as it is used
#   USES     rooms of which its own sources see the headers as well
# Only what the map names can be seen. FOLDER: where it is put.
function(tcasim_dropin name)
    cmake_parse_arguments(DROPIN "" "SONAME;MAP;FOLDER" "SOURCES;LIBRARIES;WHOLE;USES" ${ARGN})
    add_library(${name} MODULE ${DROPIN_SOURCES} ${DROPIN_MAP})
    foreach(used ${DROPIN_WHOLE} ${DROPIN_USES})
        string(REPLACE "/" "_" room ${used})
        target_link_libraries(${name} PRIVATE ${room})
        if(used IN_LIST DROPIN_WHOLE)
            target_sources(${name} PRIVATE $<TARGET_OBJECTS:${room}>)
        endif()
    endforeach()
    target_link_libraries(${name} PRIVATE ${DROPIN_LIBRARIES})
    # The library stays loaded after a plug-in that loaded it is unloaded, because the process still calls functions in
    # it: those of its threads, and that of attach_progress_set.
    target_link_options(${name} PRIVATE -Wl,-soname,${DROPIN_SONAME} -Wl,-z,now -Wl,-z,defs -Wl,-z,nodelete
                        -Wl,--version-script,${DROPIN_MAP})
    set_target_properties(${name} PROPERTIES LINKER_LANGUAGE C PREFIX "" SUFFIX "" OUTPUT_NAME ${DROPIN_SONAME}
        LIBRARY_OUTPUT_DIRECTORY ${DROPIN_FOLDER} BUILD_RPATH_USE_ORIGIN ON LINK_DEPENDS ${DROPIN_MAP})
    tcasim_strict(${name})
endfunction()

set(TCASIM_IBVERBS_SOURCES
    ${CMAKE_SOURCE_DIR}/verbs-shim/dropin/environment.c ${CMAKE_SOURCE_DIR}/verbs-shim/dropin/kernel_structs.c
    ${CMAKE_SOURCE_DIR}/verbs-shim/dropin/old.c ${CMAKE_SOURCE_DIR}/verbs-shim/dropin/private.c)
set(TCASIM_IBVERBS_MAP ${CMAKE_SOURCE_DIR}/verbs-shim/dropin/libibverbs.map)
