#!/bin/sh
# matrix.sh <tcasim> <scenario> [quick] [program ...]: runs perftest's programs with each of the options -a -b -n -t -e
# -D that they have (see --help), between node1 and node0, twice. Prints a table of the results: "same" if both runs
# printed the same, and the seconds of real time of both together. quick: few iterations, and no -D; otherwise
# perftest's own numbers, which takes an hour or two. MATRIX_LIMIT: the limit of one run in seconds. 77: perftest is not
# installed.
set -u
tcasim=$1 scenario=$2
shift 2
few=
[ "${1:-}" != quick ] || { few=1 && shift; }
limit=${MATRIX_LIMIT:-900}
if [ $# = 0 ]; then
    set -- ib_send_lat ib_write_lat ib_read_lat ib_atomic_lat ib_send_bw ib_write_bw ib_read_bw ib_atomic_bw
fi
command -v "$1" >/dev/null || {
    echo "skipped: perftest is not installed" >&2
    exit 77
}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failed=0

# Addresses have random packet numbers.
run_once() {
    timeout "$limit" "$tcasim" exec "$scenario" --on node1 "$1" --on node0 "$1 node1" >"$folder/$2.out" 2>"$folder/$2.err"
    status=$?
    grep -v address "$folder/$2.out" | sort >"$folder/$2"
    return $status
}

# Prints the result.
cell() {
    run_once "$1" first || {
        echo "status $?: $(sort "$folder/first.err" "$folder/first.out" | grep -iE 'fail|error|tcasim|couldn' | head -1)"
        return 1
    }
    grep -qE 'usec|Mpps' "$folder/first" || {
        echo "no figures"
        return 1
    }
    run_once "$1" second
    cmp -s "$folder/first" "$folder/second" || {
        echo "differs"
        return 1
    }
    echo "same"
}

has_option() {
    "$1" --help 2>&1 | grep -qE "^ +$2,"
}

for program; do
    for option in none -n -a -b -t -e -D; do
        case $option in
        none) arguments= iterations=50 ;;
        -n) arguments="-n 30" iterations= ;;
        -a) arguments=-a iterations=5 ;;
        -b) arguments=-b iterations=50 ;;
        -t) arguments="-t 4" iterations=50 ;;
        -e) arguments=-e iterations=50 ;;
        -D) arguments="-D 1" iterations= ;;
        esac
        [ "$option" = none ] || has_option "$program" "$option" || continue
        [ -z "$few" ] || [ "$option" != -D ] || continue
        [ -z "$few" ] || [ -z "$iterations" ] || arguments="$arguments -n $iterations"
        since=$(date +%s)
        result=$(cell "$program -F $arguments") || failed=1
        printf '%-14s %-16s %5s s  %s\n' "$program" "$arguments" $(($(date +%s) - since)) "$result"
    done
done
exit $failed
