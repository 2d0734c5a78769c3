// The functions that libraries call: time, waits, threads and processes (attach.h).
#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "verbs-shim/attach/client.h"
#include "verbs-shim/attach/client_internal.h"
#include "verbs-shim/attach/kernel_call.h"
#include "verbs-shim/attach/real_time.h"

#define API __attribute__((visibility("default")))

API enum attach_mode attach_mode(void)
{
    const struct attach_greeting *greeting = attach_greeting();
    return greeting == NULL ? ATTACH_NONE : (enum attach_mode)greeting->mode;
}

static bool timed(void)
{
    return attach_mode() == ATTACH_TIMED;
}

API const struct attach_environment *attach_environment(void)
{
    return attach_greeting() != NULL ? &attach_client.environment : NULL;
}

API uint64_t attach_now_ps(void)
{
    struct attach_slot *slot = timed() ? attach_slot() : NULL;
    if (slot == NULL) {
        return 0;
    }
    if (!attach_own.in_call && atomic_load_explicit(&slot->entry_count, memory_order_relaxed) != 0) {
        (void)attach_call(slot, ATTACH_OP_NOTHING);
    }
    attach_compute_pay();
    return slot->now_ps + attach_own.tail_ps;
}

API void attach_spend_ps(uint64_t ps)
{
    if (timed() && attach_slot() != NULL && !attach_own.in_call) {
        attach_own.tail_ps += ps;
    }
}

static enum attach_woken woken_by(int64_t result)
{
    return result < 0 ? ATTACH_WOKEN_OUTSIDE : (enum attach_woken)result;
}

API enum attach_woken attach_wait(unsigned flags, uint64_t deadline_ps)
{
    uint64_t work_ps;
    if (!timed()) {
        attach_sleep_really(ATTACH_REAL_FUNCTIONAL_CALL_NS);
        return ATTACH_WOKEN_OUTSIDE;
    }
    if (deadline_ps == 0 || (flags & ATTACH_WAIT_OTHERS) != 0) { // for its turn only
        return woken_by(attach_request(wait, NULL, .flags = flags, .deadline_ps = deadline_ps));
    }
    bool own = (flags & ATTACH_WAIT_EVENTS) != 0;
    if (attach_work_before(own, &work_ps)) {
        return ATTACH_WOKEN_OUTSIDE;
    }
    enum attach_woken woken =
        woken_by(attach_request(wait, NULL, .flags = flags | attach_progress_flags(), .deadline_ps = deadline_ps,
                                .work_ps = work_ps, .repeats = attach_progress_repeats()));
    attach_work_after(own);
    return woken;
}

API enum attach_woken attach_wait_descriptors(const struct attach_watch *watches, unsigned count, uint64_t deadline_ps)
{
    struct attach_slot *slot = timed() ? attach_slot_to_call() : NULL;
    int fds[ATTACH_WATCHES_MAX];
    struct attach_args_wait wait = {.flags = ATTACH_WAIT_DESCRIPTORS | ATTACH_WAIT_EVENTS, .deadline_ps = deadline_ps};
    if (slot == NULL || count > ATTACH_WATCHES_MAX) {
        return attach_wait(ATTACH_WAIT_OUTSIDE, deadline_ps);
    }
    if (attach_work_before(true, &wait.work_ps)) {
        return ATTACH_WOKEN_OUTSIDE;
    }
    for (unsigned i = 0; i < count; i++) {
        fds[i] = watches[i].fd;
        wait.events.list[i] = watches[i].events;
    }
    if (count > 0 && !attach_descriptors_send(fds, count)) {
        return attach_wait(ATTACH_WAIT_OUTSIDE, deadline_ps);
    }
    wait.watches = count;
    wait.repeats = attach_progress_repeats();
    enum attach_woken woken = woken_by(attach_request_wait(&wait, NULL));
    attach_work_after(true);
    return woken;
}

API int attach_futex_wait(const void *word, bool shared, uint32_t bitset, uint64_t deadline_ps)
{
    uint64_t work_ps;
    if (!timed() || attach_slot_to_call() == NULL) {
        attach_sleep_really(ATTACH_REAL_FUNCTIONAL_CALL_NS);
        return -EINTR;
    }
    if (attach_work_before(false, &work_ps)) {
        return -EINTR;
    }
    int status =
        (int)attach_request(futex_wait, NULL, .address = (uintptr_t)word, .shared = shared, .bitset = bitset,
                            .deadline_ps = deadline_ps, .work_ps = work_ps, .repeats = attach_progress_repeats());
    attach_work_after(false);
    return status;
}

API int attach_futex_wake(const void *word, bool shared, uint32_t bitset, uint32_t most)
{
    if (!timed() || attach_slot_to_call() == NULL) {
        return 0;
    }
    return (int)attach_request(futex_wake, NULL, .address = (uintptr_t)word, .shared = shared, .bitset = bitset,
                               .most = most);
}

API int attach_futex_requeue(const void *word, bool shared, uint32_t most, uint32_t most_moved, const void *to,
                             uint32_t *moved_out)
{
    struct attach_reply_futex_requeue reply = {0};
    *moved_out = 0;
    if (!timed() || attach_slot_to_call() == NULL) {
        return 0;
    }
    int woken = (int)attach_request(futex_requeue, &reply, .address = (uintptr_t)word, .shared = shared, .most = most,
                                    .most_moved = most_moved, .to = (uintptr_t)to);
    *moved_out = (uint32_t)reply.moved;
    return woken;
}

API void attach_found(void)
{
    attach_own.found = true;
}

API void attach_alarm(uint64_t deadline_ps, void (*due)(void))
{
    if (timed()) {
        atomic_store(&attach_client.alarm, due);
        atomic_store(&attach_client.segment->alarm_ps, deadline_ps);
    }
}

API void attach_own_signal(int number)
{
    attach_client.own_signals |= UINT64_C(1) << (number - 1);
}

API uint32_t attach_first_thread_taking(int number)
{
    const struct attach_slot *first = timed() ? &attach_client.segment->slots[0] : NULL;
    bool takes = first != NULL && attach_own.slot != first && atomic_load(&first->state) == ATTACH_SLOT_TAKEN &&
                 (attach_client.first_blocked >> (number - 1) & 1) == 0;
    return takes ? first->tid : 0;
}

API unsigned attach_interrupts(void)
{
    return attach_own.interrupts;
}

API unsigned attach_interrupts_ending(void)
{
    return attach_own.interrupts_ending;
}

API unsigned attach_calls(void)
{
    return attach_own.calls;
}

API void attach_settle(void)
{
    struct attach_slot *slot = timed() ? attach_slot() : NULL;
    uint32_t count = slot != NULL ? atomic_load_explicit(&slot->entry_count, memory_order_relaxed) : 0;
    bool stores = false;
    for (uint32_t i = 0; i < count; i++) {
        stores = stores || (slot->entries[i].kind == ATTACH_ENTRY_COMBINED &&
                            (unsigned)(slot->entries[i].bar - BACKEND_BAR_GPU0) < BACKEND_GPUS_MAX);
    }
    if (stores && !attach_own.in_call) {
        (void)attach_call(slot, ATTACH_OP_NOTHING);
    }
}

API void attach_outside(enum attach_outside what)
{
    if (timed()) {
        atomic_fetch_or(&attach_client.segment->outside, (uint32_t)what);
    }
}

API void attach_late(uint64_t ps)
{
    struct attach_slot *slot = timed() ? attach_slot() : NULL;
    if (slot != NULL && ps > slot->late_ps) {
        slot->late_ps = ps;
    }
}

API void attach_port_files(void)
{
    if (timed() && attach_slot_to_call() != NULL) {
        (void)attach_request(port_files, NULL, 0);
    }
}

API int attach_mad(uint16_t lid, void *mad)
{
    struct attach_reply_mad reply;
    struct attach_mad sent;
    memcpy(sent.bytes, mad, sizeof sent.bytes);
    int status =
        timed() && attach_slot_to_call() != NULL ? (int)attach_request(mad, &reply, .lid = lid, .mad = sent) : -ENODEV;
    if (status == 0) {
        memcpy(mad, reply.mad.bytes, sizeof reply.mad.bytes);
    }
    return status;
}

API void attach_may_wake(void)
{
    if (timed()) {
        attach_append(&(struct attach_entry){.kind = ATTACH_ENTRY_MAY_WAKE}, NULL);
    }
}

API void attach_may_interrupt(void)
{
    if (timed()) {
        attach_append(&(struct attach_entry){.kind = ATTACH_ENTRY_MAY_WAKE, .value = 1}, NULL);
    }
}

// --- life -----------------------------------------------------------------------------------------------------------

API void attach_forked(void)
{
    attach_link_forget();
    (void)attach_link_of_process();
}

API int attach_fork_parent(int child)
{
    int64_t id = timed() ? attach_request(child, NULL, .pid = (uint64_t)child) : 0;
    return id > 0 ? (int)id : child;
}

API uint32_t attach_thread_id(void)
{
    const struct attach_slot *slot = timed() ? attach_slot() : NULL;
    return slot != NULL ? slot->id : 0;
}

API uint32_t attach_id_of(uint32_t pid)
{
    int64_t id = timed() ? attach_request(id, NULL, .number = pid) : 0;
    return id > 0 ? (uint32_t)id : 0;
}

API uint32_t attach_id_real(uint32_t id)
{
    int64_t pid = timed() ? attach_request(id, NULL, .number = id, .of_run = true) : 0;
    return pid > 0 ? (uint32_t)pid : 0;
}

API void attach_thread_began(void)
{
    if (timed()) {
        (void)attach_slot();
    }
}

API void attach_thread_started(void)
{
    if (timed()) {
        (void)attach_request(thread, NULL, 0);
    }
}

API void attach_thread_at_end(void (*last)(void *), void *arg)
{
    attach_own.last = last;
    attach_own.last_arg = arg;
}

API void attach_before_exec(void)
{
    if (timed()) {
        (void)attach_request(exec, NULL, 0);
    }
}

API void attach_thread_exit(void)
{
    if (attach_own.slot != NULL && !attach_own.in_call) {
        if (attach_own.last != NULL) {
            attach_own.last(attach_own.last_arg);
        }
        (void)attach_request(thread_exit, NULL, 0);
        attach_own = (struct attach_own){.ended = true};
    }
}

API __attribute__((destructor)) void attach_process_exit(void)
{
    if (atomic_load(&attach_client.link) == ATTACH_LINK_UP && attach_own.slot != NULL && !attach_own.in_call) {
        (void)attach_request(process_exit, NULL, 0);
    }
}
