#!/bin/sh
# port_files.sh <tcasim> <scenario>: /sys/class/infiniband is as a ConnectX-3's, seen alike by all ways to look there, and its
# counters count. 77: perftest is not installed.
set -eu
tcasim=$1 scenario=$2
command -v ib_send_lat >/dev/null || exit 77
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cat >"$folder/look" <<'LOOK'
ib_send_lat -n 1000 "$@" >/dev/null || exit 1
ports=/sys/class/infiniband/ibsim0/ports/1
ls -l /sys/class/infiniband >/dev/null || echo "ls -l: $?"
[ "$(echo /sys/class/infiniband/*)" = /sys/class/infiniband/ibsim0 ] || echo "glob: $(echo /sys/class/infiniband/*)"
[ "$(cd $ports/counters && cat port_xmit_packets)" = 2000 ] || echo "relative: $(cd $ports/counters && cat port_xmit_packets)"
[ "$(cd $ports && cat state)" = "4: ACTIVE" ] || echo "state: $(cd $ports && cat state)"
for file in link_layer phys_state rate pkeys/0 gid_attrs/types/0; do echo "$file $(cat $ports/$file)"; done
cat /sys/class/infiniband/ibsim0/hca_type
for file in xmit_packets rcv_packets xmit_data rcv_data; do echo "$file $(cat $ports/counters/port_$file)"; done
LOOK
"$tcasim" exec "$scenario" --on node0 "sh $folder/look" --on node1 "sh $folder/look node0" | sort >"$folder/seen"
# 1000 messages and as many acknowledges each way: LRH, BTH, ICRC and 4 B or AETH, 28 B.
sort >"$folder/expected" <<'EXPECTED'
gid_attrs/types/0 IB/RoCE v1
gid_attrs/types/0 IB/RoCE v1
link_layer InfiniBand
link_layer InfiniBand
MT4099
MT4099
phys_state 5: LinkUp
phys_state 5: LinkUp
pkeys/0 0xffff
pkeys/0 0xffff
rate 40 Gb/sec (4X QDR)
rate 40 Gb/sec (4X QDR)
rcv_data 14000
rcv_data 14000
rcv_packets 2000
rcv_packets 2000
xmit_data 14000
xmit_data 14000
xmit_packets 2000
xmit_packets 2000
EXPECTED
diff "$folder/expected" "$folder/seen"
