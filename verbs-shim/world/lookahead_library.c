// Functions of the C library in a look ahead (lookahead_internal.h): copies, fills and comparisons are carried out as a whole.
// The library has them in variants for processors, with instructions that are not interpreted; what a program does next must
// not depend on the processor.
#include <dlfcn.h>
#include <string.h>

#include "verbs-shim/world/interpret_internal.h"
#include "verbs-shim/world/lookahead_internal.h"

enum { BYTES_MAX = 16384, WORD_BYTES = 8 };

// --- memory -----------------------------------------------------------------------------------------------------------------

// As many bytes at once as one word of the target has.
static unsigned piece(uint64_t to, uint64_t left)
{
    uint64_t room = WORD_BYTES - to % WORD_BYTES;
    return (unsigned)(left < room ? left : room);
}

static void copy(uint64_t to, uint64_t from, uint64_t bytes)
{
    for (uint64_t done = 0; done < bytes;) {
        unsigned count = piece(to + done, bytes - done);
        interpret_store(to + done, count, interpret_load(from + done, count));
        done += count;
    }
}

static void copy_backwards(uint64_t to, uint64_t from, uint64_t bytes)
{
    while (bytes > 0) {
        unsigned before = (unsigned)((to + bytes) % WORD_BYTES), count = before != 0 ? before : (unsigned)WORD_BYTES;
        count = bytes < count ? (unsigned)bytes : count;
        bytes -= count;
        interpret_store(to + bytes, count, interpret_load(from + bytes, count));
    }
}

// --- functions --------------------------------------------------------------------------------------------------------------
// Each puts its result there. false: it does more than can be told here.

typedef bool (*carry_out_t)(const uint64_t *a, uint64_t *result_out);

static bool memmove_do(const uint64_t *a, uint64_t *result_out)
{
    *result_out = a[0];
    if (a[2] > BYTES_MAX || !interpret_vary_is_steady(a[0], a[2]) || !interpret_vary_is_steady(a[1], a[2])) {
        return false;
    }
    if (a[0] - a[1] < a[2]) {
        copy_backwards(a[0], a[1], a[2]);
    } else {
        copy(a[0], a[1], a[2]);
    }
    return true;
}

static bool mempcpy_do(const uint64_t *a, uint64_t *result_out)
{
    bool done = memmove_do(a, result_out);
    *result_out += a[2];
    return done;
}

static bool memmove_checked(const uint64_t *a, uint64_t *result_out)
{
    return a[2] <= a[3] && memmove_do(a, result_out);
}

static bool memset_do(const uint64_t *a, uint64_t *result_out)
{
    uint64_t value = (a[1] & 0xff) * UINT64_C(0x0101010101010101);
    *result_out = a[0];
    if (a[2] > BYTES_MAX || !interpret_vary_is_steady(a[0], a[2])) {
        return false;
    }
    for (uint64_t done = 0; done < a[2];) {
        unsigned count = piece(a[0] + done, a[2] - done);
        interpret_store(a[0] + done, count, value);
        done += count;
    }
    return true;
}

static bool memset_checked(const uint64_t *a, uint64_t *result_out)
{
    return a[2] <= a[3] && memset_do(a, result_out);
}

// With bytes_max: until it, or the end of a string. The result is a difference of bytes, as the sign of it is all that is said.
static bool compare(const uint64_t *a, uint64_t bytes_max, bool strings, uint64_t *result_out)
{
    *result_out = 0;
    for (uint64_t i = 0; i < bytes_max; i++) {
        if (i == BYTES_MAX || !interpret_vary_is_steady(a[0] + i, 1) || !interpret_vary_is_steady(a[1] + i, 1)) {
            return false;
        }
        int first = (int)interpret_load(a[0] + i, 1), second = (int)interpret_load(a[1] + i, 1);
        if (first != second || (strings && first == 0)) {
            *result_out = (uint64_t)(int64_t)(first - second);
            return true;
        }
    }
    return true;
}

static bool memcmp_do(const uint64_t *a, uint64_t *result_out)
{
    return compare(a, a[2], false, result_out);
}

static bool strcmp_do(const uint64_t *a, uint64_t *result_out)
{
    return compare(a, UINT64_MAX, true, result_out);
}

static bool strncmp_do(const uint64_t *a, uint64_t *result_out)
{
    return compare(a, a[2], true, result_out);
}

static bool strlen_do(const uint64_t *a, uint64_t *result_out)
{
    uint64_t bytes = 0;
    while (bytes < BYTES_MAX && interpret_vary_is_steady(a[0] + bytes, 1) && interpret_load(a[0] + bytes, 1) != 0) {
        bytes++;
    }
    *result_out = bytes;
    return bytes < BYTES_MAX && interpret_vary_is_steady(a[0] + bytes, 1);
}

// --- at one of them ---------------------------------------------------------------------------------------------------------

static const struct {
    const char *name;
    unsigned arguments;
    carry_out_t carry_out;
} functions[LOOKAHEAD_LIBRARY_FUNCTIONS] = {
    {"memcpy", 3, memmove_do},
    {"memmove", 3, memmove_do},
    {"mempcpy", 3, mempcpy_do},
    {"memset", 3, memset_do},
    {"memcmp", 3, memcmp_do},
    {"__memcmpeq", 3, memcmp_do},
    {"strlen", 1, strlen_do},
    {"strcmp", 2, strcmp_do},
    {"strncmp", 3, strncmp_do},
    {"__memcpy_chk", 4, memmove_checked},
    {"__memmove_chk", 4, memmove_checked},
    {"__memset_chk", 4, memset_checked},
};

static uintptr_t entries[LOOKAHEAD_LIBRARY_FUNCTIONS]; // where this process has them; 0: nowhere

void lookahead_library_start(void)
{
    for (unsigned i = 0; i < LOOKAHEAD_LIBRARY_FUNCTIONS; i++) {
        entries[i] = (uintptr_t)dlsym(RTLD_DEFAULT, functions[i].name);
    }
}

const uintptr_t *lookahead_library_entries(void)
{
    return entries;
}

bool lookahead_library_at(const struct interpret_state *state, bool *known_out, uint64_t *result_out)
{
    static const unsigned registers[] = {INTERPRET_RDI, INTERPRET_RSI, INTERPRET_RDX, INTERPRET_RCX};
    for (unsigned i = 0; i < LOOKAHEAD_LIBRARY_FUNCTIONS; i++) {
        if (entries[i] == 0 || entries[i] != state->rip) {
            continue;
        }
        uint64_t arguments[4] = {0};
        bool known = true;
        for (unsigned a = 0; a < functions[i].arguments; a++) {
            arguments[a] = state->registers[registers[a]];
            known = known && lookahead_register_is_steady(state, registers[a]);
        }
        *known_out = known && functions[i].carry_out(arguments, result_out) && !interpret_memory_failed();
        return true;
    }
    return false;
}
