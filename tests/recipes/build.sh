#!/bin/sh
# build.sh SOURCE: makes every addition of the recipes at once in a scratch copy of the tree, builds it, runs its suite,
# and sees each addition work. Status 77: not possible on this machine (the reason is printed).
set -eu
source=$1

fail() {
    printf 'FAILED: %s\n' "$*"
    exit 1
}

command -v git >/dev/null || { echo 'skipped: there is no git'; exit 77; }
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
trap 'exit 1' INT TERM HUP
if git -C "$source" rev-parse -q --verify HEAD >/dev/null 2>&1; then
    (cd "$source" && git ls-files -z | xargs -0 sh -c 'for f; do [ ! -e "$f" ] || printf "%s\0" "$f"; done' - |
        tar -c --null -T -) | tar -x -C "$tree"
else
    (cd "$source" && tar -c --exclude=./build .) | tar -x -C "$tree"
fi
cd "$tree"
export TCASIM_HOME="$tree"
for patch in tests/recipes/*.patch; do
    git apply "$patch" || fail "$patch does not apply"
done

cmake --preset release -DTCASIM_TESTS=ON >log 2>&1 || { tail -n 40 log; fail 'the tree is not configured'; }
cmake --build --preset release --parallel "$(nproc)" >log 2>&1 &&
    cmake --build --preset release --target registers-md interposed-md >log 2>&1 ||
    { grep -A 12 -E 'error|FAILED' log | head -n 60; fail 'the tree is not built'; }
tcasim=build/release/tcasim

# A register that counts is one more row in every counters.csv: their bytes are recorded anew, and no others change.
cp tests/cli/bytes.sha256 bytes.before
TCASIM_BYTES=update ctest --test-dir build/release --parallel "$(nproc)" -R '^(Bytes|Faults)' -LE long >log 2>&1 || true
! diff bytes.before tests/cli/bytes.sha256 | grep '^[<>]' | grep -v '/counters.csv$' || fail 'results of scenarios change'
ctest --test-dir build/release --parallel "$(nproc)" -LE 'slow|long|fresh|programs' -E '^Figure|^Recipes' \
    --output-on-failure >log 2>&1 || { grep -A 30 'Failed' log | tail -n 200; fail 'a test of the tree fails'; }
echo 'every test passes'

# expect RECIPE: the scenario of that name has expectations.
expect() {
    "$tcasim" run "tests/recipes/$1.yaml" --out "out/$1" >log 2>&1 || { cat log; fail "$1: the scenario fails"; }
    grep -q 'expectations\? holds\?' log || { cat log; fail "$1: no expectation was checked"; }
    echo "$1: works"
}

# passes RECIPE TESTS FILTER NUMBER: at least so many tests of a program of tests pass.
passes() {
    "build/release/tests/$2/tests_$2" --gtest_filter="$3" >log 2>&1 || { cat log; fail "$1: a test fails"; }
    passed=$(sed -n 's/^\[  PASSED  \] \([0-9]*\) tests\?\..*/\1/p' log)
    [ "${passed:-0}" -ge "$4" ] || { cat log; fail "$1: ${passed:-0} tests instead of $4"; }
    echo "$1: works"
}

for recipe in device link_generation workload preset; do
    expect $recipe
done
"$tcasim" params sram | grep -q "^sram: a memory card" || fail 'device: params does not have it'
passes register cosim 'Router.DiscardsAndCounts*' 3
grep -q 'DISCARDED' docs/registers.md || fail 'register: the documentation does not have it'
"$tcasim" crosscheck scenarios/smoke/pair-pio.yaml >log 2>&1 || { cat log; fail 'register: RTL and twin differ'; }
passes verbs_opcode conformance 'TransferOnIbsim0.AtomicWrite*' 2
grep -q 'getlogin' docs/interposed.md || fail 'interposed_function: the documentation does not have it'
if command -v python3 >/dev/null; then
    expect interposed_function
fi
if command -v ib_send_lat >/dev/null; then
    "$tcasim" exec tests/dropin/tca0.yaml --wall-limit 60 --on node0 'ib_send_lat -d tca0' --on node0 'ib_send_lat -d tca0' \
        >log 2>&1 || true
    grep -q 'one process at a time has it, 2 are there' log || { cat log; fail 'attach_request: the message lacks it'; }
    echo 'attach_request: works'
fi
