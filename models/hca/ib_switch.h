// An InfiniBand switch: forwards packets by destination LID after a fixed latency.
//
// A packet waits in the receive buffer of the port it came through, in a queue for its output (no head-of-line blocking
// between outputs); each output serves the inputs in turn. So no packet is lost for lack of room: a busy output stalls
// its senders by credits. Packets to a LID without a port are dropped and counted. A packet to a group leaves through
// each port that leads to members, and stays in the receive buffer until the last port has taken it. Leaves out:
// cut-through, management, virtual lanes.
#pragma once

#include "models/hca/ib_link.h"

#define IB_SWITCH_PORTS_MAX 36u
#define IB_SWITCH_LIDS_MAX  0xc000u // unicast (IBA 4.1.3)
#define IB_SWITCH_GROUPS    256u

typedef struct ib_switch ib_switch_t;

enum sim_status ib_switch_create(sim_t *sim, ib_pool_t *pool, const char *name, uint64_t latency_ps,
                                 ib_switch_t **switch_out);
void ib_switch_destroy(ib_switch_t *ib_switch);
// Becomes the owner of the end; returns the port's number.
unsigned ib_switch_add_port(ib_switch_t *ib_switch, ib_end_t *end);
// Packets to this LID leave through that port. SIM_ERR_INVALID: no such LID or port.
enum sim_status ib_switch_set_route(ib_switch_t *ib_switch, uint16_t lid, unsigned port);
// One member more or less of the group behind that port. More than IB_SWITCH_GROUPS groups: SIM_ERR_NO_MEMORY.
enum sim_status ib_switch_group_change(ib_switch_t *ib_switch, uint16_t mlid, unsigned port, bool joins);
