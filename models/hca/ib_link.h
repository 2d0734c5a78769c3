// An InfiniBand link: two ends, one virtual lane.
//
// Models: serialisation at the data rate of the link (after 8b/10b), flight time with both PHYs, and the credits of
// virtual lane 0 (IBA 1.2.1, 7.9): a receiver advertises a buffer in blocks of 64 B, and a packet is not sent before
// the peer has room for the whole packet, so no packet is ever dropped for lack of room. Flow control packets take
// their 8 symbols on the wire of the other direction and are sent when a quarter of the buffer is unreported or the
// peer has less than one largest packet left. A receiver takes a packet when it is complete and its CRC was checked;
// damaged packets end here. Leaves out: link training, SKIP ordered sets (0.1 %), other virtual lanes, subnet
// management.
//
// A packet that the link has taken belongs to the link, then to the owner of the other end, which releases it when it
// has left the receive buffer. Counters are registered as "<name>.0" and "<name>.1".
#pragma once

#include "models/hca/ib_packet.h"
#include "sim/kernel/sim.h"

typedef struct ib_link ib_link_t;
typedef struct ib_end ib_end_t;

struct flow_path;

struct ib_link_config {
    uint32_t ps_per_byte;      // of data: 4x SDR 1000, DDR 500, QDR 250
    uint64_t flight_ps;        // PHYs and cable, one way
    uint32_t buffer_blocks[2]; // of the receiver at each end; at least one largest packet
    uint32_t mtu_bytes;        // largest payload
    uint32_t gap_bytes;        // between two packets of one end
    // Fault injection, both directions: every n-th packet is lost, or arrives damaged; 0: none.
    uint32_t drop_every, damage_every;
};

// Consecutive packets that go as one stream (models/flow).
struct ib_stream {
    const ib_packet_t *like;     // one of them, with the largest payload
    uint64_t bytes;              // of payload
    uint32_t acknowledged_bytes; // by each of these acknowledges, which go beside a stream; 0: this is the data
    void *receiver;              // the adapter at the end of its path sets it: a queue pair
};

struct ib_end_ops {
    // A packet arrived, and the owner gets it. The owner calls ib_end_release when the packet has left the receive
    // buffer.
    void (*receive)(void *ctx, ib_end_t *end, ib_packet_t *packet);
    // After ib_end_offer refused: it may take a packet now. The owner may offer from inside.
    void (*ready)(void *ctx, ib_end_t *end);
    // The link went down or came up. Down: packets in flight are lost, and packets offered are taken and dropped.
    void (*state)(void *ctx, ib_end_t *end, bool up);
    // Optional: adds what a stream that arrives here crosses, without any effect. NULL: packets only.
    void (*stream)(void *ctx, ib_end_t *end, struct flow_path *path, struct ib_stream *stream);
};

// SIM_ERR_INVALID: a rate of 0, or a buffer that cannot hold a largest packet.
enum sim_status ib_link_create(sim_t *sim, ib_pool_t *pool, const char *name, const struct ib_link_config *config,
                               ib_link_t **link_out);
void ib_link_destroy(ib_link_t *link);
ib_end_t *ib_link_end(ib_link_t *link, unsigned side);
void ib_link_set_up(ib_link_t *link, bool up);
// The next packets sent from `side` are lost, or arrive damaged.
void ib_link_drop_next(ib_link_t *link, unsigned side, unsigned packets);
void ib_link_damage_next(ib_link_t *link, unsigned side, unsigned packets);

void ib_end_attach(ib_end_t *end, const struct ib_end_ops *ops, void *ctx);
// false: the wire is busy or the peer has no room; ready() will be called.
bool ib_end_offer(ib_end_t *end, ib_packet_t *packet);
void ib_end_release(ib_end_t *end, const ib_packet_t *packet);
// Adds the link and what follows it to the path of a stream that leaves here. ps_per_byte: of the owner, which sends it.
void ib_end_stream(ib_end_t *end, struct flow_path *path, double ps_per_byte, struct ib_stream *stream);
// Ends the streams of both directions early.
void ib_end_streams_interrupt(ib_end_t *end);
// For an arrived packet with several receivers: makes another copy and counts it in `pending`. The owner sets `pending`
// to 1 before the first copy, and calls ib_packet_done after the last one.
ib_packet_t *ib_packet_share(ib_pool_t *pool, ib_packet_t *arrived);
// Releases the packet and returns it to the pool. A shared packet is released when the last of its copies is done.
void ib_packet_done(ib_pool_t *pool, ib_packet_t *packet);
bool ib_end_is_up(const ib_end_t *end);
// What has left here, and what has come, without what is still on the wire or was lost or damaged there. bytes: as the port
// counters of the specification count them (volume 1, 16.1.3.5): without delimiters and the variant CRC.
struct ib_traffic {
    uint64_t packets, bytes;
};
struct ib_traffic ib_end_sent(const ib_end_t *end);
struct ib_traffic ib_end_received(const ib_end_t *end);
void ib_end_troubles(const ib_end_t *end, uint64_t *damaged_out, uint64_t *downs_out, uint64_t *stalls_out);
const char *ib_end_name(const ib_end_t *end);
