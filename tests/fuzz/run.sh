#!/bin/sh
# run.sh [--fast] MINUTES [TARGET ...]: builds the fuzz targets for libFuzzer (clang), and runs each of them for its share
# of the minutes, one after the other, from its corpus in the tree and what earlier runs have found. Prints cases and
# coverage; an input that fails is kept in build/fuzz/found, and the status is 1. --fast: without sanitizers, for many
# cases (build/fuzz-fast).
set -eu
name=fuzz sanitize=ON schedule=
if [ "${1-}" = --fast ]; then
    name=fuzz-fast sanitize=OFF schedule=-entropic=0
    shift
fi
[ $# -ge 1 ] && [ "$1" -gt 0 ] 2>/dev/null || {
    sed -n '2,5s/^# //p' "$0" >&2
    exit 2
}
minutes=$1
shift
tree=$(cd "$(dirname "$0")/../.." && pwd)
build=$tree/build/$name
command -v clang >/dev/null || {
    echo "there is no clang" >&2
    exit 77
}
[ $# -gt 0 ] || set -- $(cd "$tree/tests/fuzz/corpus" && ls)
CC=clang CXX=clang++ cmake -S "$tree" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo -DTCASIM_FUZZ=ON \
    -DTCASIM_FUZZ_SANITIZE=$sanitize -DTCASIM_TESTS=ON ${TCASIM_FUZZ_CMAKE-} >"$build.log" 2>&1 || {
    cat "$build.log" >&2
    exit 1
}
ninja -C "$build" $(printf 'fuzz_%s ' "$@")
mkdir -p "$build/found"
seconds=$((minutes * 60 / $#))
failed=0
statistic() {
    sed -n "s/^stat::$1: *//p" "$log" | tail -n 1
}
printf '%-10s %12s %9s %9s %7s  %s\n' target cases cases/s coverage corpus findings
for target in "$@"; do
    kept=$build/corpus/$target
    mkdir -p "$kept"
    log=$build/$target.log
    status=0
    # A scenario is a large object: its memory is used again, and not given back to the kernel each time.
    (cd "$build" && GLIBC_TUNABLES=glibc.malloc.mmap_threshold=1000000000:glibc.malloc.trim_threshold=4000000000 \
        "tests/fuzz/fuzz_$target" $schedule -max_total_time="$seconds" -timeout=60 -rss_limit_mb=4096 -print_final_stats=1 \
        -artifact_prefix="$build/found/$target-" "$kept" "$tree/tests/fuzz/corpus/$target") >"$log" 2>&1 || status=$?
    coverage=$(sed -n 's/.*cov: \([0-9]*\).*/\1/p' "$log" | tail -n 1)
    found=$(ls "$build/found" | grep -c "^$target-" || true)
    printf '%-10s %12s %9s %9s %7s  %s\n' "$target" "$(statistic number_of_executed_units)" \
        "$(statistic average_exec_per_sec)" "${coverage:--}" "$(ls "$kept" | wc -l)" "$found (status $status, $log)"
    [ $status = 0 ] || failed=1
done
exit $failed
