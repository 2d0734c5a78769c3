// Memory of TCA Verbs: registered regions, lists of segments, and the locations that peers may write. Private to the
// folder. Access to the context as in internal.h: only with its lock.
#pragma once

#include <stdbool.h>

#include "verbs-shim/gdrcopy/gdrapi.h"
#include "verbs-shim/ibverbs/opcodes.h"
#include "verbs-shim/tca-verbs/packet.h"
#include "verbs-shim/tca-verbs/tca_verbs.h"

struct tcav_context;
struct tcav_peer;
struct tcav_qp;

struct tcav_pd {
    struct tcav_context *context;
    unsigned users;
};

struct tcav_mr {
    struct tcav_mr *next;
    struct tcav_pd *pd;
    uint32_t key;
    struct ibverbs_region region;
    struct tcav_location location; // of the first byte
    bool gpu, mapped, closing;     // closing: its key is invalid for new uses
    uint32_t chains;               // of channel 2 when closing began: later chains do not read it
    gdr_mh_t window;               // GPU memory, for the processor
    uint64_t window_va;
};

// Memory that a peer's board may write: its location was sent to the peer, which has not reported the end yet.
struct tcav_grant {
    struct tcav_grant *next;
    const struct tcav_peer *peer;
    uint32_t qp, message; // qp: number of the own queue pair, which may be destroyed
    uint64_t bytes;
    struct tcav_location location;
    bool read; // the location was sent with an own read request
};

// --- memory.c -------------------------------------------------------------------------------------------------------

int tcav_mr_register(void *pd, const struct ibverbs_region *region, void **mr_out, uint32_t *lkey_out,
                     uint32_t *rkey_out);
int tcav_mr_deregister(void *mr);
bool tcav_mr_is_copied(void *mr); // no board reaches it
// The region with that key that contains those bytes and allows all of `access`; NULL: none.
struct tcav_mr *tcav_mr_find(const struct tcav_pd *pd, uint32_t key, uint64_t address, uint64_t bytes, unsigned access);
int tcav_mr_load(struct tcav_context *context, const struct tcav_mr *mr, uint64_t address, void *data, size_t bytes);
int tcav_mr_store(struct tcav_context *context, const struct tcav_mr *mr, uint64_t address, const void *data,
                  size_t bytes);
struct tcav_location tcav_mr_location(const struct tcav_mr *mr, uint64_t address);
// The reason why tcav_mr_find returns NULL, or tcav_list_check refuses.
enum hca_fault tcav_mr_fault(const struct tcav_pd *pd, uint32_t key, uint64_t address, uint64_t bytes, unsigned access);
enum hca_fault tcav_list_fault(const struct tcav_pd *pd, const struct ibv_sge *sge, unsigned count, unsigned access);
// A list of segments, used as one run of bytes. 0; -EFAULT: a key or a range is wrong.
int tcav_list_check(const struct tcav_pd *pd, const struct ibv_sge *sge, unsigned count, unsigned access);
int tcav_list_load(const struct tcav_pd *pd, const struct ibv_sge *sge, unsigned count, uint64_t offset, void *data,
                   size_t bytes);
int tcav_list_store(const struct tcav_pd *pd, const struct ibv_sge *sge, unsigned count, uint64_t offset,
                    const void *data, size_t bytes);
uint64_t tcav_list_bytes(const struct ibv_sge *sge, unsigned count);
// The location of the list's byte `offset`, if one element contains all of the bytes; otherwise block TCAV_NOWHERE.
struct tcav_location tcav_list_location(const struct tcav_pd *pd, const struct ibv_sge *sge, unsigned count,
                                        uint64_t offset, uint64_t bytes);
// The address for this board: an own bus address, or a window address of the node.
uint64_t tcav_location_address(const struct tcav_context *context, uint32_t node, struct tcav_location location);
static inline bool tcav_locations_match(struct tcav_location a, struct tcav_location b)
{
    return a.block != TCAV_NOWHERE && b.block != TCAV_NOWHERE && a.offset % 16 == b.offset % 16;
}

// --- grant.c --------------------------------------------------------------------------------------------------------

// false: no memory; the grant does not exist.
bool tcav_grant_add(struct tcav_qp *qp, uint32_t message, struct tcav_location location, uint64_t bytes, bool read);
void tcav_grant_end(struct tcav_context *context, const struct tcav_peer *peer, uint32_t qp, uint32_t message,
                    bool read);
void tcav_grants_drop(struct tcav_context *context, const struct tcav_peer *peer); // NULL: of all peers
bool tcav_grants_overlap(const struct tcav_context *context, struct tcav_location location, uint64_t bytes);
// Tells the peer (NULL: it is down) that no more writes go to the location that its queue pair gave for this message.
// read: for its own read.
void tcav_grant_release(struct tcav_peer *peer, uint32_t remote_qp, uint32_t own_qp, uint32_t message, bool read);
// Handles what packets of the connection say about grants, whether or not their queue pairs still exist.
void tcav_grant_packet(struct tcav_peer *peer, const struct tcav_header *header);
// The queue pair's request will not continue: its location is released when the board no longer writes there.
void tcav_grant_abandon(struct tcav_qp *qp);
void tcav_grant_step(struct tcav_qp *qp); // sends the releases that waited for the board
