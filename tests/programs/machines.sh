#!/bin/sh
# machines.sh <tcasim> <source folder> <machines> <program ...>: runs the programs on machines that differ in what a
# program can read about them: files are replaced in a name space of the user. All runs of a program have one hash and
# print the same. machines: few, all. 77: there are no name spaces, or a program is not installed.
set -eu
tcasim=$1 source=$2 machines=$3
shift 3
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
unshare -Urm true 2>"$folder/error" || {
    echo "skipped: no name spaces for a user: $(cat "$folder/error")" >&2
    exit 77
}
. "$source/tests/programs/machine_programs.sh"

# --- machines -------------------------------------------------------------------------------------------------------
# Each is a script that changes the name space in which it is, and runs the rest of its arguments there.

# machine <name> <change ...>
machine() {
    {
        echo "#!/bin/sh"
        echo "set -e"
        shift
        for change in "$@"; do
            echo "$change"
        done
        echo 'exec "$@"'
    } >"$folder/machine_$name"
    chmod +x "$folder/machine_$name"
}

# file <path> <text>: replaces a file, if the machine has it.
replace() {
    made=$folder/file_$(echo "$1" | tr -c 'a-z0-9\n' _)_$name
    cat >"$made"
    echo "[ ! -e $1 ] || mount --bind $made $1"
}

# folder_empty <path>: hides what is in it, if the machine has it.
hide() {
    echo "[ ! -e $1 ] || mount -t tmpfs none $1"
}

# The processors of a machine with that frequency in MHz, model name and BogoMIPS.
cpuinfo() {
    for i in 0 1; do
        printf 'processor\t: %s\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 85\nmodel name\t: %s\n' $i "$2"
        printf 'cpu MHz\t\t: %s.000\nflags\t\t: %s\nbogomips\t: %s.00\n\n' "$1" \
            "$(sed -n 's/^flags[^:]*: //p' /proc/cpuinfo | head -n 1)" "$3"
    done
}

name=as_it_is && machine $name
name=slow && machine $name "$(cpuinfo 2100 'A processor' 4200 | replace /proc/cpuinfo)"
name=fast && machine $name "$(cpuinfo 2800 'A processor' 5600 | replace /proc/cpuinfo)"
name=named && machine $name "$(cpuinfo 2400 'A processor @ 2.40GHz' 4800 | replace /proc/cpuinfo)"
name=sixteen && machine $name "$(echo 0-15 | replace /sys/devices/system/cpu/online)" \
    "$(echo 0-15 | replace /sys/devices/system/cpu/possible)" "$(echo 0-15 | replace /sys/devices/system/cpu/present)"
name=nameless && machine $name "$(echo '10.1.2.3 somebody' | replace /etc/hosts)"
name=six && machine $name "$(echo '::1 localhost' | replace /etc/hosts)"
name=bare && machine $name "$(hide /sys/bus/pci/devices)" "$(hide /sys/block)" "$(hide /sys/class/block)" \
    "$(hide /sys/class/net)" "$(hide /sys/class/dmi)" "$(hide /usr/lib/x86_64-linux-gnu/hwloc)"
name=memory && machine $name "$(echo 'MemTotal: 1048576 kB' | replace /proc/meminfo)" \
    "$(echo 'hosts: dns' | replace /etc/nsswitch.conf)" "$(echo 'nameserver 192.0.2.1' | replace /etc/resolv.conf)"

# on <machine> <command ...>
on() {
    machine=$1
    shift
    case $machine in
    one) taskset -c 0 "$@" ;;
    user) unshare -U --map-user=1234 --map-group=1234 "$@" ;;
    lonely) unshare -Urn sh -c 'ip link set lo up; exec "$@"' sh "$@" ;;
    terminal) script -qec "$(printf "'%s' " "$@")" "$folder/typescript" </dev/null | tr -d '\r' ;;
    pipe) "$@" 2>&1 | cat ;;
    *) unshare -Urm "$folder/machine_$machine" "$@" ;;
    esac
}

case $machines in
few) set_of_machines="as_it_is slow bare pipe" ;;
all) set_of_machines="as_it_is slow fast named one sixteen nameless six lonely bare memory user terminal pipe" ;;
esac

# run <machine>: prints what the programs print, and what exec.yaml has apart from the machine. On a terminal, which
# programs write to line by line, output comes in another order, and is left out. Open MPI registers whole pages of the
# heap, and has paths with the user's number there: another user may have a page more or less.
run() {
    where=$1
    run_by on "$where"
    [ $status = 0 ] || {
        echo "$where: it failed"
        cat "$folder/log"
        return 1
    }
    results_show | if [ "$where" = user ]; then without_pages; else cat; fi
    [ "$where" = terminal ] || output_show
}

without_pages() {
    sed 's/registered_bytes: .*/registered_bytes:/'
}

# What the run as it is showed: on a terminal its first part, of another user without pages.
wanted() {
    case $where in
    terminal) head -n "$(wc -l <"$folder/seen")" "$folder/first" ;;
    user) without_pages <"$folder/first" ;;
    *) cat "$folder/first" ;;
    esac
}

same() {
    wanted >"$folder/wanted"
    [ "$(wc -l <"$folder/wanted")" -gt 5 ] && cmp -s "$folder/wanted" "$folder/seen"
}

failed=0
for program in "$@"; do
    prepare "$program"
    for where in $set_of_machines; do
        run "$where" >"$folder/seen" || failed=1
        [ "$where" != as_it_is ] || cp "$folder/seen" "$folder/first"
        same || {
            echo "$program: $where differs from the machine as it is:"
            diff "$folder/wanted" "$folder/seen" | head -n 20
            failed=1
        }
    done
    echo "$program: $(sed -n 's/^hash: //p' "$folder/first")"
done
exit $failed
