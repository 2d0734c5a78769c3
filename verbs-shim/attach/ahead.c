// The two polls that libraries and the world shim make note where they were called, and a library's function that polls
// may have noted it before them (ahead.h).
#include "verbs-shim/attach/ahead.h"

#include "verbs-shim/attach/client.h"
#include "verbs-shim/attach/client_internal.h"
#include "verbs-shim/attach/kernel_call.h"

ATTACH_CALLER_ENTRY(attach_poll, "rcx", attach_poll_from);
ATTACH_CALLER_ENTRY(attach_poll_call, "rdx", attach_poll_call_from);

static attach_look_ahead_t look_ahead;

__attribute__((visibility("default"))) void attach_ahead_by(attach_look_ahead_t look)
{
    look_ahead = look;
}

static struct attach_poll_function functions[ATTACH_POLL_FUNCTIONS];
static unsigned function_count;

__attribute__((visibility("default"))) void attach_poll_function_add(uintptr_t entry, attach_is_idle_t is_idle)
{
    if (function_count < ATTACH_POLL_FUNCTIONS) {
        functions[function_count++] = (struct attach_poll_function){entry, is_idle};
    }
}

__attribute__((visibility("default"))) const struct attach_caller *
attach_poll_within(const struct attach_caller *caller)
{
    const struct attach_caller *before = attach_own.caller;
    attach_own.caller = caller;
    return before;
}

bool attach_look_ahead(const struct attach_caller *caller, uint64_t key, struct attach_slot *slot,
                       struct attach_ahead *ahead_out)
{
    const struct attach_greeting *greeting = attach_greeting();
    caller = attach_own.caller != NULL ? attach_own.caller : caller;
    if (look_ahead == NULL || caller == NULL) {
        return false;
    }
    const struct attach_borders borders = {
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
        .call_ps = greeting->call_ps,
        .load_ps = greeting->load_ps,
        .poll_call_ps = greeting->call_ps > greeting->poll_ps ? greeting->call_ps : greeting->poll_ps,
    };
    look_ahead(caller, key, &borders, ahead_out);
    return true;
}
