// Multicast of unreliable datagrams (IBA 10.5, 9.6.1.2): the queue pairs of the adapter that receive a group's packets,
// and copies of a packet.
//
// A copy is a packet of its own; the original leaves the receive buffer when the last copy is done.
#include <stdlib.h>
#include <string.h>

#include "models/hca/internal.h"

static bool is_member(const struct hca_member *member, uint32_t qpn, const uint8_t mgid[16], uint16_t mlid)
{
    return member->qpn == qpn && member->mlid == mlid && memcmp(member->mgid, mgid, sizeof member->mgid) == 0;
}

enum sim_status hca_cmd_group_attach(hca_t *hca, struct hca_command *command)
{
    const uint8_t *mgid = command->group_attach.mgid;
    uint16_t mlid = command->group_attach.mlid;
    uint32_t qpn = command->number;
    const struct hca_qp *qp = hca_qp_find(hca, qpn);
    if (qp == NULL || qp->init.type != HCA_UD || !ib_is_multicast(mlid) || mgid[0] != 0xff) {
        return SIM_ERR_INVALID;
    }
    for (uint32_t i = 0; i < hca->member_count; i++) {
        if (is_member(&hca->members[i], qpn, mgid, mlid)) {
            return SIM_ERR_BUSY;
        }
    }
    struct hca_member *members = hca->member_count == hca->config.max_qp
                                     ? NULL
                                     : realloc(hca->members, (hca->member_count + 1) * sizeof *members);
    if (members == NULL) {
        return SIM_ERR_NO_MEMORY;
    }
    hca->members = members;
    members[hca->member_count] = (struct hca_member){.qpn = qpn, .mlid = mlid};
    memcpy(members[hca->member_count].mgid, mgid, sizeof members->mgid);
    hca->member_count++;
    if (hca->joined != NULL) {
        hca->joined(hca->joined_ctx, hca, mlid, true);
    }
    return SIM_OK;
}

static void member_remove(hca_t *hca, uint32_t index)
{
    uint16_t mlid = hca->members[index].mlid;
    memmove(&hca->members[index], &hca->members[index + 1], (--hca->member_count - index) * sizeof *hca->members);
    if (hca->joined != NULL) {
        hca->joined(hca->joined_ctx, hca, mlid, false);
    }
}

enum sim_status hca_cmd_group_detach(hca_t *hca, struct hca_command *command)
{
    const struct hca_group *group = &command->group_detach;
    for (uint32_t i = 0; i < hca->member_count; i++) {
        if (is_member(&hca->members[i], command->number, group->mgid, group->mlid)) {
            member_remove(hca, i);
            return SIM_OK;
        }
    }
    return SIM_ERR_INVALID;
}

void hca_groups_forget(hca_t *hca, uint32_t qpn)
{
    for (uint32_t i = hca->member_count; i-- > 0;) {
        if (hca->members[i].qpn == qpn) {
            member_remove(hca, i);
        }
    }
}

void hca_set_joined(hca_t *hca, hca_joined_fn joined, void *ctx)
{
    hca->joined = joined;
    hca->joined_ctx = ctx;
}

bool hca_group_has_members(const hca_t *hca, const ib_packet_t *packet)
{
    for (uint32_t i = 0; i < hca->member_count; i++) {
        if (hca_group_receives(&hca->members[i], packet)) {
            return true;
        }
    }
    return false;
}

bool hca_group_receives(const struct hca_member *member, const ib_packet_t *packet)
{
    return packet->service == IB_UD && packet->global && member->mlid == packet->dlid &&
           memcmp(member->mgid, hca_route_destination(packet), sizeof member->mgid) == 0;
}
