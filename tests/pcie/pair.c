#include "pair.h"

#include <stdlib.h>
#include <string.h>

#include "tests/shim/test.h"

static void entry_fill(struct pair_entry *entry, uint64_t time_ps, pcie_tlp_t *tlp)
{
    entry->time_ps = time_ps;
    entry->kind = tlp->kind;
    entry->address = tlp->address;
    entry->tag = tlp->tag;
    entry->first_data = tlp->payload == NULL ? 0 : pcie_tlp_data(tlp)[0];
}

static void owner_receive(void *ctx, pcie_end_t *end, pcie_tlp_t *tlp)
{
    struct pair_owner *owner = ctx;
    uint64_t now_ps = sim_now_ps(owner->pair->sim);
    if (owner->received == 0) {
        owner->first_ps = now_ps;
    }
    owner->last_ps = now_ps;
    if (owner->received < PAIR_LOG_MAX) {
        entry_fill(&owner->log[owner->received], now_ps, tlp);
    }
    owner->received++;
    if (owner->on_receive != NULL) {
        owner->on_receive(owner, tlp);
    }
    if (owner->takes != NULL) {
        owner->takes(owner, tlp);
        return;
    }
    if (owner->holds) {
        tlp->next = NULL;
        *owner->held_end = tlp;
        owner->held_end = &tlp->next;
        return;
    }
    pcie_end_release(end, tlp);
    pcie_tlp_unref(tlp);
}

static void source_fill(struct pair_owner *owner)
{
    while (owner->to_send > 0) {
        pcie_tlp_t *tlp = pcie_tlp_write(owner->pair->pool, 0, 0x1000000000, owner->send_bytes, NULL);
        if (!pcie_end_offer(owner->end, tlp)) {
            pcie_tlp_unref(tlp);
            return;
        }
        owner->to_send--;
    }
}

static void owner_ready(void *ctx, pcie_end_t *end)
{
    struct pair_owner *owner = ctx;
    (void)end;
    owner->readies++;
    source_fill(owner);
}

static void owner_down(void *ctx, pcie_end_t *end, unsigned lost_tlps)
{
    struct pair_owner *owner = ctx;
    (void)end;
    owner->downs++;
    owner->lost_tlps = lost_tlps;
}

static void owner_room(void *ctx, pcie_end_t *end, bool room)
{
    struct pair_owner *owner = ctx;
    (void)end;
    owner->rooms++;
    owner->has_room = room;
}

static const struct pcie_end_ops OWNER_OPS = {
    .receive = owner_receive, .ready = owner_ready, .room = owner_room, .down = owner_down};

struct pcie_link_config pair_config(void)
{
    const struct pcie_end_config end = {
        .headers = {128, 128, 128},
        .data = {1024, 1024, 1024},
        .tx_queue_tlps = 32,
    };
    return (struct pcie_link_config){.generation = 2, .lanes = 8, .mps_bytes = 256, .ends = {end, end}};
}

void pair_set_credits(struct pcie_link_config *config, unsigned side, enum pcie_class class, uint32_t headers,
                      uint32_t data)
{
    config->ends[side].headers[class] = headers;
    config->ends[side].data[class] = data;
}

struct pair *pair_create(const struct pcie_link_config *config)
{
    struct pair *pair = calloc(1, sizeof *pair);
    const struct sim_config sim_config = {.seed = 1};
    if (sim_create(&sim_config, &pair->sim) != SIM_OK || pcie_pool_create(&pair->pool) != SIM_OK ||
        pcie_link_create(pair->sim, pair->pool, "link", config, &pair->link) != SIM_OK) {
        sim_panic("pair", "the link of a test cannot be created");
    }
    for (unsigned side = 0; side < 2; side++) {
        struct pair_owner *owner = &pair->owners[side];
        owner->pair = pair;
        owner->end = pcie_link_end(pair->link, side);
        owner->held_end = &owner->held;
        pcie_end_attach(owner->end, &OWNER_OPS, owner);
    }
    return pair;
}

void pair_destroy(struct pair *pair)
{
    pair_release_all(&pair->owners[0]);
    pair_release_all(&pair->owners[1]);
    pcie_link_destroy(pair->link);
    EXPECT_EQ(pcie_pool_destroy(pair->pool), 0);
    sim_destroy(pair->sim);
    free(pair);
}

static bool offer(struct pair *pair, unsigned side, pcie_tlp_t *tlp)
{
    if (pcie_end_offer(pair->owners[side].end, tlp)) {
        return true;
    }
    pcie_tlp_unref(tlp);
    return false;
}

bool pair_write(struct pair *pair, unsigned side, uint64_t address, uint32_t bytes)
{
    uint8_t data[PCIE_PAYLOAD_MAX];
    memset(data, (uint8_t)address, sizeof data);
    return offer(pair, side, pcie_tlp_write(pair->pool, 0, address, bytes, data));
}

bool pair_offer(struct pair *pair, unsigned side, enum pcie_tlp_kind kind, uint8_t tag, uint32_t bytes)
{
    pcie_tlp_t *request = pcie_tlp_read(pair->pool, 0, tag, 0x1000000000, bytes);
    pcie_tlp_t *tlp = NULL;
    switch (kind) {
    case PCIE_TLP_MRD:
        return offer(pair, side, request);
    case PCIE_TLP_MWR:
        tlp = pcie_tlp_write(pair->pool, 0, 0x1000000000, bytes, NULL);
        tlp->tag = tag;
        break;
    case PCIE_TLP_CPL:
        tlp = pcie_tlp_error(request, 0, PCIE_CPL_UR);
        break;
    case PCIE_TLP_CPLD:
        tlp = pcie_tlp_completion(request, 0, 0, bytes, NULL);
        break;
    }
    pcie_tlp_unref(request);
    return offer(pair, side, tlp);
}

void pair_release_one(struct pair_owner *owner)
{
    pair_release_one_at(owner, sim_now_ps(owner->pair->sim));
}

void pair_release_one_at(struct pair_owner *owner, uint64_t at_ps)
{
    pcie_tlp_t *tlp = owner->held;
    owner->held = tlp->next;
    if (owner->held == NULL) {
        owner->held_end = &owner->held;
    }
    pcie_end_release_at(owner->end, tlp, at_ps);
    pcie_tlp_unref(tlp);
}

void pair_release_all(struct pair_owner *owner)
{
    while (owner->held != NULL) {
        pair_release_one(owner);
    }
}

void pair_saturate(struct pair *pair, unsigned side, uint64_t tlps, uint32_t bytes)
{
    pair->owners[side].to_send = tlps;
    pair->owners[side].send_bytes = bytes;
    source_fill(&pair->owners[side]);
}

uint64_t pair_counter(const struct pair *pair, unsigned side, const char *name)
{
    bool found = false;
    uint64_t value = sim_counter_value(pair->sim, side == 0 ? "link.0" : "link.1", name, &found);
    EXPECT_TRUE(found);
    return value;
}
