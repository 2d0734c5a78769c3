// What an attached process and the simulator exchange: one segment of shared memory for each process, with a slot for
// each of its threads, and a socket for file descriptors. Private to verbs-shim/attach and sim/attach, which are built
// together.
//
// A slot belongs to one side at a time (`holder`). The program writes its list and a request, and gives the slot away.
// The simulator replays the list, carries the request out, writes the reply and gives the slot back. The simulator
// copies everything before it checks it, and trusts nothing.
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "attach_layout.h" // generated: ATTACH_LAYOUT, a hash of this header and of those that it uses
#include "models/hca/abi/hca_abi.h"
#include "verbs-shim/attach/ahead.h"
#include "verbs-shim/attach/attach.h"
#include "verbs-shim/backend/backend.h"
#include "verbs-shim/peach2/peach2_driver.h"

#define ATTACH_MAGIC 0x74636131u // "tca1"

#define ATTACH_OTHER_BUILD                                                                                             \
    "libtcasim-attach.so and the simulator are of different builds (LD_LIBRARY_PATH, LD_PRELOAD?)"

#define ATTACH_SLOTS      256u
#define ATTACH_ENTRIES    512u
#define ATTACH_DATA_BYTES 65536u
#define ATTACH_NAME_BYTES 64u
#define ATTACH_TEXT_BYTES 256u
#define ATTACH_HOSTS      250u // their addresses differ in the last byte
#define ATTACH_BELLS      65536u
#define ATTACH_NOTES      2048u
#define ATTACH_FRAMES     12u

// --- the socket (SOCK_SEQPACKET) ------------------------------------------------------------------------------------

// The first two fields are the same in every build, whatever follows.
struct attach_hello {
    uint32_t magic, layout;
    uint32_t tid;
    // TCASIM_NODE and TCASIM_HOME; `exec` sets both to the same name. If they differ, the user has chosen the node.
    // Otherwise a process is on the node of the process that started it, whatever its environment says.
    char node[ATTACH_NAME_BYTES], home[ATTACH_NAME_BYTES];
};

// Comes with the descriptor of the segment. Each later message is the magic and a descriptor: first of the bells, then
// of pinned memory.
struct attach_welcome {
    uint32_t magic, layout; // 0: refused, the reason is in text
    char text[ATTACH_TEXT_BYTES];
};

// --- the segment ----------------------------------------------------------------------------------------------------

// What the simulator sends to a program once.
struct attach_greeting {
    uint32_t mode; // enum attach_mode
    uint32_t node_index, node_count, process;
    uint32_t simulator;    // its process number
    uint32_t real_percent; // of each constant of real_time.h
    uint32_t id;           // the result of getpid
    uint64_t random_seed;  // of what the kernel's random numbers are for the process
    char node[ATTACH_NAME_BYTES];
    char hosts[ATTACH_HOSTS][ATTACH_NAME_BYTES];
    uint32_t address_base;
    uint64_t tsc_hz, epoch_realtime_ns, epoch_monotonic_ns;
    uint64_t call_ps, load_ps, device_line_ps, lock_ps, copy_bytes_per_us, interrupt_ps, timestamp_ps,
        poll_ps;          // the core's costs
    double compute_scale; // simulated time for a thread's own processor time; 0: it costs nothing
    uint64_t bar_base[BACKEND_BARS], bar_bytes[BACKEND_BARS];
    unsigned char processors[128]; // of the node
    char processor[ATTACH_PROCESSOR_BYTES];
    uint32_t processor_signature;
    struct attach_file standard_files[ATTACH_STANDARD_FILES];
    uint64_t memory_bytes, memory_free_bytes, cache_bytes;
    uint32_t has_board, has_hca, gpu_count;
    uint32_t journal_all;   // posts, polls and waits are reported as well
    uint32_t journal_polls; // and polls of words that devices write
    uint32_t every_poll;    // no fast-forward
    uint32_t checks;        // libraries check for mistakes of the program
    uint32_t first_bell;    // of its slots, in their order (attach_bell)
    struct peach2_routing routing;
    uint32_t verbs_chain, verbs_completion; // of struct tca_verbs_form
};

enum attach_holder {
    ATTACH_HOLDER_SIMULATOR,
    ATTACH_HOLDER_PROGRAM,
    ATTACH_HOLDER_AWAITED // the program's; the simulator sleeps on the word
};
enum attach_slot_state {
    ATTACH_SLOT_FREE,
    ATTACH_SLOT_NEW,  // taken by a thread that was not announced
    ATTACH_SLOT_TAKEN // the simulator has a thread for it
};

enum attach_entry_kind {
    ATTACH_ENTRY_WRITE,    // uncached store of `bytes` of `value`
    ATTACH_ENTRY_COMBINED, // `bytes` bytes at offset `value` of the slot's data
    ATTACH_ENTRY_FENCE,
    ATTACH_ENTRY_MAY_WAKE // attach_may_wake; value 1: attach_may_interrupt
};

// An action of the program, `after_ps` of own work after the previous entry.
struct attach_entry {
    uint64_t after_ps, offset, value;
    uint32_t bytes;
    uint16_t kind, bar;
};

// A record of the journal, written `after_ps` of own work after entry number `entry - 1`. began_entry and
// began_after_ps: the same for the beginning of the call; UINT32_MAX: it is before the list, and only took_ps is known.
// The cost of stores when they are carried out is in neither after_ps nor took_ps.
// Values of record.call beside enum journal_call. The thread polled the word record.a of pinned memory; b: it found
// something. It left something in the word record.a of its own memory; it found there what a thread has left.
#define ATTACH_NOTE_POLLED UINT16_MAX
#define ATTACH_NOTE_FOUND  (UINT16_MAX - 1)
#define ATTACH_NOTE_LEFT   (UINT16_MAX - 2)
struct attach_note {
    uint64_t after_ps, took_ps; // took_ps: duration of the call without stores
    uint64_t began_after_ps;
    uint32_t entry, began_entry;
    uint64_t frames[ATTACH_FRAMES]; // with checks: the call stack of the call, innermost frame first; then 0
    struct journal_record record;
};

enum attach_op {
#define REQUEST(ID, name, ARGUMENTS, REPLY) ATTACH_OP_##ID,
#include "verbs-shim/attach/requests.def"
#undef REQUEST
    ATTACH_OPS
};

// Bytes that a loop reads. address: in the program, or on the bus if the memory is pinned; only compared.
struct attach_word {
    uint64_t address;
    uint32_t bytes, pinned;
};

enum attach_poll_flags {
    ATTACH_POLL_REPEATS = 1, // its stores repeat what the library did before
    ATTACH_POLL_FOUND = 2,   // the thread has found something since its last poll
    ATTACH_POLL_GOES_ON = 4, // the streak goes on
    // The loop is known: its polls and words are in the slot. iterations 0: the thread makes these polls only.
    ATTACH_POLL_KNOWN = 8,
    ATTACH_POLL_CLOCK = 16, // a reading of a clock
    ATTACH_POLL_REST = 32   // the rest of a poll of a known loop that the thread has left early: to its turn
};

// A poll of an iteration of a loop. bus_address: of the polled word; 0: no single word.
struct attach_iteration_poll {
    uint64_t after_ps; // after the iteration's first poll
    uint64_t bus_address;
};
#define ATTACH_POLLS_MAX 31u // a bit of 32 for each, and one for those that are unknown

#define ATTACH_PAGES_MAX 32u

// What an iteration of a loop of polls reads.
struct attach_polled {
    uint32_t poll_count, word_count;  // one of them is 0; both 0: anything that devices write
    uint32_t any_pinned;              // with words: also all pinned memory
    uint32_t page_count, pages_known; // known: these are all; else any slot of another process counts
    union {
        struct attach_iteration_poll polls[ATTACH_POLLS_MAX];
        struct attach_word words[ATTACH_RANGES_MAX];
    };
    // Addresses of pages that processes share. The low bits hold the number of the poll after which the iteration reads
    // the page; ATTACH_POLLS_MAX: unknown.
    uint64_t pages[ATTACH_PAGES_MAX];
};

// The poll(2) events of the descriptors that a thread waits for.
struct attach_watch_events {
    uint16_t list[ATTACH_WATCHES_MAX];
};

// A management datagram, as on the wire.
struct attach_mad {
    uint8_t bytes[256];
};

// --- arguments and replies (requests.def) ---------------------------------------------------------------------------

#define U64(field)          uint64_t field;
#define U32(field)          uint32_t field;
#define FLAG(field)         uint32_t field;
#define GPU(field)          uint32_t field;
#define GPU_QUEUE(field)    uint32_t field;
#define HOST_ID(field)      uint64_t field;
#define STRUCT(type, field) type field;
#define COMMAND(field)      struct hca_command field;
#define NONE                uint8_t none;
#define REQUEST(ID, name, ARGUMENTS, REPLY)                                                                            \
    struct attach_args_##name {                                                                                        \
        ARGUMENTS                                                                                                      \
    };                                                                                                                 \
    struct attach_reply_##name {                                                                                       \
        REPLY                                                                                                          \
    };
#include "verbs-shim/attach/requests.def"
#undef REQUEST
#include "verbs-shim/attach/fields_end.h"

union attach_args {
#define REQUEST(ID, name, ARGUMENTS, REPLY) struct attach_args_##name name;
#include "verbs-shim/attach/requests.def"
#undef REQUEST
};
union attach_reply {
#define REQUEST(ID, name, ARGUMENTS, REPLY) struct attach_reply_##name name;
#include "verbs-shim/attach/requests.def"
#undef REQUEST
};

struct attach_slot {
    _Atomic uint32_t holder; // of the run token, enum attach_holder; the simulator sleeps on this word
    _Atomic uint32_t state;
    uint32_t tid;    // the machine's
    uint32_t id;     // the result of gettid
    uint64_t now_ps; // simulated time when the run token was given

    uint64_t tail_ps; // own work after the last entry
    _Atomic uint32_t entry_count;
    uint32_t op;
    union attach_args args;
    int64_t result;
    union attach_reply reply;
    uint64_t late_ps; // the longest step in a run of clock readings whose end was not known
    uint64_t effect;  // a kernel of the process to compute in this slot; 0: the reply is there
    uint32_t effect_gpu;
    uint32_t ask, ask_count; // the simulator asks how queues stand; `data` gets that many journal_states
    struct attach_entry entries[ATTACH_ENTRIES];
    _Alignas(16) unsigned char data[ATTACH_DATA_BYTES];
    // Of a known loop. changed: a word is another one, as the thread of the process that called in last has found.
    _Atomic uint32_t loop_on, loop_changed;
    uint32_t loop_poll_count, loop_word_count;
    struct attach_iteration_poll loop_polls[ATTACH_AHEAD_POLLS + 1];
    struct attach_loop_word loop_words[ATTACH_LOOP_WORDS];
    struct attach_loop_changes loop_changes;
    _Atomic uint32_t note_count;
    struct attach_note notes[ATTACH_NOTES];
};

struct attach_segment {
    struct attach_greeting greeting;
    _Atomic uint64_t alarm_ps;     // of attach_alarm
    _Atomic uint64_t event_writes; // of devices, so far, that may be work for a library (attach_progress_set)
    _Atomic uint32_t shares;       // perhaps memory with other processes
    _Atomic uint32_t outside;      // bits of enum attach_outside that the program has noted
    _Atomic uint32_t slot_end;     // slots of threads from this number on have never been used
    struct attach_slot slots[ATTACH_SLOTS];
};

// What threads without the run token sleep on, and which of them busy-waits. All programs of a run share it, because
// the thread that had the token last wakes the next. It decides nothing: the slots say which thread has the token, and
// a wrong word here only costs time.
struct attach_bells {
    _Atomic uint32_t polls; // how often a thread polls for the run token before it sleeps; 0: it sleeps at once
    _Atomic uint32_t awake; // the bell of the thread that busy-waits; ATTACH_BELL_NONE
    _Atomic uint32_t next;  // the bell of the thread that was scheduled last
    _Atomic uint32_t rung[ATTACH_BELLS];
};
#define ATTACH_BELL_NONE UINT32_MAX

// A slot's bell is known before the slot is used. In runs with very many threads some share a bell: then both wake.
static inline uint32_t attach_bell(uint32_t first_bell, uint32_t slot)
{
    return (first_bell + slot) % ATTACH_BELLS;
}
