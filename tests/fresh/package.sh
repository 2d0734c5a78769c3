#!/bin/sh
# package.sh <build>: the Debian packages of a build, in a minimal root where nothing else of it is: lintian finds no
# error; root installs them with their dependencies; an ordinary user runs a scenario, perftest as attached programs, the
# report, and a program compiled against tca.h; after removal nothing is left. Status 77: not possible here.
set -eu
build=$1
tree=/home/visitor
needs='cpack dpkg-shlibdeps'

# shellcheck source=tests/fresh/machine.sh
. "$(dirname "$0")/machine.sh"

cpack -G DEB --config "$build/CPackConfig.cmake" -B "$root/packages" >"$root/log" 2>&1 || {
    cat "$root/log"
    fail 'cpack'
}
if command -v lintian >/dev/null; then
    lintian --allow-root --tag-display-limit 0 "$root"/packages/*.deb >"$root/lint" 2>&1 || true
    cat "$root/lint"
    ! grep '^E: ' "$root/lint" || fail 'lintian finds errors'
fi
for package in "$root"/packages/*.deb; do
    dpkg-deb -x "$package" "$root/unpacked"
done
! grep -rlF "$(cd "$build" && pwd)" "$root/unpacked" || fail 'files have the path of the build'
mkdir -p "$root/machine/packages"
cp "$root"/packages/*.deb "$root/machine/packages/"
chroot "$root/machine" useradd -m visitor
inside root 'apt-get update -qq' >"$root/log" 2>&1 || true
inside root 'apt-get install -y --no-install-recommends gcc libc6-dev pkg-config perftest' >"$root/log" 2>&1 || {
    cat "$root/log"
    fail 'a compiler and perftest'
}
inside root 'apt-get install -y --no-install-recommends /packages/*.deb' >"$root/log" 2>&1 || {
    cat "$root/log"
    fail 'the packages'
}
inside root 'dpkg -L tcasim tcasim-dev' | sed -n '/tcasim/p' >"$root/files" # folders of others are not its own

cat >"$root/machine$tree/program.c" <<'END'
#include <stdio.h>
#include <tca.h>

int main(void)
{
    tcaresult result = tcaInit();
    printf("tcaInit: %d\n", (int)result);
    return 0;
}
END
cat >"$root/machine$tree/steps.sh" <<'END'
set -eux
tcasim --version
ls /usr/share/man/man1/tcasim-run.1.gz
tcasim run --quiet --set fidelity=flow
[ "$(wc -l <results/hanawa2013-fig7-8-pingpong/data.csv)" -gt 20 ]
tcasim report
test -s results/report.html
scenarios=/usr/share/tcasim/scenarios
tcasim exec $scenarios/smoke/verbs-ibsim0.yaml --on node0 ib_send_lat --on node1 'ib_send_lat node0' >perftest
grep '^ 2  *1000 ' perftest
cc program.c -o program $(pkg-config --cflags --libs tcasim)
tcasim exec $scenarios/smoke/verbs-tca0.yaml --on node0 ./program >program.out
grep -x 'tcaInit: 0' program.out
END
chroot "$root/machine" chown -R visitor: "$tree"
inside visitor 'sh steps.sh' || fail 'the steps of a user'

inside root 'dpkg --purge tcasim-dev tcasim' >"$root/log" 2>&1 || fail 'the removal'
[ "$(wc -l <"$root/files")" -gt 100 ] || fail 'the packages have too few files'
while read -r path; do
    [ ! -e "$root/machine$path" ] || fail "the removal leaves $path"
done <"$root/files"
printf 'the packages work on a bare %s %s\n' "$ID" "$VERSION_CODENAME"
