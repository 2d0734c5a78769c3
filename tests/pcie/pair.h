// Two owners joined by a link, for the tests of the link.
//
// An owner records what it received in order, can hold TLPs back, and can keep its end busy from a source.
#pragma once

#include "models/pcie/link.h"
#include "sim/kernel/counter.h"

enum { PAIR_LOG_MAX = 4096 };

struct pair_entry {
    uint64_t time_ps;
    enum pcie_tlp_kind kind;
    uint64_t address;
    uint8_t tag;
    uint8_t first_data; // first byte of the payload
};

struct pair_owner {
    struct pair *pair;
    pcie_end_t *end;
    // arrived
    uint64_t received;
    uint64_t first_ps, last_ps;
    struct pair_entry log[PAIR_LOG_MAX];
    bool holds;       // keeps arriving TLPs in the receive buffer
    pcie_tlp_t *held; // linked by next, in order of arrival
    pcie_tlp_t **held_end;
    void (*on_receive)(struct pair_owner *owner, pcie_tlp_t *tlp); // may be NULL
    void (*takes)(struct pair_owner *owner, pcie_tlp_t *tlp);      // NULL, or releases it and gets the reference
    // to send
    uint64_t to_send; // writes left for pair_saturate
    uint32_t send_bytes;
    unsigned readies, downs, lost_tlps;
    unsigned rooms; // calls of room()
    bool has_room;  // as told by the last one
};

struct pair {
    sim_t *sim;
    pcie_pool_t *pool;
    pcie_link_t *link;
    struct pair_owner owners[2];
};

// Gen2 x8 with an MPS of 256, ample buffers and no latencies; tests change what they need.
struct pcie_link_config pair_config(void);
void pair_set_credits(struct pcie_link_config *config, unsigned side, enum pcie_class class, uint32_t headers,
                      uint32_t data);

struct pair *pair_create(const struct pcie_link_config *config);
void pair_destroy(struct pair *pair); // fails the test if a TLP leaked

// Each TLP is identified by its address (requests) and tag; a write's bytes all have the value of the tag.
bool pair_write(struct pair *pair, unsigned side, uint64_t address, uint32_t bytes);
bool pair_offer(struct pair *pair, unsigned side, enum pcie_tlp_kind kind, uint8_t tag, uint32_t bytes);
void pair_release_one(struct pair_owner *owner);
void pair_release_one_at(struct pair_owner *owner, uint64_t at_ps); // announced now
void pair_release_all(struct pair_owner *owner);

void pair_saturate(struct pair *pair, unsigned side, uint64_t tlps, uint32_t bytes);
uint64_t pair_counter(const struct pair *pair, unsigned side, const char *name);
