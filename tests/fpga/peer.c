#include "peer.h"

#include <stdlib.h>
#include <string.h>

static void out_flush(void *ctx, pcie_end_t *end)
{
    struct peer *peer = ctx;
    while (peer->out != NULL) {
        pcie_tlp_t *rest = peer->out->next;
        if (!pcie_end_offer(end, peer->out)) {
            return;
        }
        peer->out = rest;
    }
    peer->out_end = &peer->out;
}

static void out_put(struct peer *peer, pcie_tlp_t *tlp)
{
    tlp->next = NULL;
    *peer->out_end = tlp;
    peer->out_end = &tlp->next;
}

static void data_answer(struct peer *peer, const pcie_tlp_t *request)
{
    uint64_t address = pcie_tlp_first_byte(request);
    uint32_t total = pcie_tlp_byte_count(request), done = 0;
    while (done < total) {
        uint32_t most = peer->completion_bytes - (uint32_t)((address + done) % 128);
        uint32_t bytes = total - done < most ? total - done : most;
        out_put(peer, pcie_tlp_completion(request, 0x200, done, bytes, peer->memory + (address + done - peer->base)));
        done += bytes;
    }
}

static void answer_run(void *ctx)
{
    struct peer_read *read = ctx;
    struct peer *peer = read->peer;
    if (read->number < peer->newest_answered) {
        peer->overtaken++;
    } else {
        peer->newest_answered = read->number;
    }
    data_answer(peer, read->request);
    pcie_tlp_unref(read->request);
    read->request = NULL;
    peer->at_work--;
    out_flush(peer, peer->end);
}

static void read_take(struct peer *peer, pcie_tlp_t *tlp)
{
    unsigned number = peer->read_count++;
    if (number < PEER_LOG_MAX) {
        peer->read_log[number] =
            (struct peer_access){sim_now_ps(peer->sim), pcie_tlp_first_byte(tlp), pcie_tlp_byte_count(tlp)};
    }
    if (number >= peer->silent_from) {
        return;
    }
    if (number >= peer->fail_from) {
        out_put(peer, pcie_tlp_error(tlp, 0x200, peer->status));
        out_flush(peer, peer->end);
        return;
    }
    struct peer_read *read = peer->reads;
    while (read->request != NULL) {
        read++;
    }
    pcie_tlp_ref(tlp);
    read->request = tlp;
    read->number = number;
    peer->at_work++;
    peer->at_work_peak = peer->at_work > peer->at_work_peak ? peer->at_work : peer->at_work_peak;
    uint64_t extra_ps = peer->jitter_ps == 0 ? 0 : sim_random_below(&peer->random, peer->jitter_ps);
    sim_event_schedule(peer->sim, &read->event, peer->latency_ps + extra_ps);
}

static void write_take(struct peer *peer, pcie_tlp_t *tlp)
{
    uint64_t address = pcie_tlp_first_byte(tlp);
    uint32_t bytes = pcie_tlp_byte_count(tlp);
    if (peer->write_count < PEER_LOG_MAX) {
        peer->write_log[peer->write_count] = (struct peer_access){sim_now_ps(peer->sim), address, bytes};
    }
    peer->write_count++;
    memcpy(peer->memory + (address - peer->base), pcie_tlp_data(tlp) + (address & 3), bytes);
}

static void answer_take(struct peer *peer, pcie_tlp_t *tlp)
{
    uint32_t bytes = pcie_tlp_byte_count(tlp);
    memcpy(peer->answer + (peer->asked_bytes - tlp->byte_count), pcie_tlp_data(tlp) + (tlp->lower_address & 3), bytes);
    peer->answer_bytes += bytes;
    peer->answer_ends[peer->answer_count++ % 64] = (uint8_t)((tlp->lower_address + bytes) & 0x7f);
}

void peer_ask(struct peer *peer, pcie_pool_t *pool, uint64_t address, uint32_t bytes)
{
    peer->asked_bytes = bytes;
    peer->answer_bytes = 0;
    peer->answer_count = 0;
    out_put(peer, pcie_tlp_read(pool, 0x200, 0, address, bytes));
    out_flush(peer, peer->end);
}

static void receive(void *ctx, pcie_end_t *end, pcie_tlp_t *tlp)
{
    struct peer *peer = ctx;
    if (tlp->kind == PCIE_TLP_MWR) {
        write_take(peer, tlp);
        if (peer->holds_writes) {
            tlp->next = peer->held;
            peer->held = tlp;
            return;
        }
    } else if (tlp->kind == PCIE_TLP_MRD) {
        read_take(peer, tlp);
    } else if (tlp->kind == PCIE_TLP_CPLD) {
        answer_take(peer, tlp);
    }
    pcie_end_release(end, tlp);
    pcie_tlp_unref(tlp);
}

static const struct pcie_end_ops OPS = {.receive = receive, .ready = out_flush};

void peer_init(struct peer *peer, sim_t *sim, pcie_end_t *end, uint64_t base)
{
    memset(peer, 0, sizeof *peer);
    peer->sim = sim;
    peer->end = end;
    peer->base = base;
    peer->memory = calloc(1, PEER_BYTES);
    peer->latency_ps = 500000;
    peer->completion_bytes = 256;
    peer->fail_from = UINT32_MAX;
    peer->silent_from = UINT32_MAX;
    peer->out_end = &peer->out;
    sim_random_init(&peer->random, 1, "peer");
    for (unsigned i = 0; i < PEER_READS_MAX; i++) {
        peer->reads[i].peer = peer;
        sim_event_init(&peer->reads[i].event, answer_run, &peer->reads[i]);
    }
    pcie_end_attach(end, &OPS, peer);
}

void peer_release(struct peer *peer)
{
    peer->holds_writes = false;
    while (peer->held != NULL) {
        pcie_tlp_t *tlp = peer->held;
        peer->held = tlp->next;
        pcie_end_release(peer->end, tlp);
        pcie_tlp_unref(tlp);
    }
}

void peer_fini(struct peer *peer)
{
    for (unsigned i = 0; i < PEER_READS_MAX; i++) {
        if (peer->reads[i].request != NULL) {
            pcie_tlp_unref(peer->reads[i].request);
        }
    }
    while (peer->out != NULL) {
        pcie_tlp_t *tlp = peer->out;
        peer->out = tlp->next;
        pcie_tlp_unref(tlp);
    }
    free(peer->memory);
}
