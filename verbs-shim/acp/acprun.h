// What the files of acprun share: it starts the ranks of an ACP program, lets them meet, and ends all when one fails.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define ACPRUN_RANKS_MAX 1024u
#define ACPRUN_HOSTS_MAX 256u

struct acprun_options {
    uint32_t ranks;
    const char *hosts[ACPRUN_HOSTS_MAX]; // rank r runs on host r % host_count
    uint32_t host_count;                 // 0: all on this one
    const char *shell;                   // in place of ssh
    const char *device;                  // NULL: the library chooses
    uint64_t starter_bytes;              // 0: the library's default
    bool connect_at_start, verbose;
    char **program; // and its arguments, NULL at the end
};

// Ends the program with status 0 for --help, and 2 where arguments are wrong.
void acprun_options_read(int argc, char **argv, struct acprun_options *options_out);

// --- the ranks' connections -----------------------------------------------------------------------------------------

struct acprun_meeting {
    uint32_t ranks;
    int listener;
    uint16_t port;
    struct acprun_member *members; // connections, in the order in which they came
    uint32_t member_count;
    uint32_t letters; // that have come of the exchange under way
    uint32_t letter_bytes;
    uint8_t *all;        // letters, by place
    bool lost;           // a rank has closed its connection without having finalized
    uint32_t lost_place; // this one
    const char *failure; // why the ranks cannot go on; NULL: nothing failed
    bool aborted;        // a rank said so itself
};

// -1 with errno.
int acprun_meeting_open(struct acprun_meeting *meeting, uint32_t ranks);
// Waits until something has come, or `wake` can be read, and handles it. most_ms: no longer; -1: for ever. true:
// nothing has come in that time.
bool acprun_meeting_wait(struct acprun_meeting *meeting, int wake, int most_ms);
void acprun_meeting_close(struct acprun_meeting *meeting);
