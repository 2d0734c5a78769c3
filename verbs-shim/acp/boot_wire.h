// What acprun and the processes that it starts say to each other, over TCP of one machine's byte order.
//
// A process connects, says who it is, and sends letters. When acprun has one of each place it sends all of them back,
// by place. A process that aborts says so, and one that has finalized; where one just closes, acprun ends the others.
#pragma once

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

enum acp_wire_kind {
    ACP_WIRE_HELLO,   // the process's place (uint32_t)
    ACP_WIRE_LETTER,  // up to ACP_BOOT_BYTES_MAX
    ACP_WIRE_LETTERS, // everybody's
    ACP_WIRE_ABORT,   // no more
    ACP_WIRE_BYE      // it closes the connection as it should: after acp_finalize
};

struct acp_wire_header {
    uint32_t kind;
    uint32_t bytes; // behind it
};

#define ACP_ARGUMENT_RANK    "--acp-myrank"
#define ACP_ARGUMENT_RANKS   "--acp-nprocs"
#define ACP_ARGUMENT_HOST    "--acp-host-remote"
#define ACP_ARGUMENT_PORT    "--acp-port-remote"
#define ACP_ARGUMENT_STARTER "--acp-size-smem"
#define ACP_ARGUMENT_DEVICE  "--acp-device"
#define ACP_ARGUMENT_CONNECT "--acp-connect" // start or first-use

// Whole messages, whatever signals come in between. false: the connection is closed or broken; errno is 0 if closed.
static inline bool acp_wire_send(int fd, const void *bytes, size_t count)
{
    size_t sent = 0;
    while (sent < count) {
        ssize_t n = send(fd, (const char *)bytes + sent, count - sent, MSG_NOSIGNAL);
        if (n < 0 && errno != EINTR) {
            return false;
        }
        sent += n > 0 ? (size_t)n : 0;
    }
    return true;
}

static inline bool acp_wire_receive(int fd, void *bytes, size_t count)
{
    size_t received = 0;
    while (received < count) {
        ssize_t n = recv(fd, (char *)bytes + received, count - received, 0);
        if (n == 0 || (n < 0 && errno != EINTR)) {
            errno = n == 0 ? 0 : errno;
            return false;
        }
        received += n > 0 ? (size_t)n : 0;
    }
    return true;
}
