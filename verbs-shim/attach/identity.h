// Files that show a program which machine it is on. Each node is another machine, so it has its own files. The
// simulator writes them (sim/attach/sysfs.c) into the node's folder, and they appear at these paths
// (verbs-shim/world/redirect.c). They depend only on the node's name, so they are the same in each run.
#pragma once

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
