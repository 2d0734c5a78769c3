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
needs=git

# shellcheck source=tests/fresh/machine.sh
. "$(dirname "$0")/machine.sh"
export GIT_CONFIG_GLOBAL="$root/gitconfig" # allows a clone that belongs to another user
git config --global safe.directory '*'
git -C "$source" rev-parse -q --verify HEAD >/dev/null || skip "$source is no clone"

git clone -q --no-local --depth 1 "file://$(cd "$source" && pwd)" "$root/machine$tree"
chroot "$root/machine" useradd -m visitor
mkdir -m 777 "$root/machine/var/ccache"

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
