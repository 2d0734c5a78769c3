// The protocol between acprun and the processes that it starts, over TCP, in one machine's byte order.
//
// A process connects, sends its number and the secret that acprun has put into its environment, and then its messages. When acprun has one message of each process it sends all
// of them back, by process. A process reports an abort, and the end after acp_finalize; if a connection closes without
// either, acprun ends the other processes.
#pragma once

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

enum acp_wire_kind {
    ACP_WIRE_HELLO,    // struct acp_wire_hello
    ACP_WIRE_GATHER,   // up to ACP_BOOT_BYTES_MAX
    ACP_WIRE_GATHERED, // those of all processes
    ACP_WIRE_ABORT,    // without data
    ACP_WIRE_BYE       // the process ends as it should: after acp_finalize
};

struct acp_wire_header {
    uint32_t kind;
    uint32_t bytes; // number of bytes that follow
};

// Who does not know the secret is no rank. Arguments would show it to everybody on the machine.
enum { ACP_SECRET_BYTES = 16 };
#define ACP_SECRET_NAME "ACPRUN_SECRET" // in hexadecimal digits
struct acp_wire_hello {
    uint32_t number; // of the process
    uint8_t secret[ACP_SECRET_BYTES];
};

#define ACP_ARGUMENT_RANK    "--acp-myrank"
#define ACP_ARGUMENT_RANKS   "--acp-nprocs"
#define ACP_ARGUMENT_HOST    "--acp-host-remote"
#define ACP_ARGUMENT_PORT    "--acp-port-remote"
#define ACP_ARGUMENT_STARTER "--acp-size-smem"
#define ACP_ARGUMENT_DEVICE  "--acp-device"
#define ACP_ARGUMENT_CONNECT "--acp-connect" // start or first-use

// Complete messages, also if signals interrupt. false: the connection is closed or broken; errno is 0 if closed.
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
