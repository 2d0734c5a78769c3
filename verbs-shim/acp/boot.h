// How the ranks of an ACP program find each other: an exchange among them outside the fabric. Started by acprun, it is
// a connection to acprun (boot_socket.c); inside the simulator the environment gives another one.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ACP_BOOT_BYTES_MAX 64u // of one letter

struct acp_boot {
    void *ctx;
    uint32_t place, places; // a number of each process, which stays when acp_reset changes its rank; how many
    uint32_t rank;          // to begin with
    const char *device;     // of libibverbs; NULL: the first one with an active port
    uint64_t starter_bytes; // of starter memory; 0: 10240
    bool connect_all;       // at the start rather than at first use
    // Gives `mine` to all and takes everybody's, by place. Returns when all have called it. -EIO, with a message.
    int (*gather)(void *ctx, const void *mine, void *all, size_t bytes);
    // Ends all ranks with this message. May return inside the simulator, which then stops.
    void (*abort)(void *ctx, const char *text);
    void (*close)(void *ctx, bool finalized); // may be NULL
};

// For the calling process, before acp_init. *boot is copied; ctx must live until acp_finalize. -ENOMEM.
int acp_boot_set(const struct acp_boot *boot);

// From acprun's arguments, which are taken out. -ENOENT: there are none. -EINVAL, -EIO: with a message.
int acp_boot_from_arguments(int *argc, char ***argv, struct acp_boot *boot_out);
