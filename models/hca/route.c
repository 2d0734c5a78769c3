// Global route headers of datagrams (IBA 8.3). The table of GIDs has one entry, which is the source of all packets.
#include <string.h>

#include "models/hca/internal.h"

#define SUBNET_PREFIX UINT64_C(0xfe80000000000000) // IBA 4.1.1: the default
#define GUID          UINT64_C(0x0002c90300000000) // begins with the number of the adapters' vendor; the LID follows

enum { GRH_VERSION = 6, NEXT_HEADER_IBA = 0x1b, LRH_BYTES = 8 };
enum { LENGTH_AT = 4, NEXT_HEADER_AT = 6, HOP_LIMIT_AT = 7, SOURCE_AT = 8, DESTINATION_AT = 24, GID_BYTES = 16 };

uint64_t hca_gid_prefix(void)
{
    return SUBNET_PREFIX;
}

uint64_t hca_port_guid(const hca_t *hca)
{
    return GUID + 0x100u * hca->lid + 1;
}

// Network byte order.
static void number_put(uint8_t *to, unsigned bytes, uint64_t value)
{
    for (unsigned i = 0; i < bytes; i++) {
        to[i] = (uint8_t)(value >> 8 * (bytes - 1 - i));
    }
}

static void gid_put(const hca_t *hca, uint8_t gid[GID_BYTES])
{
    number_put(gid, 8, SUBNET_PREFIX);
    number_put(gid + 8, 8, hca_port_guid(hca));
}

void hca_route_write(const hca_t *hca, ib_packet_t *packet, const struct hca_wqe_datagram *to)
{
    uint32_t behind = ib_packet_data_bytes(packet) - LRH_BYTES - IB_GRH_BYTES; // up to the ICRC
    number_put(packet->grh, 4,
               (uint32_t)GRH_VERSION << 28 | (uint32_t)to->traffic_class << 20 | (to->flow_label & 0xfffff));
    number_put(packet->grh + LENGTH_AT, 2, behind);
    packet->grh[NEXT_HEADER_AT] = NEXT_HEADER_IBA;
    packet->grh[HOP_LIMIT_AT] = to->hop_limit;
    gid_put(hca, packet->grh + SOURCE_AT);
    memcpy(packet->grh + DESTINATION_AT, to->dgid, GID_BYTES);
}

const uint8_t *hca_route_destination(const ib_packet_t *packet)
{
    return packet->grh + DESTINATION_AT;
}

bool hca_route_is_here(const hca_t *hca, const ib_packet_t *packet)
{
    uint8_t own[GID_BYTES];
    gid_put(hca, own);
    bool here = ib_is_multicast(packet->dlid) || memcmp(packet->grh + DESTINATION_AT, own, GID_BYTES) == 0;
    return packet->grh[0] >> 4 == GRH_VERSION && packet->grh[NEXT_HEADER_AT] == NEXT_HEADER_IBA && here;
}
