// Connects as a library of another build would, and prints the reply: "stranger BYTES", the length of its first
// message.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "verbs-shim/attach/protocol.h"

int main(int argc, char **argv)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct attach_welcome welcome = {0};
    struct {
        struct attach_hello hello;
        char more[64];
    } message = {.hello = {.magic = ATTACH_MAGIC, .layout = ATTACH_LAYOUT + 1, .node = "node0"}};
    size_t bytes = argc > 1 ? strtoul(argv[1], NULL, 10) : 0;
    strncpy(address.sun_path, getenv("TCASIM_ATTACH"), sizeof address.sun_path - 1);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (bytes > sizeof message || connect(fd, (const struct sockaddr *)&address, sizeof address) != 0 ||
        send(fd, &message, bytes, MSG_NOSIGNAL) != (ssize_t)bytes) {
        return 1;
    }
    ssize_t got = recv(fd, &welcome, sizeof welcome, 0);
    printf("%zd %s\n", got > 0 ? (ssize_t)welcome.magic : got, welcome.text);
    return 0;
}
