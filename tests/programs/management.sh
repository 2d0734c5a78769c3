#!/bin/sh
# management.sh <tcasim> <scenario>: Debian's infiniband-diags tell of both ports, and of what they have counted; perftest joins a
# group by a management datagram. 77: one of them is not installed.
set -eu
tcasim=$1 scenario=$2
for program in ib_send_bw ibstat ibaddr perfquery sminfo smpquery; do
    command -v $program >/dev/null || exit 77
done
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cat >"$folder/look" <<'LOOK'
ib_send_bw -F -n 1000 node1 >/dev/null || exit 1
ibstat ibsim0 1 | sed -n 's/^[[:space:]]*//; /^State\|^SM lid\|^Rate/p'
ibaddr
ibaddr 2
ibaddr -G 0x0002c90300000201
sminfo | sed 's/, activity.*state/ state/'
smpquery nodedesc 2
perfquery 1 1 | grep -E 'Xmit(Pkts|Data)|RcvPkts'
perfquery -x 2 1 | grep -E '^PortRcv(Pkts|Data)'
ibaddr 7 >/dev/null 2>&1 || echo "nobody has LID 7: $?"
perfquery -R 1 1 2>&1 | grep -o 'failed: .*' # no counter changes
perfquery 1 1 | grep XmitPkts
LOOK
"$tcasim" exec "$scenario" --on node1 "ib_send_bw -F -n 1000" --on node0 "sh $folder/look" >"$folder/all"
sed -n '/^State/,$p' "$folder/all" >"$folder/seen"
# 1000 messages of 64 KiB in 32 packets of 2048 B; LRH, BTH, ICRC, 24 B and a payload each.
cat >"$folder/expected" <<'EXPECTED'
State: Active
Rate: 40
SM lid: 1
GID fe80::2:c903:0:101 LID start 0x1 end 0x1
GID fe80::2:c903:0:201 LID start 0x2 end 0x2
GID fe80::2:c903:0:201 LID start 0x2 end 0x2
sminfo: sm lid 1 sm guid 0x2c90300000101 state 3 SMINFO_MASTER
Node Description:....................node1 ibsim0
PortXmitData:....................16576000
PortXmitPkts:....................32000
PortRcvPkts:.....................2000
PortRcvData:.....................16576000
PortRcvPkts:.....................32000
nobody has LID 7: 255
failed: perf reset
PortXmitPkts:....................32000
EXPECTED
diff "$folder/expected" "$folder/seen"
"$tcasim" exec "$scenario" --on node1 'ib_send_bw -F -c UD -g -n 100' --on node0 'ib_send_bw -F -c UD -g -n 100 node1' >"$folder/group"
[ "$(grep -c 'MGID: 255:01' "$folder/group")" = 2 ]
grep -q '^ 2048 *100 *0.00 *3[0-9][0-9][0-9]' "$folder/group" # the receiver
