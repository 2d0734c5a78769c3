# cmake -DSOURCE=<tree> -DHEADER=<file> -P revision.cmake
# Writes the git revision of the tree into a C header if it changed, with "-modified" appended if sources differ from
# it.
set(revision unknown)
find_program(GIT git)
if(GIT AND EXISTS ${SOURCE}/.git)
    # A tree that belongs to another user, as in a container's mount, also has a revision.
    set(git ${GIT} -c safe.directory=* -C ${SOURCE})
    execute_process(COMMAND ${git} rev-parse --verify HEAD
        OUTPUT_VARIABLE answer RESULT_VARIABLE failed OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    if(NOT failed AND answer MATCHES "^[0-9a-f]+$")
        set(revision ${answer})
        execute_process(COMMAND ${git} diff --quiet HEAD -- sim models rtl verbs-shim scenarios/workloads
            RESULT_VARIABLE modified OUTPUT_QUIET ERROR_QUIET)
        if(modified)
            string(APPEND revision -modified)
        endif()
    endif()
endif()
set(text "#pragma once\n\n#define TCASIM_REVISION \"${revision}\"\n")
set(before "")
if(EXISTS ${HEADER})
    file(READ ${HEADER} before)
endif()
if(NOT before STREQUAL text)
    file(WRITE ${HEADER} "${text}")
endif()
