# Writes the manual pages of PROGRAM, and the changelog, compressed without a time, into FOLDER.
file(REMOVE_RECURSE ${FOLDER}) # pages of commands that are gone
file(MAKE_DIRECTORY ${FOLDER})
execute_process(COMMAND ${PROGRAM} help --words OUTPUT_VARIABLE commands COMMAND_ERROR_IS_FATAL ANY)
string(REGEX REPLACE "\n$" "" commands "${commands}")
string(REPLACE "\n" ";" commands "${commands}")
execute_process(COMMAND ${PROGRAM} help --man OUTPUT_FILE ${FOLDER}/tcasim.1 COMMAND_ERROR_IS_FATAL ANY)
foreach(command ${commands})
    execute_process(COMMAND ${PROGRAM} help --man ${command} OUTPUT_FILE ${FOLDER}/tcasim-${command}.1
                    COMMAND_ERROR_IS_FATAL ANY)
endforeach()
execute_process(COMMAND ${PROGRAM} help --man scenario OUTPUT_FILE ${FOLDER}/tcasim-scenario.5 COMMAND_ERROR_IS_FATAL ANY)
file(GLOB pages ${FOLDER}/*.[15])
execute_process(COMMAND gzip -9nf ${pages} COMMAND_ERROR_IS_FATAL ANY)
configure_file(${SOURCE}/CHANGELOG.md ${FOLDER}/../CHANGELOG.md COPYONLY)
# Debian's tools want a changelog of their own; its date is that of the commit.
execute_process(COMMAND git -C ${SOURCE} log -1 "--format=%aD" OUTPUT_VARIABLE date OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(NOT date)
    set(date "Thu, 01 Jan 1970 00:00:00 +0000")
endif()
file(WRITE ${FOLDER}/../changelog "tcasim (${VERSION}) unstable; urgency=medium

  * See CHANGELOG.md.gz.

 -- The tcasim authors <tcasim@example.org>  ${date}
")
execute_process(COMMAND gzip -9nf ${FOLDER}/../CHANGELOG.md ${FOLDER}/../changelog COMMAND_ERROR_IS_FATAL ANY)
