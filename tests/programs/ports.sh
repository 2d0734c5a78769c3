#!/bin/sh
# ports.sh <tcasim> <scenario>: a service of the machine neither takes a port from the nodes nor is there for them. 77: this machine
# gives a run no network of its own.
set -eu
tcasim=$1 scenario=$2
folder=$(mktemp -d)
python3 - "$folder/port" <<'PYTHON' &
import socket, sys, time
service = socket.socket()
service.bind(("0.0.0.0", 0))
service.listen(5)
with open(sys.argv[1] + ".new", "w") as file:
    file.write(str(service.getsockname()[1]))
import os
os.rename(sys.argv[1] + ".new", sys.argv[1])
time.sleep(300)
PYTHON
service=$!
trap 'kill $service; rm -rf "$folder"' EXIT
while [ ! -s "$folder/port" ]; do sleep 0.1; done
port=$(cat "$folder/port")
cat >"$folder/server.py" <<'PYTHON'
import socket, sys
server = socket.socket()
server.bind(("", int(sys.argv[1])))
server.listen()
print(server.accept()[0].recv(10))
PYTHON
cat >"$folder/client.py" <<'PYTHON'
import socket, sys
try:
    socket.create_connection((sys.argv[2], int(sys.argv[1]))).send(b"hello")
except ConnectionRefusedError:
    print("refused")
PYTHON
"$tcasim" exec "$scenario" --out "$folder/out" --on node1 "/usr/bin/python3 $folder/client.py $port node0" >"$folder/alone"
grep -q 'network: its own' "$folder/out/exec.yaml" || {
    echo "skipped: no namespaces of the network" >&2
    exit 77
}
grep -qx refused "$folder/alone"
"$tcasim" exec "$scenario" --on node0 "/usr/bin/python3 $folder/server.py $port" \
    --on node1 "/usr/bin/python3 $folder/client.py $port node0" >"$folder/both"
grep -qx "b'hello'" "$folder/both"
