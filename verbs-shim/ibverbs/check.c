#include "verbs-shim/ibverbs/check.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

enum { HASHED_MAX = 32768, CHUNK_BYTES = 4096 }; // HASHED_MAX: at the start, and again at the end

struct posted {
    uint64_t wr_id, address, bytes, hash;
    uint32_t opcode;
    int watch; // -1: none
    bool signaled, is_hashed;
};

// Outstanding requests, in order.
struct queue {
    struct posted *list;
    unsigned first, count, room;
};

struct ibverbs_checked {
    struct queue sends, receives;
};

static const struct backend_journal_ops *journal_of(const struct ibverbs_qp *qp, void **ctx_out)
{
    const struct ibverbs_library *library = qp->object.context->device->library;
    *ctx_out = library->process->backend.ctx;
    return library->journal;
}

// --- queues ---------------------------------------------------------------------------------------------------------

// Not from the program's heap: this keeps the program's own buffers, and so the packets of their data, at the same
// addresses.
static void *pages_new(size_t bytes)
{
    void *pages = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return pages != MAP_FAILED ? pages : NULL;
}

static void pages_free(void *pages, size_t bytes)
{
    if (pages != NULL) {
        (void)munmap(pages, bytes);
    }
}

static struct ibverbs_checked *checked_of(struct ibverbs_qp *qp)
{
    if (qp->checked == NULL) {
        qp->checked = pages_new(sizeof *qp->checked);
    }
    return qp->checked;
}

static bool put(struct queue *queue, unsigned room, const struct posted *posted)
{
    if (queue->list == NULL) {
        queue->list = pages_new((room + 1) * sizeof *queue->list);
        queue->room = queue->list != NULL ? room + 1 : 0;
    }
    bool fits = queue->count < queue->room;
    if (fits) {
        queue->list[(queue->first + queue->count++) % queue->room] = *posted;
    }
    return fits;
}

// --- memory ---------------------------------------------------------------------------------------------------------

// The kernel reads the memory, as a program may have unmapped a registered range. false: it is not mapped.
static bool hash_add(uint64_t *hash, uint64_t address, uint64_t bytes)
{
    unsigned char chunk[CHUNK_BYTES];
    for (uint64_t done = 0; done < bytes; done += sizeof chunk) {
        size_t size = bytes - done < sizeof chunk ? (size_t)(bytes - done) : sizeof chunk;
        const struct iovec to = {chunk, size}, from = {(void *)(uintptr_t)(address + done), size};
        if (process_vm_readv(getpid(), &to, 1, &from, 1, 0) != (ssize_t)size) {
            return false;
        }
        for (size_t i = 0; i < size; i++) {
            *hash = (*hash ^ chunk[i]) * 0x100000001b3u;
        }
    }
    return true;
}

static bool hash_of(uint64_t address, uint64_t bytes, uint64_t *hash_out)
{
    uint64_t first = bytes < HASHED_MAX ? bytes : (uint64_t)HASHED_MAX;
    uint64_t last = bytes - first < HASHED_MAX ? bytes - first : (uint64_t)HASHED_MAX;
    *hash_out = 0xcbf29ce484222325u;
    return hash_add(hash_out, address, first) && hash_add(hash_out, address + bytes - last, last);
}

// true: the range is inside a region of the program's own memory, so it is mapped.
static bool is_registered(const struct ibverbs_qp *qp, uint64_t address, uint64_t bytes)
{
    const struct ibverbs_object *at = qp->object.context->objects[IBVERBS_MR];
    bool found = false;
    for (; at != NULL && !found; at = at->next) {
        const struct ibverbs_mr *mr = at->container;
        uint64_t offset = address - mr->iova;
        found = mr->peer_pin == NULL && mr->iova == (uintptr_t)mr->base.addr && offset <= mr->base.length &&
                bytes <= mr->base.length - offset;
    }
    return found;
}

// --- posted ---------------------------------------------------------------------------------------------------------

static void mistake_note(struct ibverbs_qp *qp, const struct posted *posted, bool is_receive,
                         enum journal_mistake mistake, uint64_t instruction)
{
    struct journal_record record = {.instruction = instruction,
                                    .check = {.address = posted->address,
                                              .bytes = posted->bytes,
                                              .wr_id = posted->wr_id,
                                              .mistake = mistake,
                                              .qp = qp->base.qp_num,
                                              .opcode = posted->opcode,
                                              .is_receive = is_receive}};
    ibverbs_note_end(qp->object.context, 0, JOURNAL_CHECK, 0, &record);
}

// verify: false if the device has not touched the memory, or if this is unknown.
static void posted_end(struct ibverbs_qp *qp, const struct posted *posted, bool is_receive, bool verify)
{
    void *ctx;
    uint64_t instruction = 0;
    const struct backend_journal_ops *journal = journal_of(qp, &ctx);
    if (posted->watch >= 0 && journal->unwatch(ctx, posted->watch, &instruction) && verify) {
        mistake_note(qp, posted, is_receive, JOURNAL_MISTAKE_ACCESSED, instruction);
    }
    uint64_t hash;
    if (verify && posted->is_hashed && is_registered(qp, posted->address, posted->bytes) &&
        hash_of(posted->address, posted->bytes, &hash) && hash != posted->hash) {
        mistake_note(qp, posted, is_receive, JOURNAL_MISTAKE_CHANGED, 0);
    }
}

static struct posted posted_make(struct ibverbs_qp *qp, uint64_t wr_id, const struct ibv_sge *list, int count,
                                 bool is_source)
{
    void *ctx;
    struct posted posted = {.wr_id = wr_id, .watch = -1, .signaled = true};
    if (count <= 0 || list[0].length == 0 || !is_registered(qp, list[0].addr, list[0].length)) {
        return posted;
    }
    posted.address = list[0].addr;
    posted.bytes = list[0].length;
    if (is_source) {
        posted.is_hashed = hash_of(posted.address, posted.bytes, &posted.hash);
    } else {
        const struct backend_journal_ops *journal = journal_of(qp, &ctx);
        posted.watch = journal->watch(ctx, (const void *)(uintptr_t)posted.address, posted.bytes);
    }
    return posted;
}

void ibverbs_check_send(struct ibverbs_qp *qp, const struct ibv_send_wr *wr)
{
    struct ibverbs_checked *checked = checked_of(qp);
    bool is_source = ibverbs_opcode_has(wr->opcode, HCA_HAS_DATA);
    bool is_inline = (wr->send_flags & IBV_SEND_INLINE) != 0;
    if (checked != NULL) {
        struct posted posted = posted_make(qp, wr->wr_id, wr->sg_list, is_inline ? 0 : wr->num_sge, is_source);
        posted.opcode = wr->opcode;
        posted.signaled = qp->all_signaled || (wr->send_flags & IBV_SEND_SIGNALED) != 0;
        if (!put(&checked->sends, qp->attr.cap.max_send_wr, &posted)) {
            posted_end(qp, &posted, false, false);
        }
    }
}

void ibverbs_check_receive(struct ibverbs_qp *qp, const struct ibv_recv_wr *wr)
{
    struct ibverbs_checked *checked = checked_of(qp);
    if (checked != NULL) {
        const struct posted posted = posted_make(qp, wr->wr_id, wr->sg_list, wr->num_sge, false);
        if (!put(&checked->receives, qp->attr.cap.max_recv_wr, &posted)) {
            posted_end(qp, &posted, true, false);
        }
    }
}

// --- complete -----------------------------------------------------------------------------------------------------

void ibverbs_check_completion(struct ibverbs_cq *cq, const struct ibv_wc *wc)
{
    struct ibverbs_qp *qp = ibverbs_qp_of_number(cq->object.context, wc->qp_num);
    bool error = wc->status != IBV_WC_SUCCESS, found = false;
    // The devices set the opcode of completions in error as well.
    bool is_receive = (wc->opcode & IBV_WC_RECV) != 0;
    struct queue *queue = qp == NULL || qp->checked == NULL ? NULL
                          : is_receive                      ? &qp->checked->receives
                                                            : &qp->checked->sends;
    while (queue != NULL && queue->count > 0 && !found) {
        const struct posted posted = queue->list[queue->first];
        queue->first = (queue->first + 1) % queue->room;
        queue->count--;
        found = posted.signaled || (error && posted.wr_id == wc->wr_id);
        posted_end(qp, &posted, is_receive, !error);
    }
}

static void queue_end(struct ibverbs_qp *qp, struct queue *queue, bool is_receive)
{
    for (; queue->count > 0; queue->count--) {
        posted_end(qp, &queue->list[queue->first], is_receive, false);
        queue->first = (queue->first + 1) % queue->room;
    }
    pages_free(queue->list, queue->room * sizeof *queue->list);
}

void ibverbs_check_end(struct ibverbs_qp *qp)
{
    if (qp->checked != NULL) {
        queue_end(qp, &qp->checked->sends, false);
        queue_end(qp, &qp->checked->receives, true);
        pages_free(qp->checked, sizeof *qp->checked);
        qp->checked = NULL;
    }
}
