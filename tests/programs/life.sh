#!/bin/sh
# life.sh <tcasim> <scenario> <claim>: what a run leaves behind, and what it survives. 77: something is not installed.
set -eu
tcasim=$1
scenario=$2
claim=$3
for program in perl python3; do
    [ -x /usr/bin/$program ] || {
        echo "skipped: there is no /usr/bin/$program" >&2
        exit 77
    }
done
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export XDG_RUNTIME_DIR="$folder"
forever='perl -MPOSIX -e pause'

fail() {
    echo "$1" >&2
    exit 1
}

# Waits until the condition holds; at most 10 s.
await() {
    tries=0
    until eval "$1"; do
        tries=$((tries + 1))
        [ $tries -lt 200 ] || fail "gave up waiting: $1"
        sleep 0.05
    done
}

run_begin() {
    "$tcasim" exec "$scenario" --on node0 "$forever" &
    run=$!
    await '[ -n "$(cat /proc/$run/task/$run/children)" ] && ls "$folder"/*/attach >"$folder/socket" 2>/dev/null'
    read -r socket <"$folder/socket"
    rm "$folder/socket"
}

run_stop() {
    status=0
    kill "$1" "$run"
    wait "$run" || status=$?
}

case $claim in
killed) # a simulator that is killed leaves neither files nor programs
    run_begin
    programs=$(cat /proc/$run/task/$run/children)
    run_stop -KILL
    await '[ -z "$(ls "$folder")" ]'
    for program in $programs; do
        await "! kill -0 $program 2>/dev/null"
    done
    ;;
unreaped) # nor does a program that another one has started stay until somebody has waited for the simulator
    /usr/bin/python3 - "$tcasim" "$scenario" "$forever" <<'PYTHON' || fail "the end of the output has not come"
import os, subprocess, sys, time
tcasim, scenario, forever = sys.argv[1:]
run = subprocess.Popen([tcasim, "exec", scenario, "--on", "node0", f"sh -c '{forever}; true'"], stdout=subprocess.PIPE)
def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        return file.read().split()
while not any(children(child) for child in children(run.pid)):
    time.sleep(0.05)
time.sleep(0.5)
run.kill()
os.set_blocking(run.stdout.fileno(), False)
for _ in range(200):  # never waits for the simulator
    try:
        if run.stdout.read() == b"":
            sys.exit(0)
    except BlockingIOError:
        pass
    time.sleep(0.05)
sys.exit(1)
PYTHON
    await '[ -z "$(ls "$folder")" ]'
    ;;
stranger) # another user reaches neither the socket nor the memory of programs
    [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null || {
        echo "skipped: only root can be another user" >&2
        exit 77
    }
    chmod 755 "$folder"
    run_begin
    for who in 0 65534; do
        setpriv --reuid $who --clear-groups /usr/bin/python3 - "$socket" "$run" "$who" <<'PYTHON' || fail "as user $who"
import errno, os, socket, sys
path, run, who = sys.argv[1], sys.argv[2], int(sys.argv[3])
connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
if connection.connect_ex(path) != (0 if who == 0 else errno.EACCES):
    sys.exit("the socket")
folders = [f"/proc/{run}/fd", f"/proc/{run}/map_files", os.path.dirname(path)]
refused = [folder for folder in folders if not os.access(folder, os.R_OK)]
if who != 0 and refused != folders or who == 0 and refused:
    sys.exit(f"refused are {refused}")
PYTHON
    done
    run_stop -TERM
    [ $status = 130 ] || fail "status $status"
    ;;
twice) # two parallel runs have their own addresses and names
    serve="python3 -c 'import socket
listener = socket.create_server((\"node1\", 7000))
connection = listener.accept()[0]
connection.sendall(b\"here\")'"
    ask="python3 -c 'import socket
print(socket.create_connection((\"node1\", 7000)).recv(4).decode())'"
    for i in 1 2 3; do
        "$tcasim" exec "$scenario" --on node1 "/usr/bin/$serve" --on node0 "/usr/bin/$ask" >"$folder/said$i" &
        eval "run$i=$!"
    done
    wait "$run1" && wait "$run2" && wait "$run3" || fail "one has not ended well"
    [ "$(cat "$folder"/said*)" = "here
here
here" ] || fail "not all have talked"
    ;;
closed) # the reader of the output has gone away
    "$tcasim" exec "$scenario" --on node0 "sh -c 'while echo word; do :; done'" 2>"$folder/errors" | head -n 1 >"$folder/said"
    [ "$(cat "$folder/said")" = word ] || fail "no output"
    grep -q "node0's sh (process [0-9]*) was killed by signal 13 (SIGPIPE) at" "$folder/errors" || fail "not reported"
    ;;
descriptors) # a program that closes all descriptors, and one that has no more of them
    said=$("$tcasim" exec "$scenario" --on node0 "/usr/bin/python3 -c 'import ctypes, os, time
os.closerange(3, 2000)
ctypes.CDLL(None).closefrom(3)
began = time.time()
time.sleep(5)
try:
    while True: os.dup(1)
except OSError: time.sleep(5)
print(round(time.time() - began))'")
    [ "$said" = 10 ] || fail "it said $said"
    ;;
threads) # a hundred at once
    said=$("$tcasim" exec "$scenario" --on node0 "/usr/bin/python3 -c 'import threading, time
threads = [threading.Thread(target=time.sleep, args=(60,)) for _ in range(100)]
for thread in threads: thread.start()
print(threading.active_count() - 1)
for thread in threads: thread.join()'")
    [ "$said" = 100 ] || fail "it said $said"
    ;;
environment) # a large one
    HUGE=$(head -c 100000 /dev/zero | tr '\0' x)
    export HUGE
    said=$("$tcasim" exec "$scenario" --on node0 "sh -c 'echo \${#HUGE}'")
    [ "$said" = 100000 ] || fail "it said $said"
    ;;
esac
[ -z "$(find "$folder" -name 'tcasim-*')" ] || fail "there is a directory left"
