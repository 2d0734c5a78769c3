// Futexes (futex(2)): which threads sleep on which word of memory, and which of them a wake-up reaches. The program's
// side compares the word and asks to sleep within one scheduling slot, in which no other thread runs, and a waiter is
// in the list from the beginning of its attach call: no wake-up is lost. Waiters are woken in the order in which they
// came.
//
// A word of shared memory is one object in all processes of a node that map it: the same offset of the same file
// (sim/platform/process_maps.h). The simulator asks for it only if two threads use words at the same offset of a page.
//
// Leaves out: priority inheritance (ENOSYS, as on kernels without it; verbs-shim/world/futex.c).
#include <errno.h>

#include "sim/attach/internal.h"
#include "sim/attach/mapping.h"
#include "sim/platform/process_maps.h"

struct shared_word {
    uint64_t device, inode, offset; // inode 0: not shared
};

static bool map_take(void *ctx, const struct plat_map *map)
{
    *(struct plat_map *)ctx = *map;
    return true;
}

static bool shared_word_find(pid_t pid, uint64_t address, struct shared_word *word_out)
{
    struct plat_maps maps;
    struct plat_map map;
    plat_maps_open(&maps, pid);
    bool found = plat_maps_walk(&maps, address, 1, map_take, &map);
    plat_maps_close(&maps);
    if (found) { // if not shared, each process has its own word
        *word_out = (struct shared_word){map.device, map.shared ? map.inode : 0, map.offset + (address - map.begin)};
    }
    return found;
}

static bool same_word(const struct attach_thread *waiter, const struct attach_process *process,
                      const struct attach_futex *futex)
{
    const struct attach_futex *other = &waiter->futex;
    if (waiter->process == process && other->address == futex->address) {
        return true;
    }
    if (!futex->shared || !other->shared || waiter->process->node != process->node ||
        (futex->address - other->address) % ATTACH_PAGE_BYTES != 0) {
        return false;
    }
    struct shared_word a, b;
    return shared_word_find(process->reach.pid, futex->address, &a) &&
           shared_word_find(waiter->process->reach.pid, other->address, &b) && a.inode != 0 && a.inode == b.inode &&
           a.device == b.device && a.offset == b.offset;
}

// The thread that has waited longest among those that came before `before`. NULL: none.
static struct attach_thread *waiter_first(const struct attach_process *of, const struct attach_futex *futex,
                                          uint64_t before)
{
    struct attach_thread *first = NULL, *thread;
    struct attach_process *process = NULL;
    unsigned index = 0;
    while ((thread = attach_thread_next(of->server, &process, &index)) != NULL) {
        if (thread->futex.state == ATTACH_FUTEX_WAITS && thread->futex.order < before &&
            (thread->futex.bitset & futex->bitset) != 0 &&
            (first == NULL || thread->futex.order < first->futex.order) && same_word(thread, of, futex)) {
            first = thread;
        }
    }
    return first;
}

static void let_go(struct attach_thread *thread, enum attach_futex_state state)
{
    if (thread->futex.state == ATTACH_FUTEX_WAITS) {
        thread->futex.state = state;
        sim_condition_signal(thread->process->server->sim, &thread->wait.woken);
    }
}

void attach_futex_begin(struct attach_thread *thread, const struct attach_request *request)
{
    const struct attach_args_futex_wait *args = &request->args.futex_wait;
    thread->futex = (struct attach_futex){
        .state = ATTACH_FUTEX_WAITS, .address = args->address, .shared = args->shared != 0, .bitset = args->bitset};
    thread->futex.order = ++thread->process->server->futex_order;
}

int64_t attach_serve_futex_wait(struct attach_thread *thread, const struct attach_args_futex_wait *args,
                                struct attach_reply_futex_wait *reply)
{
    bool works = args->work_ps != 0 && args->work_ps < args->deadline_ps;
    uint64_t deadline_ps = works ? args->work_ps : args->deadline_ps;
    (void)reply;
    const struct attach_process *process = thread->process;
    sim_t *sim = process->server->sim;
    while (thread->futex.state == ATTACH_FUTEX_WAITS && !process->ended &&
           process->writes.works == thread->seen.works && // else there is work for the thread's library
           sim_now_ps(sim) < attach_alarm_before(process, deadline_ps)) {
        attach_sleep(thread, ATTACH_WAIT_FUTEX | ATTACH_WAIT_WORK, deadline_ps, true);
    }
    enum attach_futex_state state = thread->futex.state;
    thread->futex.state = ATTACH_FUTEX_NONE;
    if (state == ATTACH_FUTEX_WOKEN) {
        return 0;
    }
    if (state == ATTACH_FUTEX_WAITS && sim_now_ps(sim) >= args->deadline_ps) {
        return -ETIMEDOUT;
    }
    // The call would wait for its own word again, which nobody wakes any more: a spurious wake-up instead (futex(2)).
    return thread->futex.moved ? 0 : -EINTR;
}

static uint64_t wake(const struct attach_process *process, const struct attach_futex *futex, uint64_t most)
{
    struct attach_thread *waiter;
    uint64_t woken = 0;
    while (woken < most && (waiter = waiter_first(process, futex, UINT64_MAX)) != NULL) {
        let_go(waiter, ATTACH_FUTEX_WOKEN);
        woken++;
    }
    return woken;
}

// The woken threads are scheduled first. Otherwise a thread that releases a lock and takes it again at once would keep
// it for ever.
static int64_t yield_to(const struct attach_process *process, uint64_t woken)
{
    if (woken != 0) {
        sim_thread_sleep(process->server->sim, 0);
    }
    return (int64_t)woken;
}

int64_t attach_serve_futex_wake(struct attach_thread *thread, const struct attach_args_futex_wake *args,
                                struct attach_reply_futex_wake *reply)
{
    const struct attach_futex futex = {.address = args->address, .shared = args->shared != 0, .bitset = args->bitset};
    (void)reply;
    return yield_to(thread->process, wake(thread->process, &futex, args->most));
}

int64_t attach_serve_futex_requeue(struct attach_thread *thread, const struct attach_args_futex_requeue *args,
                                   struct attach_reply_futex_requeue *reply)
{
    const struct attach_futex futex = {.address = args->address, .shared = args->shared != 0, .bitset = UINT32_MAX};
    uint64_t woken = wake(thread->process, &futex, args->most);
    uint64_t before = thread->process->server->futex_order + 1, moved = 0;
    struct attach_thread *waiter;
    while (moved < args->most_moved && (waiter = waiter_first(thread->process, &futex, before)) != NULL) {
        // The address is only valid in the process that requests this. A waiter of another process is woken instead.
        bool own = waiter->process == thread->process;
        waiter->futex.address = own ? args->to : waiter->futex.address;
        waiter->futex.moved = true;
        waiter->futex.order = ++thread->process->server->futex_order;
        if (!own) {
            let_go(waiter, ATTACH_FUTEX_INTERRUPTED);
        }
        moved++;
    }
    reply->moved = moved;
    return yield_to(thread->process, woken);
}

void attach_futex_recheck(const struct attach_server *server, const struct attach_process *of)
{
    struct attach_process *process = NULL;
    struct attach_thread *thread;
    unsigned index = 0;
    while ((thread = attach_thread_next(server, &process, &index)) != NULL) {
        if (of == NULL || of == process || (thread->futex.shared && of->node == process->node)) {
            let_go(thread, ATTACH_FUTEX_INTERRUPTED);
        }
    }
}
