#!/bin/sh
# symbols.sh <library> <list>: the library has exactly these symbols, each in its version.
# The list is named after the library: libNAME.symbols. If the system has that library of rdma-core 44, the list is also
# compared with it.
set -eu
export LC_ALL=C
symbols() {
    nm -D --defined-only --with-symbol-versions "$1" | awk '$2 != "A" {print $3, $2 ~ /^[TW]$/ ? "function" : "data"}' | sort
}
symbols "$1" | diff "$2" - || {
    echo "$1 has other symbols than $2 (<: missing, >: too many)" >&2
    exit 1
}
name=$(basename "$2" .symbols)
system=/usr/lib/x86_64-linux-gnu/$name.so.1
if [ "$(dpkg-query -W -f '${Version}' "${name}1" 2>/dev/null | cut -d. -f1)" = 44 ] && [ -e "$system" ]; then
    symbols "$system" | diff "$2" - || {
        echo "$2 is not what Debian's library has" >&2
        exit 1
    }
fi
