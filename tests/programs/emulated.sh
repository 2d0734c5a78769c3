#!/bin/sh
# emulated.sh <tcasim> <source folder> <folder for kernels> <kernel> <processors> <processor> <program ...>: runs the
# programs of machines.sh on this machine, and on a machine that QEMU emulates without hardware's help: another kernel
# (default: the one of linux-image-amd64; other: the newest of another series, or the oldest one) on another processor
# (-cpu of QEMU). Its files are this machine's, read-only, under a layer in memory. Each program has one hash and prints
# the same. 77: something is not installed, or no package source has two kernels.
#
# The environment of the programs is the same on both machines, because results may depend on it (docs/determinism.md).
set -eu
environment="PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin HOME=/tmp LC_ALL=C.UTF-8 EMULATED=1"
# shellcheck disable=SC2086 # a list of words
[ -n "${EMULATED:-}" ] || exec env -i $environment sh "$0" "$@"
tcasim=$1 source=$2 kernels=$3 which=$4 processors=$5 processor=$6
shift 6
seconds=800 # for all programs in the emulated machine
folder=$(mktemp -d)
emulator=
trap '[ -z "$emulator" ] || kill -KILL "$emulator" 2>/dev/null || true; rm -rf "$folder"' EXIT
trap 'exit 1' INT TERM HUP
. "$source/tests/programs/machine_programs.sh"

skip() {
    echo "skipped: $*" >&2
    exit 77
}

needed qemu-system-x86_64 qemu-system-x86
needed busybox busybox-static
needed apt-get apt
ldd "$(command -v busybox)" >/dev/null 2>&1 && skip "busybox is not the static one (busybox-static)"

# --- kernels --------------------------------------------------------------------------------------------------------
# Packages are unpacked, not installed.

modules="virtio virtio_ring virtio_pci_modern_dev virtio_pci_legacy_dev virtio_pci netfs fscache 9pnet 9pnet_virtio 9p overlay"

known_kernels() {
    apt-cache search --names-only '^linux-image-[0-9]+[.][0-9]+[.][^-]*(-[0-9]+)?-amd64$' | sed 's/ .*//' | sort -V
}

series() { # linux-image-6.1.0-56-amd64: 6.1
    echo "$1" | sed -E 's/^linux-image-([0-9]+)[.]([0-9]+).*/\1[.]\2/'
}

# Sets `package`.
kernel_choose() {
    package=$(apt-cache depends linux-image-amd64 2>/dev/null | sed -n 's/^ *Depends: *\(linux-image-[0-9].*\)/\1/p' | tail -n 1)
    if [ "$which" = other ] && [ -n "$package" ]; then
        all=$(known_kernels)
        others=$(echo "$all" | grep -v "^linux-image-$(series "$package")[.]" || true)
        other=$([ -n "$others" ] && echo "$others" | tail -n 1 || echo "$all" | head -n 1)
        [ "$other" != "$package" ] || skip "the package sources have one kernel only"
        package=$other
    fi
    [ -n "$package" ] || skip "the package sources have no linux-image-amd64"
}

# Into the folder in which it is.
kernel_download() {
    apt-get download "$package" >log 2>&1 && return
    mkdir -p lists/partial # the machine's lists are old
    apt-get -o Dir::State::lists="$PWD/lists" update >>log 2>&1 || true
    apt-get -o Dir::State::lists="$PWD/lists" download "$package" >>log 2>&1 || skip "no package source gives $package: $(cat log)"
}

# What is needed of the package, once: kernel, and modules.
kernel_unpack() {
    made=$folder/kernel
    mkdir -p "$made"
    (cd "$made" && kernel_download)
    dpkg-deb --fsys-tarfile "$made/$package"_*.deb >"$made/tar"
    tar -xf "$made/tar" -C "$made" --wildcards './boot/vmlinuz-*'
    mkdir "$made/modules"
    for module in $modules; do # some are parts of the kernel in some versions
        tar -xf "$made/tar" -C "$made" --wildcards "*/kernel/*/$module.ko*" 2>/dev/null || true
    done
    find "$made" -name '*.ko.xz' -exec unxz {} +
    find "$made" -name '*.ko' -exec mv {} "$made/modules/" \;
    mkdir -p "$kernels/$package.new"
    cp -r "$made/boot" "$made/modules" "$kernels/$package.new/"
    mv "$kernels/$package.new" "$kernels/$package"
}

# --- the emulated machine -------------------------------------------------------------------------------------------

# An archive with which the kernel starts: busybox, modules, and what starts the rest.
archive_make() {
    root=$folder/root
    mkdir -p "$root/bin" "$root/proc" "$root/sys" "$root/dev" "$root/files" "$root/memory" "$root/all" "$root/modules"
    cp "$(command -v busybox)" "$root/bin/busybox"
    cp "$kernels/$package"/modules/*.ko "$root/modules/"
    cp "$source/tests/programs/emulated_init.sh" "$root/init"
    chmod +x "$root/init"
    (cd "$root" && find . | busybox cpio -o -H newc) >"$folder/archive" 2>"$folder/error" || {
        cat "$folder/error"
        exit 1
    }
}

# What the machine does, with what it needs of this shell.
job_write() {
    printf 'exec env -i %s sh /run/results/job\n' "$environment" >"$folder/results/start"
    {
        printf "tcasim='%s'\nsource='%s'\nfolder='%s'\nlimit=%s\n" "$tcasim" "$source" "$folder" "$seconds"
        printf '. "$source/tests/programs/emulated_job.sh"\njob %s\n' "$*"
    } >"$folder/results/job"
}

emulate() {
    timeout "$seconds" qemu-system-x86_64 -accel tcg,thread=multi -machine q35 -cpu "$processor" -smp "$processors" -m 3G \
        -nodefaults -display none -no-reboot -serial "file:$folder/console" \
        -kernel "$kernels/$package"/boot/vmlinuz-* -initrd "$folder/archive" \
        -append "console=ttyS0 quiet panic=-1 mitigations=off" \
        -virtfs "local,path=/,mount_tag=files,security_model=none,readonly=on,multidevs=remap" \
        -virtfs "local,path=$folder/results,mount_tag=results,security_model=none" \
        >"$folder/emulator" 2>&1 </dev/null &
    emulator=$!
    wait "$emulator" || true # what it wrote is looked at
    emulator=
}

# --- comparison -----------------------------------------------------------------------------------------------------

mkdir -p "$kernels" "$folder/results" "$folder/here"
kernel_choose
(
    flock 9
    [ -d "$kernels/$package" ] || kernel_unpack
) 9>"$kernels/.lock"
for program in "$@"; do
    prepare "$program"
    run_by env
    [ $status = 0 ] || {
        echo "$program failed on this machine with status $status"
        cat "$folder/log"
        exit 1
    }
    { results_show && output_show; } >"$folder/here/$program"
done
archive_make
job_write "$@"
began=$(date +%s)
emulate

failed=0
machine=$(cat "$folder/results/machine" 2>/dev/null) || machine="no machine"
echo "$machine, emulated for $(($(date +%s) - began)) s"
case $machine in
"${package#linux-image-}, "*) ;;
*) failed=1 ;;
esac
for program in "$@"; do
    if [ -s "$folder/here/$program" ] && cmp -s "$folder/here/$program" "$folder/results/$program"; then
        echo "$program: $(sed -n 's/^hash: //p' "$folder/here/$program"), $(cat "$folder/results/$program.seconds") s"
    else
        echo "$program: the emulated machine differs from this one:"
        if grep -q '^hash: ' "$folder/results/$program" 2>/dev/null; then
            diff "$folder/here/$program" "$folder/results/$program" | head -n 40 || true
        else
            tail -n 40 "$folder/results/$program" || true
        fi
        failed=1
    fi
done
[ $failed = 0 ] || {
    echo "--- emulator"
    cat "$folder/emulator"
    echo "--- console"
    tail -n 100 "$folder/console"
}
exit $failed
