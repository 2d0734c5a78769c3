#!/bin/sh
# fresh.sh <source tree> [root|job]: the first steps of a user with a bare Debian and a clone. Makes a minimal root from
# this machine's own package sources and settings. In it, in a path with a space: an ordinary user without sudo gets the
# list of missing packages; root's first command (the README's, or with "job" the CI job's) installs exactly these,
# builds and plots; the ordinary user builds again and runs both. A compiler cache makes the second build short. Status
# 77: not possible on this machine (the reason is printed).
set -eu
source=$1
first=${2:-root}
tree='/srv/a clone/tcasim'
figure=hanawa2013-fig7-8-pingpong

skip() {
    printf 'skipped: %s\n' "$*"
    exit 77
}

fail() {
    printf 'FAILED: %s\n' "$*"
    exit 1
}

[ "$(id -u)" = 0 ] || skip 'only root makes a root'
[ -e /etc/debian_version ] || skip 'this is not Debian'
for program in mmdebstrap git unshare; do
    command -v $program >/dev/null || skip "there is no $program"
done
. /etc/os-release
[ -n "${VERSION_CODENAME:-}" ] || skip 'this Debian has no code name'

root=$(mktemp -d)
child=
# Processes in it end with its name space, and so do all mounts.
trap '[ -z "$child" ] || kill -KILL "$child" 2>/dev/null; wait; rm -rf --one-file-system "$root"' EXIT
trap 'exit 1' INT TERM HUP

mkdir "$root/probe"
unshare -mpf sh -c "mount -t proc proc '$root/probe' && mount --rbind /dev '$root/probe'" 2>/dev/null ||
    skip 'this container lets nobody mount'
export GIT_CONFIG_GLOBAL="$root/gitconfig" # allows a clone that belongs to another user
git config --global safe.directory '*'
git -C "$source" rev-parse -q --verify HEAD >/dev/null || skip "$source is no clone"

# --- the machine ------------------------------------------------------------------------------------------------------

set --
for file in /etc/apt/apt.conf /etc/apt/apt.conf.d/*; do
    if grep -qs '^ *Acquire' "$file"; then # proxies, credentials, and tolerance of the clock
        set -- "$@" --aptopt="$file"
    fi
done
sources=
for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources; do
    [ ! -s "$file" ] || sources="$sources $file"
done
# shellcheck disable=SC2086 # a list of files
if ! mmdebstrap --quiet --variant=apt --mode=root --include=ccache "$@" "$VERSION_CODENAME" "$root/machine" $sources \
    >"$root/log" 2>&1; then
    mkdir -p "$root/lists/partial"
    apt-get -o Dir::State::lists="$root/lists" -o APT::Update::Error-Mode=any update >/dev/null 2>&1 ||
        skip 'no package source answers'
    cat "$root/log"
    fail 'mmdebstrap'
fi
for path in auth.conf auth.conf.d keyrings; do
    [ ! -e "/etc/apt/$path" ] || cp -a "/etc/apt/$path" "$root/machine/etc/apt/"
done
[ ! -e /etc/resolv.conf ] || cp -L /etc/resolv.conf "$root/machine/etc/resolv.conf"
git clone -q --no-local --depth 1 "file://$(cd "$source" && pwd)" "$root/machine$tree"
chroot "$root/machine" useradd -m visitor
mkdir -m 777 "$root/machine/var/ccache"

# inside <user> <command>: in the tree, with processes and mounts that end with the command.
inside() {
    # shellcheck disable=SC2016 # the inner shells expand
    env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/tmp LC_ALL=C.UTF-8 ${http_proxy:+"http_proxy=$http_proxy"} \
        ${https_proxy:+"https_proxy=$https_proxy"} CCACHE_DIR=/var/ccache CCACHE_UMASK=000 CMAKE_C_COMPILER_LAUNCHER=ccache \
        CMAKE_CXX_COMPILER_LAUNCHER=ccache ROOT="$root/machine" AS="$1" TREE="$tree" COMMAND="$2" \
        unshare -mpf --kill-child sh -c '
            mount -t proc proc "$ROOT/proc" && mount --rbind /dev "$ROOT/dev" && mount -t sysfs sysfs "$ROOT/sys" &&
                exec chroot "$ROOT" setpriv --reuid "$AS" --regid "$AS" --init-groups sh -c "cd \"\$TREE\" && \$COMMAND"
        ' </dev/null &
    child=$!
    status=0
    wait "$child" || status=$?
    child=
    return $status
}

# Checks that the results are complete and the plot shows curves.
expect_plot() {
    results=$root/machine$tree/results/$figure
    [ "$(wc -l <"$results/data.csv")" -gt 20 ] || fail "data.csv has too few rows"
    head -n 1 "$results/data.csv" | grep -q 'latency_us' || fail "data.csv has no column of latencies"
    [ "$(grep -c '<path' "$results/plot.svg")" -gt 10 ] || fail "plot.svg shows nothing"
    rm -rf "$results"
}

# --- what happens there -----------------------------------------------------------------------------------------------

chroot "$root/machine" chown -R visitor: "$tree"
refused=0
inside visitor './tcasim run --quiet' >"$root/output" 2>&1 || refused=$?
cat "$root/output"
[ $refused = 2 ] || fail "status $refused instead of 2 where packages are missing"
missing=$(sed -n 's/^tcasim: these Debian packages are missing: \(.*\) (not root.*/\1/p' "$root/output")
[ -n "$missing" ] || fail 'no packages were named'

command='./tcasim run --quiet'
[ "$first" = root ] || command=scenarios/attached/ci/job.sh
inside root "$command" >"$root/output" 2>&1 || {
    cat "$root/output"
    fail "root's first command: $command"
}
cat "$root/output"
installed=$(sed -n 's/^tcasim: installing //p' "$root/output")
[ "$installed" = "$missing" ] || fail "root was given '$installed', the visitor was asked for '$missing'"
[ "$first" != root ] || expect_plot
inside root 'ninja -C build/release -t targets all' >"$root/targets" || fail 'the list of targets'
grep -q 'tcasim: ' "$root/targets" || fail 'no target is called tcasim'
! grep '^tests/' "$root/targets" || fail 'tests are configured where only running was asked for'

rm -rf "$root/machine$tree/build"
chroot "$root/machine" chown -R visitor: "$tree"
inside visitor './tcasim run --quiet' || fail 'the first command of an ordinary user with these packages'
expect_plot
inside visitor scenarios/attached/ci/job.sh || fail 'the CI job of an ordinary user'
printf 'tcasim runs on a bare %s %s\n' "$ID" "$VERSION_CODENAME"
