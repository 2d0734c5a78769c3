#!/bin/busybox sh
# emulated_init.sh: the first process of the machine that emulated.sh starts. It finds the files and runs the job.
/bin/busybox --install -s /bin
export PATH=/bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
for round in 1 2 3 4; do # each needs others
    for module in /modules/*.ko; do
        insmod "$module" 2>/tmp.error
    done
done
# Packets of a page: the block size of these files (st_blksize), from which the C library takes the size of its buffers,
# is then 4 KiB as on disks, and memory is laid out as on the other machine (docs/determinism.md).
mount -t 9p -o ro,trans=virtio,version=9p2000.L,cache=loose,msize=4120 files /files
mount -t tmpfs tmpfs /memory
mkdir /memory/upper /memory/work
mount -t overlay -o lowerdir=/files,upperdir=/memory/upper,workdir=/memory/work overlay /all
mount -t proc proc /all/proc
mount -t sysfs sysfs /all/sys
mount -t devtmpfs devtmpfs /all/dev
mkdir -p /all/dev/pts /all/dev/shm
mount -t devpts devpts /all/dev/pts
mount -t tmpfs tmpfs /all/dev/shm
mount -t tmpfs tmpfs /all/run
mkdir /all/run/results
mount -t 9p -o trans=virtio,version=9p2000.L results /all/run/results
ifconfig lo up
hostname emulated
chroot /all /bin/sh /run/results/start
poweroff -f
