// Start-up: how the ranks of an ACP program exchange their addresses outside the fabric. For ranks started by acprun it
// is a connection to acprun (boot_socket.c); inside the simulator the environment provides it.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ACP_BOOT_BYTES_MAX 64u // of one message

struct acp_boot {
    void *ctx;
    uint32_t process, processes; // number of this process, which acp_reset does not change; number of processes
    uint32_t rank;               // the first rank of the process
    const char *device;          // libibverbs name; NULL: the first device with an active port
    uint64_t starter_bytes;      // size of starter memory; 0: 10240
    bool connect_all;            // at the start instead of at first use
    // Sends `mine` to all and receives the messages of all, by process. Returns when all have called it. -EIO, with a
    // message.
    int (*gather)(void *ctx, const void *mine, void *all, size_t bytes);
    // Ends all ranks with this message. Inside the simulator it may return; the simulator then stops.
    void (*abort)(void *ctx, const char *text);
    void (*close)(void *ctx, bool finalized); // may be NULL
};

// For the calling process, before acp_init. *boot is copied; ctx must be valid until acp_finalize. -ENOMEM.
int acp_boot_set(const struct acp_boot *boot);

// From acprun's arguments, which are removed. -ENOENT: there are none. -EINVAL, -EIO: with a message.
int acp_boot_from_arguments(int *argc, char ***argv, struct acp_boot *boot_out);
