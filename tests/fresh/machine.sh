# machine.sh, to be read by a script that has set `tree` and, if it needs a repository there, `source`: a minimal Debian in
# $root/machine, made from this machine's own package sources and settings, and `inside`. Ends with status 77 where that
# is not possible, and says why.
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
for program in mmdebstrap unshare ${needs:-}; do
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
