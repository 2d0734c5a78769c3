// Shared by the files of acprun, which starts the ranks of an ACP program, connects them, and ends all when one fails.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define ACPRUN_RANKS_MAX 1024u
#define ACPRUN_HOSTS_MAX 256u

struct acprun_options {
    uint32_t ranks;
    const char *hosts[ACPRUN_HOSTS_MAX]; // rank r runs on host r % host_count
    uint32_t host_count;                 // 0: all ranks on this host
    const char *shell;                   // instead of ssh
    const char *device;                  // NULL: the library chooses
    uint64_t starter_bytes;              // 0: the library's default
    bool connect_at_start, verbose;
    char **program; // with its arguments; ends with NULL
};

// Exits with status 0 for --help, and with 2 if arguments are wrong.
void acprun_options_read(int argc, char **argv, struct acprun_options *options_out);

// --- the ranks' connections -----------------------------------------------------------------------------------------

struct acprun_meeting {
    uint32_t ranks;
    int listener;
    uint16_t port;
    uint8_t secret[16];            // that ranks know, and strangers do not
    struct acprun_member *members; // connections, those of strangers among them
    uint32_t member_count, members_max;
    uint32_t gathered; // received in the current exchange
    uint32_t message_bytes;
    uint8_t *all;          // messages, by process
    bool lost;             // a rank has closed its connection without acp_finalize
    uint32_t lost_process; // its process
    uint64_t lost_ms;      // when it did
    const char *failure;   // why the ranks cannot continue; NULL: no failure
    bool aborted;          // a rank has called acp_abort
};

// -1 with errno. Sets the secret, and the variable of the environment by which ranks know it.
int acprun_meeting_open(struct acprun_meeting *meeting, uint32_t ranks);
// Waits until a message arrives or `wake` is readable, and handles it. most_ms: the timeout; -1: none. true: a rank was
// lost longer ago than that.
bool acprun_meeting_wait(struct acprun_meeting *meeting, int wake, int most_ms);
void acprun_meeting_close(struct acprun_meeting *meeting);
