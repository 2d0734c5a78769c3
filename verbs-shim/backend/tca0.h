// Who the device tca0 says it is: to libibverbs (verbs-shim/tca-verbs) and in /sys/class/infiniband (sim/attach/sysfs.c).
#pragma once

#include <stdint.h>

// Locally administered; the node number makes it unique in the sub-cluster: of node n, plus n + 1.
#define TCA0_GUID_BASE UINT64_C(0x0254434176000000)
#define TCA0_VENDOR_ID 0x025443 // the first 24 bits of the GUID
// Site-local (IBA 4.1.1): another subnet than the InfiniBand of the same nodes, as MPI connects ports of one subnet.
#define TCA0_GID_PREFIX UINT64_C(0xfec0000000005443)
#define TCA0_FIRMWARE   "1.0"
