#!/bin/sh
# headers.sh <Doxyfile>: Doxygen has no warning about the public headers; with the same settings it refuses a header in
# which a function, a parameter, a result, a field or a constant has no comment. Debian's does not check values of an
# enum. Status 77: there is no Doxygen.
set -eu
settings=$1
command -v doxygen >/dev/null || {
    echo 'skipped: there is no doxygen'
    exit 77
}
doxygen "$settings"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# rendered <text of a header>
rendered() {
    printf '/// @file\n/// A header.\n\n%s\n' "$1" >"$work/header.h"
    { cat "$settings"; printf 'INPUT = "%s/header.h"\nOUTPUT_DIRECTORY = "%s"\n' "$work" "$work"; } >"$work/Doxyfile"
    doxygen "$work/Doxyfile" >"$work/log" 2>&1
}
rendered '/// One.
/// @param a the first
/// @return 0
int one(int a);' || {
    cat "$work/log"
    echo 'FAILED: a header with all comments is refused'
    exit 1
}
# refused <what> <text of a header>
refused() {
    ! rendered "$2" || {
        echo "FAILED: $1 without a comment is accepted"
        exit 1
    }
}
refused 'a function' 'int one(void);'
refused 'a parameter' '/// One.
/// @param a the first
/// @return 0
int one(int a, int b);'
refused 'a result' '/// One.
int one(void);'
refused 'a field' '/// One.
struct one { int first; };'
refused 'a constant' '#define ONE 1'
