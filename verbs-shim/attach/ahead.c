// The two polls that libraries and the world shim make note where they were called, and a library's function that polls
// may have noted it before them (ahead.h).
#include "verbs-shim/attach/ahead.h"

#include <stddef.h>

#include "verbs-shim/attach/client.h"
#include "verbs-shim/attach/client_internal.h"
#include "verbs-shim/attach/kernel_call.h"

ATTACH_CALLER_ENTRY(attach_poll, "rcx", attach_poll_from);
ATTACH_CALLER_ENTRY(attach_poll_call, "rdx", attach_poll_call_from);

static const struct attach_look_ahead_ops *look_ahead;

__attribute__((visibility("default"))) void attach_ahead_by(const struct attach_look_ahead_ops *ops)
{
    look_ahead = ops;
}

static struct attach_poll_function functions[ATTACH_POLL_FUNCTIONS];
static unsigned function_count;

__attribute__((visibility("default"))) void attach_poll_function_add(uintptr_t entry, attach_is_idle_t is_idle)
{
    if (function_count < ATTACH_POLL_FUNCTIONS) {
        functions[function_count++] = (struct attach_poll_function){entry, is_idle};
    }
}

__attribute__((visibility("default"))) struct attach_caller *attach_poll_within(struct attach_caller *caller)
{
    struct attach_caller *before = attach_own.caller;
    attach_own.caller = caller;
    return before;
}

bool attach_is_alone(void)
{
    return attach_client.shares == 0 && atomic_load(&attach_client.segment->slot_end) <= 1;
}

static struct attach_borders borders_of(struct attach_slot *slot, const struct attach_clock *clock)
{
    const struct attach_greeting *greeting = attach_greeting();
    return (struct attach_borders){
        .poll = (uintptr_t)attach_poll,
        .poll_call = (uintptr_t)attach_poll_call,
        .others = {(uintptr_t)attach_call, (uintptr_t)attach_append},
        .kernel_gate = KERNEL_GATE,
        .tail_ps = &attach_own.tail_ps,
        .now_ps = &slot->now_ps,
        .found = &attach_own.found,
        .entry_count = &slot->entry_count,
        .functions = functions,
        .function_count = function_count,
        .alone = attach_is_alone(),
        .clocks_poll = attach_clocks_poll(),
        .clocks_serve = attach_progress_on_writes(),
        .clock = *clock,
        .costs = {greeting->call_ps, greeting->lock_ps, greeting->load_ps},
        .poll_call_ps = greeting->call_ps > greeting->poll_ps ? greeting->call_ps : greeting->poll_ps,
        .waited = attach_own.wait_polls,
    };
}

// Where the program called the outermost function that polls. One that a signal handler has left by a jump is below the
// frames of this call.
static struct attach_caller *outermost(struct attach_caller *caller)
{
    bool within = (uintptr_t)attach_own.caller > (uintptr_t)__builtin_frame_address(0);
    return within ? attach_own.caller : caller;
}

bool attach_look_ahead(struct attach_caller *caller, uint64_t key, struct attach_slot *slot,
                       struct attach_ahead *ahead_out)
{
    caller = outermost(caller);
    if (look_ahead == NULL || caller == NULL) {
        return false;
    }
    const struct attach_borders borders = borders_of(slot, &attach_own.clock);
    look_ahead->look(caller, key, &borders, ahead_out);
    attach_own.look_effort += ahead_out->effort;
    return true;
}

// --- threads of the process that are in loops ---------------------------------------------------------------------------

static _Atomic unsigned loops_on;

void attach_loop_begins(struct attach_slot *slot)
{
    atomic_store_explicit(&slot->loop_changed, 0, memory_order_relaxed);
    loops_on += atomic_exchange(&slot->loop_on, 1) == 0;
}

void attach_loop_ends(struct attach_slot *slot)
{
    loops_on -= atomic_exchange(&slot->loop_on, 0) != 0;
}

void attach_loops_forked(void)
{
    loops_on = 0;
}

void attach_loops_look(const struct attach_slot *own)
{
    unsigned left = loops_on - (atomic_load_explicit(&own->loop_on, memory_order_relaxed) != 0);
    for (uint32_t i = 0; left != 0 && i < ATTACH_SLOTS; i++) {
        struct attach_slot *slot = &attach_client.segment->slots[i];
        if (slot != own && atomic_load_explicit(&slot->loop_on, memory_order_relaxed) != 0) {
            bool differ = look_ahead->differ(slot->loop_words, slot->loop_word_count);
            atomic_store_explicit(&slot->loop_changed, differ, memory_order_relaxed);
            left--;
        }
    }
}

// --- going on at a later poll -----------------------------------------------------------------------------------------

// Goes on as `to` says. What it writes may be where its caller's frames are: it uses registers alone, and from its first
// instruction on the stack with which the program goes on.
__attribute__((noreturn, visibility("hidden"))) void attach_resume_jump(const struct attach_resume *to);
_Static_assert(offsetof(struct attach_resume, rsp) == 48 && offsetof(struct attach_resume, rip) == 56 &&
                   offsetof(struct attach_resume, rax) == 88 && offsetof(struct attach_resume, count) == 96 &&
                   offsetof(struct attach_resume, words) == 104,
               "as attach_resume_jump has them");
__asm__(".text\n"
        ".globl attach_resume_jump\n"
        ".hidden attach_resume_jump\n"
        ".type attach_resume_jump, @function\n"
        "attach_resume_jump:\n"
        "    mov 48(%rdi), %rsp\n"
        "    mov 96(%rdi), %rcx\n"
        "    lea 104(%rdi), %rdx\n"
        "0:  test %rcx, %rcx\n"
        "    jz 1f\n"
        "    mov (%rdx), %rax\n"
        "    mov 8(%rdx), %rsi\n"
        "    mov %rsi, (%rax)\n"
        "    add $16, %rdx\n"
        "    dec %rcx\n"
        "    jmp 0b\n"
        "1:  mov 0(%rdi), %rbx\n"
        "    mov 8(%rdi), %rbp\n"
        "    mov 16(%rdi), %r12\n"
        "    mov 24(%rdi), %r13\n"
        "    mov 32(%rdi), %r14\n"
        "    mov 40(%rdi), %r15\n"
        "    mov 56(%rdi), %r11\n"
        "    mov 72(%rdi), %rsi\n"
        "    mov 80(%rdi), %rdx\n"
        "    mov 88(%rdi), %rax\n"
        "    mov 64(%rdi), %rdi\n"
        "    jmp *%r11\n"
        ".size attach_resume_jump, .-attach_resume_jump\n");

// What is to be done before the program goes on may take time, in which other threads run: so not before it has left
// attach_resume and has what it wrote. The rest of its poll; and if a device had written when a reading of a clock ended, its
// library looks, as at the end of a reading that was carried out. Returns the poll's result.
__attribute__((visibility("hidden"))) uint64_t attach_resume_serve(uint64_t result);
__attribute__((used)) uint64_t attach_resume_serve(uint64_t result)
{
    const struct attach_left_loop left = attach_own.left;
    attach_own.left.early = false;
    enum attach_woken woken = left.early ? attach_poll_rest(left.woken) : left.woken;
    if (left.by == ATTACH_LEFT_CLOCK && woken == ATTACH_WOKEN_MEMORY && attach_progress_on_writes()) {
        attach_progress();
    }
    return left.by == ATTACH_LEFT_POLL ? woken == ATTACH_WOKEN_MEMORY : result;
}

// Called as if from where the program goes on, which is in rdi: the red zone is free there, as a call has just returned.
__attribute__((visibility("hidden"))) void attach_resume_serving(void);
__asm__(".text\n"
        ".globl attach_resume_serving\n"
        ".hidden attach_resume_serving\n"
        ".type attach_resume_serving, @function\n"
        "attach_resume_serving:\n"
        "    push %rdi\n"
        "    .cfi_startproc\n"
        "    push %rdx\n"
        "    .cfi_adjust_cfa_offset 8\n"
        "    mov %rax, %rdi\n"
        "    call attach_resume_serve\n"
        "    pop %rdx\n"
        "    .cfi_adjust_cfa_offset -8\n"
        "    ret\n"
        "    .cfi_endproc\n"
        ".size attach_resume_serving, .-attach_resume_serving\n");

void attach_loop_left(const struct attach_ahead *ahead, struct attach_caller *caller, const struct attach_left_at *at,
                      enum attach_woken woken)
{
    attach_own.left = (struct attach_left_loop){.caller = outermost(caller),
                                                .known = ahead->known,
                                                .clock = attach_own.clock,
                                                .at = *at,
                                                .tail_ps = attach_own.tail_ps,
                                                .woken = woken};
    if (at->iterations == 0 && at->poll == 0) { // it goes on here
        attach_loop_forget();
    }
}

// The thread spends the rest of its poll, whatever it does next. false: there is none.
static bool rest_spend(void)
{
    const struct attach_rest *rest = &attach_own.rest;
    bool any = rest->until_ps != 0;
    if (any && rest->until_ps > attach_own.slot->now_ps) {
        attach_own.tail_ps += rest->until_ps - attach_own.slot->now_ps;
    }
    attach_own.rest.until_ps = 0;
    return any;
}

void attach_loop_forget(void)
{
    static struct attach_resume nowhere;
    if (attach_own.left.caller != NULL) {
        const struct attach_borders borders = borders_of(attach_own.slot, &attach_own.left.clock);
        const struct attach_left_at here = {0};
        struct attach_caller nobody = {0};
        enum attach_left_by by;
        struct attach_left_makes none;
        attach_own.left.caller = NULL;
        (void)look_ahead->left(attach_own.left.known, &nobody, &borders, &here, &nowhere, &by, &none);
        (void)rest_spend();
    }
}

static void once_more_begin(const struct attach_left_loop *left, const struct attach_left_makes *makes)
{
    struct attach_slot *slot = attach_own.slot;
    attach_own.once_more = (struct attach_once_more){
        .polls = makes->polls, .makes = *makes, .now_ps = slot->now_ps, .tail_ps = left->tail_ps, .woken = left->woken};
    slot->now_ps = makes->from_ps;
    attach_own.tail_ps = 0;
}

void attach_once_more_end(void)
{
    if (attach_own.once_more.polls > 0) {
        attach_own.once_more.polls = 0;
        look_ahead->made();
        attach_own.slot->now_ps = attach_own.once_more.now_ps;
        attach_own.tail_ps = attach_own.once_more.tail_ps;
        (void)rest_spend();
    }
}

enum attach_woken attach_poll_once_more(void)
{
    struct attach_once_more *more = &attach_own.once_more;
    attach_own.calls++;
    if (more->polls == 1) {
        bool early = attach_own.rest.until_ps != 0;
        attach_once_more_end();
        return early ? attach_poll_rest(more->woken) : more->woken;
    }
    more->polls--;
    attach_own.slot->now_ps += more->makes.list[more->made++ % more->makes.count].own_ps;
    attach_own.tail_ps = 0;
    return ATTACH_WOKEN_OUTSIDE;
}

__attribute__((visibility("default"))) void attach_resume(struct attach_caller *caller)
{
    static struct attach_resume to; // one thread of the process runs at a time, and none of the others before the jump
    const struct attach_left_loop left = attach_own.left;
    enum attach_left_by by;
    struct attach_left_makes makes;
    if (left.caller != caller || left.caller == NULL) {
        return;
    }
    attach_own.left.caller = NULL;
    const struct attach_borders borders = borders_of(attach_own.slot, &left.clock);
    enum attach_left_how how = look_ahead->left(left.known, caller, &borders, &left.at, &to, &by, &makes);
    if (how == ATTACH_LEFT_MAKES) {
        once_more_begin(&left, &makes);
    } else if (how == ATTACH_LEFT_ELSEWHERE) {
        to.rax = by == ATTACH_LEFT_POLL ? left.woken == ATTACH_WOKEN_MEMORY : to.rax;
        attach_own.tail_ps = left.tail_ps;
        attach_own.left.by = by;
        attach_own.left.early = rest_spend();
        attach_own.left.resumed = by == ATTACH_LEFT_FUNCTION;
        attach_own.calls += by != ATTACH_LEFT_CLOCK; // of a poll that ends a run of readings
        attach_own.resumed_ps = by == ATTACH_LEFT_CLOCK ? attach_own.slot->now_ps + attach_own.tail_ps : 0;
        bool serves = by == ATTACH_LEFT_CLOCK && left.woken == ATTACH_WOKEN_MEMORY && attach_progress_on_writes();
        if (by != ATTACH_LEFT_FUNCTION && (serves || attach_own.left.early)) {
            to.rdi = to.rip;
            to.rip = (uintptr_t)attach_resume_serving;
        }
        attach_resume_jump(&to);
    } else {
        (void)rest_spend();
    }
}

__attribute__((visibility("default"))) uint64_t attach_resumed_ps(void)
{
    return attach_own.resumed_ps;
}

__attribute__((visibility("default"))) bool attach_resumed(bool *again_out)
{
    if (attach_own.once_more.polls > 0 && !attach_own.in_call) {
        *again_out = attach_poll_once_more() == ATTACH_WOKEN_MEMORY;
        return true;
    }
    const struct attach_left_loop left = attach_own.left;
    attach_own.left.resumed = false;
    attach_own.left.early = left.early && !left.resumed;
    *again_out = (left.resumed && left.early ? attach_poll_rest(left.woken) : left.woken) == ATTACH_WOKEN_MEMORY;
    return left.resumed;
}
