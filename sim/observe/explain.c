// The critical path of messages and operations. A path begins with the call that posts a request. It ends with the poll
// that finds the result: for a message that takes a receive request, the receiver's completion; for other operations
// the requester's own completion.
//
// The kernel's records (sim/kernel/cause.h) hold a path only for a limited time, so each operation is analysed when it
// ends. The totals are kept (up to TOTALS_MAX of each kind of operation), and up to PATHS_MAX paths, evenly over the
// run. The path shown at the end is the one whose total is the median or nearest to it.
#include <stdlib.h>
#include <string.h>

#include <infiniband/verbs.h>

#include "sim/observe/internal.h"

enum { CLASSES_MAX = 256, PATHS_MAX = OBSERVE_EXPLAINED_MAX, TOTALS_MAX = 1 << 20 };

struct path {
    uint64_t total_ps, number, posted_ps;
    struct sim_piece *pieces;
    size_t count;
};

// Operations of one kind and size between two processes.
struct class
{
    const observe_process_t *from, *to;
    uint32_t opcode;
    uint64_t bytes, count, least_ps, most_ps;
    uint64_t *totals;
    size_t total_count, total_room;
    struct path paths[PATHS_MAX];
    unsigned path_count;
    uint64_t stride; // the path of each stride-th operation is kept
};

// Operations of one kind, also those that the user did not select.
struct seen {
    uint64_t count, least_bytes, most_bytes;
};

enum { OPCODES = 32 };

struct observe_explained {
    struct seen seen[OPCODES];
    struct class *classes[CLASSES_MAX];
    unsigned class_count;
    uint64_t missed, too_long; // operations of kinds beyond CLASSES_MAX; operations whose records are overwritten
};

// --- classes --------------------------------------------------------------------------------------------------------

static struct class *class_find(struct observe_explained *explained, const observe_process_t *from,
                                const observe_process_t *to, uint32_t opcode, uint64_t bytes)
{
    for (unsigned i = 0; i < explained->class_count; i++) {
        struct class *class = explained->classes[i];
        if (class->from == from && class->to == to && class->opcode == opcode && class->bytes == bytes) {
            return class;
        }
    }
    struct class *class = explained->class_count < CLASSES_MAX ? calloc(1, sizeof *class) : NULL;
    if (class != NULL) {
        class->from = from;
        class->to = to;
        class->opcode = opcode;
        class->bytes = bytes;
        class->stride = 1;
        explained->classes[explained->class_count++] = class;
    }
    return class;
}

static void total_add(struct class *class, uint64_t total_ps)
{
    class->least_ps = class->count == 1 || total_ps < class->least_ps ? total_ps : class->least_ps;
    class->most_ps = total_ps > class->most_ps ? total_ps : class->most_ps;
    if (class->total_count == class->total_room && class->total_room < TOTALS_MAX) {
        size_t room = class->total_room == 0 ? 64 : 2 * class->total_room;
        uint64_t *totals = realloc(class->totals, room * sizeof *totals);
        class->totals = totals != NULL ? totals : class->totals;
        class->total_room = totals != NULL ? room : class->total_room;
    }
    if (class->total_count < class->total_room) {
        class->totals[class->total_count++] = total_ps;
    }
}

// Drops every second path.
static void paths_thin(struct class *class)
{
    unsigned kept = 0;
    for (unsigned i = 0; i < class->path_count; i++) {
        if (i % 2 == 0) {
            class->paths[kept++] = class->paths[i];
        } else {
            free(class->paths[i].pieces);
        }
    }
    class->path_count = kept;
    class->stride *= 2;
}

// --- one operation --------------------------------------------------------------------------------------------------

// Drops what lies after the end of the operation.
static size_t pieces_trim(struct sim_piece *pieces, size_t count, uint64_t end_ps)
{
    while (count > 0 && pieces[count - 1].begin_ps >= end_ps) {
        count--;
    }
    if (count > 0 && pieces[count - 1].end_ps > end_ps) {
        pieces[count - 1].end_ps = end_ps;
    }
    return count;
}

// Joins neighbours of the same kind: a long wait consists of thousands of polls.
static size_t pieces_join(struct sim_piece *pieces, size_t count)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        struct sim_piece *last = kept > 0 ? &pieces[kept - 1] : NULL;
        bool mark = pieces[i].work != NULL && pieces[i].work->is_mark;
        if (last != NULL && !mark && last->work == pieces[i].work && last->component == pieces[i].component) {
            last->end_ps = pieces[i].end_ps;
        } else {
            pieces[kept++] = pieces[i];
        }
    }
    return kept;
}

static bool is_wanted(const struct observe_selection *select, const struct observe_request *request, uint32_t qp)
{
    return ((select->opcodes >> (request->opcode & 31)) & 1) != 0 &&
           (select->bytes == OBSERVE_ANY || select->bytes == request->bytes) && (select->qp == 0 || select->qp == qp);
}

static bool is_numbered(const struct observe_selection *select, uint64_t number)
{
    uint64_t last = select->last != 0 ? select->last : select->number;
    return number >= select->number && number <= last && number - select->number < OBSERVE_EXPLAINED_MAX;
}

static void seen_note(struct seen *seen, uint64_t bytes)
{
    seen->least_bytes = seen->count == 0 || bytes < seen->least_bytes ? bytes : seen->least_bytes;
    seen->most_bytes = bytes > seen->most_bytes ? bytes : seen->most_bytes;
    seen->count++;
}

void observe_explain(const observe_process_t *from, uint32_t qp, const observe_process_t *to,
                     const struct observe_request *request, uint64_t end_ps)
{
    observe_t *observe = from->observe;
    struct observe_explained *explained = observe->explained;
    const struct observe_selection *select = &observe->options.select;
    seen_note(&explained->seen[request->opcode % OPCODES], request->bytes);
    if (!is_wanted(select, request, qp) || end_ps < request->posted_ps) {
        return;
    }
    struct class *class = class_find(explained, from, to, request->opcode, request->bytes);
    if (class == NULL) {
        explained->missed++;
        return;
    }
    uint64_t number = ++class->count;
    total_add(class, end_ps - request->posted_ps);
    bool chosen = select->number != 0 ? is_numbered(select, number) : (number - 1) % class->stride == 0;
    struct sim_piece *pieces;
    size_t count;
    if (!chosen || !sim_cause_path_since(observe->sim, request->posted_ps, &pieces, &count)) {
        explained->too_long += chosen;
        return;
    }
    count = pieces_join(pieces, pieces_trim(pieces, count, end_ps));
    struct sim_piece *shorter = realloc(pieces, (count + 1) * sizeof *pieces);
    pieces = shorter != NULL ? shorter : pieces;
    if (class->path_count == PATHS_MAX) {
        paths_thin(class);
    }
    class->paths[class->path_count++] = (struct path){
        .total_ps = end_ps - request->posted_ps,
        .number = number,
        .posted_ps = request->posted_ps,
        .pieces = pieces,
        .count = count,
    };
}

// --- the end --------------------------------------------------------------------------------------------------------

static int totals_compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static uint64_t median_ps(struct class *class)
{
    qsort(class->totals, class->total_count, sizeof *class->totals, totals_compare);
    return class->total_count > 0 ? class->totals[(class->total_count - 1) / 2] : 0;
}

static const struct path *path_nearest(const struct class *class, uint64_t wanted_ps)
{
    const struct path *nearest = NULL;
    uint64_t least = UINT64_MAX;
    for (unsigned i = 0; i < class->path_count; i++) {
        uint64_t total = class->paths[i].total_ps, apart = total > wanted_ps ? total - wanted_ps : wanted_ps - total;
        if (apart < least) {
            least = apart;
            nearest = &class->paths[i];
        }
    }
    return nearest;
}

// The most frequent first; equal ones in the order of their first operation.
static void classes_sort(struct observe_explained *explained)
{
    for (unsigned i = 1; i < explained->class_count; i++) {
        struct class *class = explained->classes[i];
        unsigned at = i;
        for (; at > 0 && explained->classes[at - 1]->count < class->count; at--) {
            explained->classes[at] = explained->classes[at - 1];
        }
        explained->classes[at] = class;
    }
}

static const char *kind_name(uint32_t opcode)
{
    return opcode == OBSERVE_OPCODE_DMA     ? "DMA"
           : opcode == OBSERVE_OPCODE_FOUND ? "RDMA_WRITE until found in memory"
                                            : observe_opcode_name(opcode);
}

void observe_explained_kinds(const observe_t *observe, char *text, size_t room)
{
    size_t used = 0;
    text[0] = '\0';
    for (unsigned i = 0; i < OPCODES && observe->explained != NULL && used < room; i++) {
        const struct seen *seen = &observe->explained->seen[i];
        char least[32], most[32];
        observe_bytes_print(seen->least_bytes, least, sizeof least);
        observe_bytes_print(seen->most_bytes, most, sizeof most);
        if (seen->count != 0) {
            bool one = seen->least_bytes == seen->most_bytes;
            used +=
                (size_t)snprintf(text + used, room - used, "%s%s, %s%s%s (%llu)", used == 0 ? "" : "; ", kind_name(i),
                                 least, one ? "" : " to ", one ? "" : most, (unsigned long long)seen->count);
        }
    }
    if (observe->explained != NULL && observe->explained->too_long != 0 && used < room) {
        used += (size_t)snprintf(text + used, room - used, "%s%llu lasted longer than events are kept",
                                 used == 0 ? "" : "; ", (unsigned long long)observe->explained->too_long);
    }
    if (observe->datagrams != 0 && used < room) {
        snprintf(text + used, room - used, "%s%llu datagrams, which have no path to the other side here",
                 used == 0 ? "" : "; ", (unsigned long long)observe->datagrams);
    }
}

uint64_t observe_explained_missed(const observe_t *observe)
{
    return observe->explained != NULL ? observe->explained->missed : 0;
}

static void path_visit(const struct class *class, const struct path *path, observe_explained_fn visit, void *ctx)
{
    char name[224];
    snprintf(name, sizeof name, "%s, %s to %s #%llu", kind_name(class->opcode), class->from->node, class->to->node,
             (unsigned long long)path->number);
    const struct observe_operation operation = {
        .name = name,
        .node = class->from->node,
        .bytes = class->bytes,
        .count = class->count,
        .posted_ps = path->posted_ps,
        .total_ps = path->total_ps,
        .least_ps = class->least_ps,
        .most_ps = class->most_ps,
    };
    visit(ctx, &operation, path->pieces, path->count);
}

void observe_explained_visit(observe_t *observe, observe_explained_fn visit, void *ctx)
{
    struct observe_explained *explained = observe->explained;
    if (explained == NULL) {
        return;
    }
    classes_sort(explained);
    for (unsigned i = 0; i < explained->class_count; i++) {
        struct class *class = explained->classes[i];
        bool each = observe->options.select.last != 0;
        const struct path *median = each ? NULL : path_nearest(class, median_ps(class));
        if (median != NULL) {
            path_visit(class, median, visit, ctx);
        }
        for (unsigned k = 0; each && k < class->path_count; k++) {
            path_visit(class, &class->paths[k], visit, ctx);
        }
    }
}

bool observe_explain_begin(observe_t *observe)
{
    observe->explained = calloc(1, sizeof *observe->explained);
    return observe->explained != NULL;
}

void observe_explain_free(observe_t *observe)
{
    struct observe_explained *explained = observe->explained;
    for (unsigned i = 0; explained != NULL && i < explained->class_count; i++) {
        for (unsigned k = 0; k < explained->classes[i]->path_count; k++) {
            free(explained->classes[i]->paths[k].pieces);
        }
        free(explained->classes[i]->totals);
        free(explained->classes[i]);
    }
    if (explained != NULL) {
        free(explained);
    }
}
