#!/bin/sh
# fresh.sh <source tree> [root|user|job]: what somebody meets who has a bare Debian and a clone. Makes a minimal root from this
# machine's own package sources, and there, in a path with a space in it: an ordinary user without sudo is told which packages
# are missing; root's first command installs exactly these, builds and plots; that user runs it as well, and the CI job of
# scenarios/attached/ci. With "user" the packages are installed by hand, and the ordinary user builds; with "job" the CI job is
# root's first command.
# Status 77: this machine cannot (the reason is printed).
set -eu
source=$1
builder=${2:-root}
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
unshare -mpf true 2>/dev/null || skip 'this container lets nobody mount'
git -c safe.directory='*' -C "$source" rev-parse -q --verify HEAD >/dev/null 2>&1 || skip "$source is no clone"

root=$(mktemp -d)
trap 'rm -rf --one-file-system "$root"' EXIT
trap 'exit 1' INT TERM HUP

# --- the machine ------------------------------------------------------------------------------------------------------

. /etc/os-release
set --
for file in /etc/apt/apt.conf.d/*; do
    if grep -qs '^ *Acquire' "$file"; then # proxies, credentials, and how far to trust the clock
        set -- "$@" --aptopt="$file"
    fi
done
sources=
for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources; do
    [ -s "$file" ] && sources="$sources $file"
done
# shellcheck disable=SC2086 # a list of files
if ! mmdebstrap --quiet --variant=apt --mode=root "$@" "$VERSION_CODENAME" "$root/machine" $sources >"$root/log" 2>&1; then
    mkdir -p "$root/lists/partial"
    apt-get -o Dir::State::lists="$root/lists" -o APT::Update::Error-Mode=any update >/dev/null 2>&1 ||
        skip 'no package source answers'
    cat "$root/log"
    fail 'mmdebstrap'
fi
[ ! -e /etc/resolv.conf ] || cp -L /etc/resolv.conf "$root/machine/etc/resolv.conf"
git -c safe.directory='*' clone -q --no-local --depth 1 "$source" "$root/machine$tree"
chroot "$root/machine" useradd -m visitor

# inside <user> <command>: in the tree, with processes and mounts that end with the command.
inside() {
    # shellcheck disable=SC2016 # the inner shells expand
    env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/tmp LC_ALL=C.UTF-8 ROOT="$root/machine" AS="$1" TREE="$tree" COMMAND="$2" \
        unshare -mpf --kill-child sh -c '
            mount -t proc proc "$ROOT/proc" && mount --rbind /dev "$ROOT/dev" && mount -t sysfs sysfs "$ROOT/sys" &&
                exec chroot "$ROOT" setpriv --reuid "$AS" --regid "$AS" --init-groups sh -c "cd \"\$TREE\" && \$COMMAND"
        ' </dev/null
}

# plotted <folder>: the results are whole, and something is drawn.
plotted() {
    [ "$(wc -l <"$1/data.csv")" -gt 20 ] || fail "$1/data.csv has too few rows"
    head -n 1 "$1/data.csv" | grep -q 'latency_us' || fail "$1/data.csv has no column of latencies"
    [ "$(grep -c '<path' "$1/plot.svg")" -gt 10 ] || fail "$1/plot.svg shows nothing"
}

# --- what happens there -----------------------------------------------------------------------------------------------

results=$root/machine$tree/results/$figure

chroot "$root/machine" chown -R visitor: "$tree"
status=0
inside visitor './tcasim run --quiet' >"$root/told" 2>&1 || status=$?
cat "$root/told"
[ $status = 2 ] || fail "status $status instead of 2 where packages are missing"
missing=$(sed -n 's/^tcasim: these Debian packages are missing: \(.*\) (not root.*/\1/p' "$root/told")
[ -n "$missing" ] || fail 'no packages were named'

if [ "$builder" = user ]; then
    inside root "env DEBIAN_FRONTEND=noninteractive apt-get -q -y update" >"$root/log" 2>&1
    inside root "env DEBIAN_FRONTEND=noninteractive apt-get -q -y install --no-install-recommends $missing" >"$root/log" 2>&1 ||
        { cat "$root/log"; fail 'what was named cannot be installed'; }
    inside visitor './tcasim run --quiet' || fail 'the first command of an ordinary user'
else
    first='./tcasim run --quiet'
    [ "$builder" = root ] || first=scenarios/attached/ci/job.sh
    inside root "$first" >"$root/told" 2>&1 || { cat "$root/told"; fail 'the first command'; }
    cat "$root/told"
    installed=$(sed -n 's/^tcasim: installing //p' "$root/told")
    [ "$installed" = "$missing" ] || fail "root was given '$installed', the visitor was told of '$missing'"
fi
[ "$builder" = job ] || plotted "$results"
if inside root 'ninja -C build/release -t targets all' | grep -q 'tests'; then
    fail 'tests are configured where only running was asked for'
fi

rm -rf "$results"
chroot "$root/machine" chown -R visitor: "$tree"
inside visitor './tcasim run --quiet' || fail 'the first command, as an ordinary user'
plotted "$results"
inside visitor 'scenarios/attached/ci/job.sh' || fail 'the CI job'
# By hand as the documentation has it: a program that is not attached would print the machine's own devices, here none.
inside visitor './tcasim exec scenarios/smoke/verbs-ibsim0.yaml --on node0 true' || fail 'exec'
printf 'tcasim runs on a bare %s %s\n' "$ID" "$VERSION_CODENAME"
