// Files that show a program which machine it is on. Each node is another machine, so it has its own files. The
// simulator writes them (sim/attach/sysfs.c) into the node's folder, and they appear at these paths
// (verbs-shim/world/redirect.c). They depend only on the node's name, so they are the same in each run.
#pragma once

// What uname shows.
#define ATTACH_KERNEL_RELEASE "6.1.0-tcasim"
#define ATTACH_KERNEL_VERSION "#1 SMP PREEMPT_DYNAMIC"

// The node's interfaces, in this order, with the numbers 1 and 2. Both have the node's address.
#define ATTACH_LOOPBACK_NAME "lo"
#define ATTACH_ETHERNET_NAME "eth0"
#define ATTACH_LOOPBACK_MTU  65536
#define ATTACH_ETHERNET_MTU  1500
// Locally administered (IEEE 802).
#define ATTACH_ETHERNET_ADDRESS(node)                                                                                  \
    {                                                                                                                  \
        0x02, 0x74, 0x63, 0x61, (uint8_t)((node) >> 8), (uint8_t)(node)                                                \
    }

// Ports that a socket gets if it asks for none (ip(7), ip_local_port_range).
#define ATTACH_FREE_PORT_FIRST 32768
#define ATTACH_FREE_PORT_LAST  60999

// Caches of a core of all processors that a node may have (Intel optimization manual); the last level is the processor's.
#define ATTACH_L1_KIB     32u
#define ATTACH_L1_WAYS    8u
#define ATTACH_L2_KIB     256u
#define ATTACH_L2_WAYS    8u
#define ATTACH_L3_WAYS    20u
#define ATTACH_CACHE_LINE 64u

// In the node's /sys: its topology, for hwloc.
#define ATTACH_TOPOLOGY_FILE "hwloc.xml"

// In the run's directory: what programs asked for and their nodes have not, a line for each time.
#define ATTACH_ASKED_FILE ".asked"

// path, form of the content: UUID, ID (32 digits), NAME
#define ATTACH_IDENTITY_FILES(F)                                                                                       \
    F("/proc/sys/kernel/random/boot_id", UUID)                                                                         \
    F("/proc/sys/kernel/hostname", NAME)                                                                               \
    F("/etc/hostname", NAME)                                                                                           \
    F("/etc/machine-id", ID)                                                                                           \
    F("/var/lib/dbus/machine-id", ID)                                                                                  \
    F("/sys/class/dmi/id/product_uuid", UUID)                                                                          \
    F("/sys/class/dmi/id/product_serial", ID)                                                                          \
    F("/sys/class/dmi/id/board_serial", ID)                                                                            \
    F("/sys/class/dmi/id/chassis_serial", ID)                                                                          \
    F("/sys/devices/virtual/dmi/id/product_uuid", UUID)                                                                \
    F("/sys/devices/virtual/dmi/id/product_serial", ID)                                                                \
    F("/sys/devices/virtual/dmi/id/board_serial", ID)
