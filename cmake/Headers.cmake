# `ninja headers`: pages of the public headers by Doxygen, in <build>/headers/html. A warning is an error.
set(TCASIM_DOXYGEN_OUTPUT ${CMAKE_BINARY_DIR}/headers)
set(TCASIM_DOXYGEN_INPUT "")
foreach(header ${TCASIM_PROGRAM_HEADERS})
    string(APPEND TCASIM_DOXYGEN_INPUT " \"${CMAKE_SOURCE_DIR}/verbs-shim/${header}\"")
endforeach()
configure_file(cmake/Doxyfile.in ${TCASIM_DOXYGEN_OUTPUT}/Doxyfile @ONLY)
add_custom_target(headers COMMAND doxygen ${TCASIM_DOXYGEN_OUTPUT}/Doxyfile VERBATIM)
