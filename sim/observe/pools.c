// Libraries that post receive requests with their own buffers and copy what arrives to the program's memory: eager
// messages.
#include <inttypes.h>
#include <string.h>

#include <infiniband/verbs.h>

#include "sim/observe/internal.h"

// The number of messages from which on a hint is printed.
enum { MANY = 16 };

static const struct {
    const char *file;  // the start of its file name
    const char *name;  // as users know it
    const char *limit; // the setting of the size from which on messages go directly to the program's memory
} pools[OBSERVE_POOLS] = {
    {"libuct_ib", "UCX", "UCX_RNDV_THRESH"},
    {"mca_btl_openib", "Open MPI's openib", "btl_openib_eager_limit"},
    {"libfabric", "libfabric", "FI_OFI_RXM_BUFFER_SIZE"},
};

void observe_pool_posted(observe_process_t *process, const struct journal_record *record)
{
    enum observe_kind kind = record->call == JOURNAL_POST_RECV ? OBSERVE_QP : OBSERVE_SRQ;
    struct observe_object *queue = observe_object_find(process, kind, record->context, record->receive.queue);
    for (unsigned i = 0; queue != NULL && queue->pool == 0 && i < OBSERVE_POOLS; i++) {
        if (strncmp(record->receive.poster, pools[i].file, strlen(pools[i].file)) == 0) {
            queue->pool = (uint8_t)(i + 1);
        }
    }
}

void observe_pool_received(const struct observe_object *qp, const struct journal_completion *completion)
{
    const struct observe_object *queue = qp;
    if (qp->qp.made.srq != 0) {
        queue = observe_object_find(qp->process, OBSERVE_SRQ, qp->context, qp->qp.made.srq - 1);
    }
    if (queue != NULL && queue->pool != 0 && completion->opcode == IBV_WC_RECV) {
        struct observe_pool *pool = &qp->process->pools[queue->pool - 1];
        pool->count++;
        pool->bytes += completion->bytes;
    }
}

void observe_pools_print(const observe_process_t *process, FILE *out)
{
    for (unsigned i = 0; i < OBSERVE_POOLS; i++) {
        const struct observe_pool *pool = &process->pools[i];
        char bytes[32];
        if (pool->count >= MANY) {
            observe_bytes_print(pool->bytes, bytes, sizeof bytes);
            fprintf(out,
                    "  hint: eager copies: %" PRIu64 " messages (%s) came into receive buffers of %s, which copies "
                    "them from there (this takes time on a real machine, and none here); from %s on they go directly "
                    "to the program's memory\n",
                    pool->count, bytes, pools[i].name, pools[i].limit);
        }
    }
}

void observe_pools_yaml(const observe_process_t *process, FILE *out)
{
    unsigned count = 0;
    for (unsigned i = 0; i < OBSERVE_POOLS; i++) {
        const struct observe_pool *pool = &process->pools[i];
        if (pool->count != 0) {
            fprintf(out, "%s{library: %s, count: %" PRIu64 ", bytes: %" PRIu64 "}",
                    count++ == 0 ? "    eager: [" : ", ", pools[i].name, pool->count, pool->bytes);
        }
    }
    if (count != 0) {
        fprintf(out, "]\n");
    }
}
