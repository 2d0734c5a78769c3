// A measured point of a flow on libibverbs: the contents of memory before and after it, and the turns of a ping-pong.
#include <errno.h>
#include <string.h>

#include "scenarios/workloads/flow.h"

#define REST 0xa5 // bytes of a slot around the message

struct count_letter {
    uint32_t sent[FLOW_QPS_MAX];
    uint64_t took_ps;
};

static int wrong(const struct flow_end *end, const char *what, uint32_t qp, long byte)
{
    end->workload->fail(end->workload->ctx, "%s of %llu B: %s of queue pair %u: byte %ld is wrong", end->program,
                        (unsigned long long)end->bytes, what, qp, byte);
    return -EBADMSG;
}

// The seed of the pattern that the rank sends on the queue pair.
static uint32_t seed_of(const struct flow_end *end, uint32_t rank, uint32_t qp)
{
    return end->point * 2 * FLOW_QPS_MAX + (rank & 1) * FLOW_QPS_MAX + qp;
}

// A rank whose library works only when it is called continues to call it until all ranks have arrived, because its
// posted requests may still be in flight.
int flow_barrier(struct flow_end *end)
{
    const struct workload *w = end->workload;
    unsigned char mine = 0, all[WORKLOAD_RANKS_MAX];
    uint32_t until = ++end->barriers * w->ranks;
    int error = 0;
    w->shared->arrivals++;
    while (error == 0 && end->serves && w->shared->arrivals < until) {
        error = flow_take_sent(end);
    }
    w->gather(w->ctx, &mine, all, sizeof mine);
    return error;
}

// --- before ---------------------------------------------------------------------------------------------------------

static void memories_fill(struct flow_end *end)
{
    const struct flow_memory *source = &end->source, *target = &end->target;
    uint32_t rank = end->workload->rank;
    memset(region_data(&source->region), REST, source->region.capacity);
    memset(region_data(&target->region), REST, target->region.capacity);
    region_guard(&source->region);
    region_guard(&target->region);
    for (uint32_t qp = 0; qp < end->qp_count; qp++) {
        if (flow_is_atomic(end)) {
            memset(flow_memory_data(target, qp), 0, FLOW_ATOMIC_BYTES);
            continue;
        }
        size_t bytes = (size_t)end->bytes;
        region_fill(&source->region, flow_memory_offset(source, qp), bytes, seed_of(end, rank, qp));
        region_invert(&target->region, flow_memory_offset(target, qp), bytes, seed_of(end, rank ^ 1, qp));
        if (flow_is_marked(end)) {
            flow_memory_data(target, qp)[bytes - 1] = 0;
        }
    }
}

int flow_point_begin(struct flow_end *end, uint64_t bytes)
{
    end->bytes = bytes;
    memset(end->sent, 0, sizeof end->sent);
    memset(end->done, 0, sizeof end->done);
    memset(end->arrived, 0, sizeof end->arrived);
    end->done_all = end->arrived_all = 0;
    memories_fill(end);
    if (end->workload->rank == 0) {
        end->workload->shared->over = false;
    }
    int error = flow_memory_push(end, &end->source);
    if (error == 0) {
        error = flow_memory_push(end, &end->target);
    }
    if (error == 0) {
        error = flow_meet(end);
    }
    return error == 0 ? flow_barrier(end) : error;
}

int flow_beside_wait(struct flow_end *end)
{
    return end->workload->verbs.beside_bytes != 0 ? flow_barrier(end) : 0;
}

// --- after ----------------------------------------------------------------------------------------------------------

// The bytes of a slot after the message, and for datagrams those before its GRH, must be unchanged.
static int rest_check(const struct flow_end *end, uint32_t qp)
{
    const struct flow_memory *target = &end->target;
    const uint8_t *data = flow_memory_data(target, qp);
    size_t begin = (size_t)end->bytes, limit = target->stride_bytes - target->lead_bytes;
    // All bytes are equal if each equals the next: a slot may be long, and memcmp reads words.
    if (begin >= limit || (data[begin] == REST && memcmp(data + begin, data + begin + 1, limit - begin - 1) == 0)) {
        return 0;
    }
    for (size_t i = begin; i < limit; i++) {
        if (data[i] != REST) {
            return wrong(end, "the message", qp, (long)i);
        }
    }
    return 0;
}

static int message_check(const struct flow_end *end, uint32_t qp, uint32_t turns)
{
    const struct flow_memory *target = &end->target;
    size_t bytes = (size_t)end->bytes - (turns != 0);
    uint32_t seed = seed_of(end, end->workload->rank ^ 1, qp);
    long bad;
    if (!region_holds(&target->region, flow_memory_offset(target, qp), bytes, seed, &bad)) {
        return wrong(end, "the message", qp, bad);
    }
    if (turns != 0 && flow_memory_data(target, qp)[bytes] != (uint8_t)turns) {
        return wrong(end, "the message", qp, (long)bytes);
    }
    return rest_check(end, qp);
}

static int word_check(const struct flow_end *end, uint32_t qp, uint64_t expected)
{
    uint64_t word;
    memcpy(&word, flow_memory_data(&end->target, qp), sizeof word);
    return word == expected ? rest_check(end, qp) : wrong(end, "the word", qp, 0);
}

static int slots_check(struct flow_end *end, uint32_t turns)
{
    struct count_letter mine = {.took_ps = end->took_ps}, all[WORKLOAD_RANKS_MAX];
    memcpy(mine.sent, end->sent, sizeof mine.sent);
    end->workload->gather(end->workload->ctx, &mine, all, sizeof mine);
    const uint32_t *theirs = all[end->workload->rank ^ 1].sent;
    end->peer_took_ps = all[end->workload->rank ^ 1].took_ps;
    int error = 0;
    for (uint32_t qp = 0; error == 0 && qp < end->qp_count; qp++) {
        if (flow_is_atomic(end)) {
            error = word_check(end, qp, theirs[qp]);
        } else if ((flow_is_asked(end) ? end->sent[qp] : theirs[qp]) != 0) {
            error = message_check(end, qp, turns);
        } else {
            error = rest_check(end, qp);
        }
    }
    return error;
}

int flow_point_end(struct flow_end *end, uint32_t turns)
{
    int error = flow_wait_done(end);
    if (error == 0) {
        error = flow_meet(end);
    }
    if (error == 0) {
        error = flow_barrier(end);
    }
    if (error == 0) {
        error = flow_memory_pull(end, &end->target);
    }
    if (error == 0) {
        error = slots_check(end, turns);
    }
    if (error == 0 && !region_is_guarded(&end->target.region)) {
        error = wrong(end, "the guards around the messages", 0, 0);
    }
    end->point++;
    return error;
}

// --- turns of a ping-pong --------------------------------------------------------------------------------------------

bool flow_is_marked(const struct flow_end *end)
{
    return end->turns && end->source.device == NULL && end->target.device == NULL;
}

void flow_turn_mark(struct flow_end *end, uint32_t turn)
{
    if (flow_is_marked(end)) {
        flow_memory_data(&end->source, 0)[end->bytes - 1] = (uint8_t)turn;
    }
}

int flow_turn_check(struct flow_end *end, uint32_t turn)
{
    bool right = !flow_is_marked(end) || flow_memory_data(&end->target, 0)[end->bytes - 1] == (uint8_t)turn;
    return right ? 0 : wrong(end, "a turn's message", 0, (long)end->bytes - 1);
}

static bool turn_seen(const struct flow_end *end, const volatile uint8_t *byte, uint32_t turn)
{
    bool found = *byte == (uint8_t)turn;
    backend_polled(end->backend, byte - (uintptr_t)byte % sizeof(uint64_t), found);
    return found;
}

// A library that writes received data only when it is called must be called: the loop of a program for it.
static int turn_poll(struct flow_end *end, const volatile uint8_t *byte, uint32_t turn)
{
    int error = 0;
    while (error == 0 && !turn_seen(end, byte, turn)) {
        end->backend->ops->cost(end->backend->ctx, BACKEND_COST_LOAD_STORE, 1);
        error = flow_take_sent(end);
    }
    return error;
}

int flow_turn_wait(struct flow_end *end, uint32_t turn)
{
    const struct backend *backend = end->backend;
    const uint8_t *byte = flow_memory_data(&end->target, 0) + end->bytes - 1;
    unsigned shift = (unsigned)((uintptr_t)byte % sizeof(uint64_t)) * 8;
    const volatile uint64_t *word = (const volatile uint64_t *)(const void *)(byte - shift / 8);
    if (end->serves) {
        return turn_poll(end, byte, turn);
    }
    int error =
        backend->ops->wait_word(backend->ctx, word, UINT64_C(0xff) << shift, (uint64_t)(uint8_t)turn << shift, 0);
    return error == 0 ? 0 : flow_give_up(end, -error, "waiting for the last byte");
}
