// Files in which a program finds out which machine it is on. Nodes are different machines, so each has its own, made by
// the simulator (sim/attach/sysfs.c) in the node's folder and shown at these paths (verbs-shim/world/paths.c). They
// depend on the node's name alone: the same in each run.
#pragma once

// path, the form of what it says: UUID, ID (32 digits), NAME
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
