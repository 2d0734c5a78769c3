# A room is one folder of sources with the list of rooms it may use. The rooms' headers are included by their path
# from the root ("sim/kernel/sim.h"), and each room offers only its own folder to those that use it, so that an
# include of a room that is not in USES does not compile.

find_package(PkgConfig REQUIRED)

set(TCASIM_INCLUDE_ROOT ${CMAKE_BINARY_DIR}/include)

# What runs for every packet is optimised across its files when the program is linked; tests take the same objects as
# they are.
set(TCASIM_HOT_ROOMS sim/kernel models/flow models/pcie models/host models/peach2)
set(TCASIM_HOT_OPTIONS $<$<CONFIG:Release>:-flto -ffat-lto-objects>)

# tcasim_room(sim/kernel USES ... SOURCES ... LIBRARIES ...)
#   USES       rooms by path; what they use is not passed on
#   LIBRARIES  outside libraries, private to the room
#   PROGRAM_HEADERS  its users include its headers as programs do: <cuda_runtime.h>
#   SHARED     shared libraries are made of it as well
function(tcasim_room path)
    cmake_parse_arguments(ROOM "PROGRAM_HEADERS;SHARED" "" "USES;SOURCES;LIBRARIES" ${ARGN})
    string(REPLACE "/" "_" name ${path})
    list(TRANSFORM ROOM_SOURCES PREPEND ${CMAKE_SOURCE_DIR}/${path}/)
    add_library(${name} STATIC ${ROOM_SOURCES})
    tcasim_room_view(${name} ${path})
    target_include_directories(${name} PUBLIC ${TCASIM_INCLUDE_ROOT}/${name})
    if(ROOM_PROGRAM_HEADERS)
        target_include_directories(${name} INTERFACE ${TCASIM_INCLUDE_ROOT}/${name}/${path})
        set_property(GLOBAL PROPERTY TCASIM_PROGRAM_HEADERS_${name} ${TCASIM_INCLUDE_ROOT}/${name}/${path})
    endif()
    if(ROOM_SHARED)
        set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE ON)
        target_compile_options(${name} PRIVATE -fno-semantic-interposition)
    endif()
    tcasim_includes(${name} ${ROOM_USES})
    foreach(used ${ROOM_USES})
        string(REPLACE "/" "_" used_name ${used})
        target_link_libraries(${name} INTERFACE ${used_name})
    endforeach()
    target_link_libraries(${name} PRIVATE ${ROOM_LIBRARIES})
    if(path IN_LIST TCASIM_HOT_ROOMS)
        target_compile_options(${name} PRIVATE "${TCASIM_HOT_OPTIONS}")
    endif()
    tcasim_strict(${name})
endfunction()

# tcasim_includes(tcasim-world verbs-shim/world ...): a target that is no room sees the headers of these rooms.
function(tcasim_includes target)
    foreach(used ${ARGN})
        string(REPLACE "/" "_" used_name ${used})
        get_property(headers GLOBAL PROPERTY TCASIM_PROGRAM_HEADERS_${used_name})
        target_include_directories(${target} PRIVATE ${TCASIM_INCLUDE_ROOT}/${used_name} ${headers})
        if(used STREQUAL "rtl")
            add_dependencies(${target} rtl)
        endif()
    endforeach()
endfunction()

# tcasim_header_room(verbs-shim/backend): a room of headers alone.
function(tcasim_header_room path)
    string(REPLACE "/" "_" name ${path})
    add_library(${name} INTERFACE)
    tcasim_room_view(${name} ${path})
    target_include_directories(${name} INTERFACE ${TCASIM_INCLUDE_ROOT}/${name})
endfunction()

# The folder as others see it: <build>/include/<room>/<path> -> <source>/<path>
function(tcasim_room_view name path)
    get_filename_component(parent ${path} DIRECTORY)
    file(MAKE_DIRECTORY ${TCASIM_INCLUDE_ROOT}/${name}/${parent})
    file(CREATE_LINK ${CMAKE_SOURCE_DIR}/${path} ${TCASIM_INCLUDE_ROOT}/${name}/${path} SYMBOLIC)
endfunction()

# The warnings every target of ours is built with.
function(tcasim_strict target)
    target_compile_options(${target} PRIVATE
        -Wall -Wextra -Wshadow -Wpointer-arith -Wvla -Werror=implicit-fallthrough
        $<$<COMPILE_LANGUAGE:C>:-Wstrict-prototypes -Wmissing-prototypes -Werror=implicit-function-declaration>
        $<$<BOOL:${TCASIM_WERROR}>:-Werror>)
endfunction()
