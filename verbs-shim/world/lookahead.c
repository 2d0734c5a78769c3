// Looks ahead from an empty poll (verbs-shim/attach/ahead.h). The program is interpreted from the poll's return on, and
// further polls are taken to find nothing. A poll at the same place with the same registers, and with the same contents
// of all memory that was read before it was written, means that the program repeats what was interpreted, until somebody
// changes what it reads. A program may do other things before it comes to such a loop; so the state with which later ones
// are compared, the base, moves on after 1, 2, 4, ... polls (Brent's search for a cycle).
//
// A loop that was found is remembered with what it reads: if all of that is as it was, it does the same again.

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/syscall.h>

#include "verbs-shim/attach/ahead.h"
#include "verbs-shim/attach/kernel_call.h"
#include "verbs-shim/world/interpret.h"
#include "verbs-shim/world/world.h"

enum {
    SYSCALL_BYTES = 2,
    INSTRUCTIONS_MAX = 20000,
    LOOPS = 8,
    LOOP_WORDS_MAX = 768,
    VAIN = 64,
    STACK_BYTES = 1 << 20,
    BACKOFF_FIRST = 15,
    BACKOFF_MAX = 1023
};

// A word of memory that the loop reads.
struct input {
    uint64_t address, value, mask;
};

struct loop {
    struct attach_caller caller;
    uint64_t key;
    struct attach_ahead ahead;
    struct input inputs[LOOP_WORDS_MAX];
    unsigned input_count;
};

// One thread of the process runs at a time.
static struct loop loops[LOOPS];
static unsigned loop_next;

static uint64_t mask_of(uint8_t bytes)
{
    uint64_t mask = 0;
    for (unsigned i = 0; i < 8; i++) {
        mask |= (bytes >> i & 1) != 0 ? UINT64_C(0xff) << 8 * i : 0;
    }
    return mask;
}

// The stack below a call that has returned holds no values (3.2.2): what is read there, padding for example, means
// nothing.
static bool is_input(const struct interpret_word *word, enum interpret_point point, uint64_t stack)
{
    return word->since[point].read != 0 && (word->address >= stack || word->address < stack - STACK_BYTES);
}

// --- remembered loops -----------------------------------------------------------------------------------------------

static bool inputs_same(const struct loop *loop)
{
    for (unsigned i = 0; i < loop->input_count; i++) {
        const struct input *input = &loop->inputs[i];
        uint64_t now; // the program may have unmapped it
        if (!interpret_peek(input->address, &now) || ((now ^ input->value) & input->mask) != 0) {
            return false;
        }
    }
    return true;
}

static const struct loop *loop_find(const struct attach_caller *caller, uint64_t key)
{
    for (unsigned i = 0; i < LOOPS; i++) {
        const struct loop *loop = &loops[i];
        if (loop->ahead.count != 0 && loop->key == key && memcmp(&loop->caller, caller, sizeof *caller) == 0 &&
            inputs_same(loop)) {
            return loop;
        }
    }
    return NULL;
}

static void loop_keep(const struct attach_caller *caller, uint64_t key, const struct attach_ahead *ahead)
{
    struct loop *loop = &loops[loop_next++ % LOOPS];
    unsigned count;
    const struct interpret_word *words = interpret_words(&count);
    *loop = (struct loop){.caller = *caller, .key = key, .ahead = *ahead};
    for (unsigned i = 0; i < count; i++) {
        if (!is_input(&words[i], INTERPRET_BEGINNING, caller->rsp)) {
            continue;
        }
        if (loop->input_count == LOOP_WORDS_MAX) {
            loop->ahead.count = 0; // too many to compare
            return;
        }
        loop->inputs[loop->input_count++] = (struct input){words[i].address, words[i].since[INTERPRET_BEGINNING].value,
                                                           mask_of(words[i].since[INTERPRET_BEGINNING].read)};
    }
}

// --- interpreting ---------------------------------------------------------------------------------------------------

// What functions preserve, and the result of a poll that found nothing.
static const uint16_t preserved = 1u << INTERPRET_RBX | 1u << INTERPRET_RBP | 1u << INTERPRET_RSP |
                                  1u << INTERPRET_R12 | 1u << INTERPRET_R13 | 1u << INTERPRET_R14 | 1u << INTERPRET_R15;

static void returns(struct interpret_state *state, uint64_t result)
{
    state->registers[INTERPRET_RAX] = result;
    state->known = preserved | 1u << INTERPRET_RAX;
    state->flags_known = false;
    state->vectors_known = 0;
}

static struct interpret_state state_of(const struct attach_caller *caller)
{
    struct interpret_state state = {.rip = caller->rip};
    state.registers[INTERPRET_RBX] = caller->rbx;
    state.registers[INTERPRET_RBP] = caller->rbp;
    state.registers[INTERPRET_R12] = caller->r12;
    state.registers[INTERPRET_R13] = caller->r13;
    state.registers[INTERPRET_R14] = caller->r14;
    state.registers[INTERPRET_R15] = caller->r15;
    state.registers[INTERPRET_RSP] = caller->rsp;
    returns(&state, 0);
    return state;
}

// The function that was reached returns at once.
static void leave(struct interpret_state *state, uint64_t result)
{
    state->rip = interpret_load(state->registers[INTERPRET_RSP], 8);
    state->registers[INTERPRET_RSP] += 8;
    returns(state, result);
}

static bool same_registers(const struct interpret_state *state, const struct interpret_state *before)
{
    bool same = state->rip == before->rip;
    for (unsigned i = 0; i < INTERPRET_REGISTERS && same; i++) {
        same = (preserved >> i & 1) == 0 || state->registers[i] == before->registers[i];
    }
    return same;
}

// Is the state as it was at that point, as far as anything depends on it?
static bool recurs(const struct interpret_state *state, const struct interpret_state *before,
                   enum interpret_point point)
{
    if (!same_registers(state, before)) {
        return false;
    }
    unsigned count;
    const struct interpret_word *words = interpret_words(&count);
    for (unsigned i = 0; i < count; i++) {
        const struct interpret_since *since = &words[i].since[point];
        if (is_input(&words[i], point, before->registers[INTERPRET_RSP]) &&
            ((words[i].now ^ since->value) & mask_of(since->read)) != 0) {
            return false;
        }
    }
    return true;
}

// --- the kernel -------------------------------------------------------------------------------------------------------

// Which descriptors are ready now? The list is copied there and back.
static long ppoll_ask(const uint64_t *registers)
{
    enum { DESCRIPTORS_MAX = 16 };
    uint64_t list = registers[INTERPRET_RDI], count = registers[INTERPRET_RSI], timeout = registers[INTERPRET_RDX];
    const struct timespec now = {0};
    uint64_t copy[DESCRIPTORS_MAX];
    _Static_assert(sizeof(struct pollfd) == sizeof copy[0], "what is copied");
    if (count > DESCRIPTORS_MAX || timeout == 0 || interpret_load(timeout, 8) != 0 ||
        interpret_load(timeout + 8, 8) != 0) {
        return -ENOSYS;
    }
    for (uint64_t i = 0; i < count; i++) {
        copy[i] = interpret_load(list + i * sizeof copy[0], sizeof copy[0]);
    }
    long ready = kernel_call(SYS_ppoll, (long)(uintptr_t)copy, (long)count, (long)(uintptr_t)&now, 0, 0, 0);
    for (uint64_t i = 0; i < count; i++) {
        interpret_store(list + i * sizeof copy[0], sizeof copy[0], copy[i]);
    }
    return ready;
}

// Calls that may be polls, too: what is ready, or whether something is there.
static bool may_poll(uint64_t number)
{
    static const short numbers[] = {SYS_poll,         SYS_ppoll,   SYS_select, SYS_pselect6, SYS_epoll_wait,
                                    SYS_epoll_pwait,  SYS_read,    SYS_readv,  SYS_recvfrom, SYS_recvmsg,
                                    SYS_accept,       SYS_accept4, SYS_ioctl,  SYS_fcntl,    SYS_getsockopt,
                                    SYS_sched_yield,  SYS_wait4,   SYS_semop,  SYS_msgrcv,   SYS_clock_gettime,
                                    SYS_gettimeofday, SYS_getpid,  SYS_gettid};
    bool may = false;
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        may = may || number == (uint64_t)numbers[i];
    }
    return may;
}

// Questions to the kernel that change nothing are asked. false: another call.
static bool kernel_ask(struct interpret_state *state)
{
    const uint64_t *registers = state->registers;
    const unsigned needed = 1u << INTERPRET_RAX | 1u << INTERPRET_RDI | 1u << INTERPRET_RSI | 1u << INTERPRET_RDX;
    if ((state->known & needed) != needed) {
        return false;
    }
    bool flags = registers[INTERPRET_RAX] == SYS_fcntl && registers[INTERPRET_RSI] == F_GETFL;
    bool ready = registers[INTERPRET_RAX] == SYS_ppoll;
    long result = flags   ? kernel_call(SYS_fcntl, (long)registers[INTERPRET_RDI], F_GETFL, 0, 0, 0, 0)
                  : ready ? ppoll_ask(registers)
                          : -ENOSYS;
    state->registers[INTERPRET_RAX] = (uint64_t)result;
    state->known &= (uint16_t) ~(1u << INTERPRET_RCX | 1u << INTERPRET_R11);
    state->rip += SYSCALL_BYTES;
    return result != -ENOSYS;
}

// --- polls --------------------------------------------------------------------------------------------------------------

static bool is_system_call(uint64_t rip)
{
    uint64_t code;
    return interpret_peek(rip, &code) && (code & 0xffff) == 0x050f;
}

static struct attach_caller caller_of(const struct interpret_state *state)
{
    const uint64_t *registers = state->registers;
    return (struct attach_caller){.rbx = registers[INTERPRET_RBX],
                                  .rbp = registers[INTERPRET_RBP],
                                  .r12 = registers[INTERPRET_R12],
                                  .r13 = registers[INTERPRET_R13],
                                  .r14 = registers[INTERPRET_R14],
                                  .r15 = registers[INTERPRET_R15],
                                  .rsp = registers[INTERPRET_RSP] + 8,
                                  .rip = interpret_load(registers[INTERPRET_RSP], 8)};
}

// The state is at a poll that finds nothing: what the poll is. FINDS: it is at something else.
static enum attach_idle poll_describe(const struct interpret_state *state, const struct attach_borders *borders,
                                      struct attach_ahead_poll *poll_out)
{
    const uint64_t arguments[3] = {state->registers[INTERPRET_RDI], state->registers[INTERPRET_RSI],
                                   state->registers[INTERPRET_RDX]};
    unsigned calls = 0, loads = 0;
    *poll_out = (struct attach_ahead_poll){0};
    if (state->rip == borders->poll) {
        poll_out->key = arguments[0];
        poll_out->word = arguments[1];
        return ATTACH_IDLE;
    }
    if (state->rip == borders->poll_call) {
        poll_out->key = arguments[1];
        poll_out->own_ps = borders->poll_call_ps;
        return ATTACH_IDLE;
    }
    for (unsigned i = 0; i < borders->function_count; i++) {
        if (state->rip == borders->functions[i].entry) {
            const struct attach_caller caller = caller_of(state);
            enum attach_idle idle = borders->functions[i].is_idle(arguments, &caller, poll_out, &calls, &loads);
            poll_out->own_ps = calls * borders->call_ps + loads * borders->load_ps;
            return idle;
        }
    }
    return ATTACH_FINDS;
}

static enum attach_idle at_poll(struct interpret_state *state, const struct attach_borders *borders,
                                struct attach_ahead *ahead)
{
    struct attach_ahead_poll poll;
    if (ahead->count == ATTACH_AHEAD_POLLS) {
        return ATTACH_IDLE_UNKNOWN;
    }
    enum attach_idle idle =
        interpret_load((uintptr_t)borders->found, 1) != 0 ? ATTACH_FINDS : poll_describe(state, borders, &poll);
    if (idle == ATTACH_IDLE) {
        poll.own_ps += interpret_load((uintptr_t)borders->tail_ps, 8);
        ahead->polls[ahead->count++] = poll;
        interpret_store((uintptr_t)borders->tail_ps, 8, 0);
        interpret_change((uintptr_t)borders->now_ps, interpret_now((uintptr_t)borders->now_ps) + poll.own_ps);
        leave(state, 0);
    }
    return idle;
}

// asked_out: what the program does depends on answers of the kernel.
static void interpret(const struct attach_caller *caller, uint64_t key, const struct attach_borders *borders,
                      struct attach_ahead *ahead, bool *asked_out)
{
    uintptr_t addresses[8 + ATTACH_POLL_FUNCTIONS] = {borders->poll, borders->poll_call, borders->kernel_gate};
    unsigned count = 3, left = INSTRUCTIONS_MAX;
    for (unsigned i = 0; i < sizeof borders->others / sizeof borders->others[0]; i++) {
        addresses[count++] = borders->others[i];
    }
    for (unsigned i = 0; i < borders->function_count; i++) {
        addresses[count++] = borders->functions[i].entry;
    }
    const struct interpret_state beginning = state_of(caller);
    struct interpret_state state = beginning, base = beginning;
    bool calls = false; // some of the polls are calls
    unsigned lead = 0;  // polls before the base
    *asked_out = false;
    interpret_begin();
    interpret_change((uintptr_t)borders->now_ps, *borders->now_ps + *borders->tail_ps);
    interpret_store((uintptr_t)borders->tail_ps, 8, 0);
    interpret_store((uintptr_t)borders->found, 1, 0);
    interpret_store((uintptr_t)borders->entry_count, sizeof *borders->entry_count, 0);
    *ahead = (struct attach_ahead){.kind = ATTACH_AHEAD_UNKNOWN};
    while (true) {
        enum interpret_stop stop = interpret_run(&state, addresses, count, &left);
        calls = calls || state.rip == borders->poll_call;
        bool call = state.rip == borders->kernel_gate || (stop == INTERPRET_UNKNOWN && is_system_call(state.rip));
        if (stop != INTERPRET_AT && !call) {
            ahead->reason = stop == INTERPRET_LIMIT ? "too long" : interpret_reason();
            return;
        }
        if (call) {
            *asked_out = true;
            if (!kernel_ask(&state)) {
                ahead->kind = may_poll(state.registers[INTERPRET_RAX]) ? ATTACH_AHEAD_UNKNOWN : ATTACH_AHEAD_ENDS;
                ahead->reason = "a system call";
                return;
            }
            continue;
        }
        enum attach_idle idle = at_poll(&state, borders, ahead);
        if (idle != ATTACH_IDLE) {
            ahead->kind = idle == ATTACH_FINDS ? ATTACH_AHEAD_ENDS : ATTACH_AHEAD_UNKNOWN;
            ahead->reason = "a poll that may do more, or too many";
            return;
        }
        if (ahead->polls[ahead->count - 1].key == key && recurs(&state, &beginning, INTERPRET_BEGINNING)) {
            ahead->kind = calls || *asked_out ? ATTACH_AHEAD_UNKNOWN : ATTACH_AHEAD_REPEATS;
            ahead->reason = "a loop of calls";
            return;
        } else if (lead != 0 && recurs(&state, &base, INTERPRET_BASE)) {
            ahead->kind = ATTACH_AHEAD_ENDS;
            ahead->count = lead;
            return;
        } else if ((ahead->count & (ahead->count - 1)) == 0) {
            lead = ahead->count;
            base = state;
            interpret_rebase();
        }
    }
}

// Polls of which nothing could be told are interpreted more and more rarely (exponential backoff).
static struct vain {
    uint64_t key;
    unsigned backoff, skips;
} vain[VAIN];

static struct vain *vain_of(uint64_t key)
{
    struct vain *entry = &vain[(key ^ key >> 8) % VAIN];
    if (entry->key != key) {
        *entry = (struct vain){.key = key};
    }
    return entry;
}

static void look_ahead(const struct attach_caller *caller, uint64_t key, const struct attach_borders *borders,
                       struct attach_ahead *ahead_out)
{
    const struct loop *known = loop_find(caller, key);
    struct vain *entry = vain_of(key);
    if (known != NULL) {
        *ahead_out = known->ahead;
        return;
    }
    if (entry->skips > 0) {
        entry->skips--;
        *ahead_out = (struct attach_ahead){.kind = ATTACH_AHEAD_UNKNOWN};
        return;
    }
    bool asked;
    interpret(caller, key, borders, ahead_out, &asked);
    if (ahead_out->kind == ATTACH_AHEAD_REPEATS && !asked) {
        loop_keep(caller, key, ahead_out);
    }
    // Once only, the dynamic linker may look for a function.
    if (ahead_out->kind == ATTACH_AHEAD_UNKNOWN && entry->backoff < BACKOFF_FIRST) {
        ahead_out->kind = ATTACH_AHEAD_ENDS;
        entry->backoff = 2 * entry->backoff + 1;
        return;
    }
    bool told = ahead_out->kind != ATTACH_AHEAD_UNKNOWN;
    entry->backoff = told ? 0 : entry->backoff < BACKOFF_MAX ? 2 * entry->backoff + 1 : entry->backoff;
    entry->skips = entry->backoff;
}

void world_lookahead_start(void)
{
    attach_ahead_by(look_ahead);
}
