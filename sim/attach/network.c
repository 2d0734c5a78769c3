// The network of a run: one of its own if the machine allows that (network_namespaces(7)), so that the nodes have all ports, and
// no service of the machine is there. Else the machine's loopback network, with addresses that no other run has taken.
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sim/attach/internal.h"

static bool file_write(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    bool written = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
    if (fd >= 0) {
        close(fd);
    }
    return written;
}

// The user and the group stay the same: the kernel lets a user without privileges map no others (user_namespaces(7)).
static bool user_map(uid_t user, gid_t group)
{
    char users[64], groups[64];
    snprintf(users, sizeof users, "%u %u 1", (unsigned)user, (unsigned)user);
    snprintf(groups, sizeof groups, "%u %u 1", (unsigned)group, (unsigned)group);
    return file_write("/proc/self/setgroups", "deny") && file_write("/proc/self/uid_map", users) &&
           file_write("/proc/self/gid_map", groups);
}

static bool loopback_start(void)
{
    struct ifreq request = {.ifr_name = "lo"};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool done = fd >= 0 && ioctl(fd, SIOCGIFFLAGS, &request) == 0;
    request.ifr_flags = (short)(request.ifr_flags | IFF_UP);
    done = done && ioctl(fd, SIOCSIFFLAGS, &request) == 0;
    if (fd >= 0) {
        close(fd);
    }
    return done;
}

enum made { MADE_NONE, MADE_NETWORK, MADE_WITH_USERS };

// In a child of the simulator, which then waits until its namespaces are opened.
__attribute__((noreturn)) static void make(int done, int ready)
{
    uid_t user = geteuid();
    gid_t group = getegid();
    char made = MADE_NONE, byte;
    if (unshare(CLONE_NEWNET) == 0) {
        made = MADE_NETWORK;
    } else if (unshare(CLONE_NEWUSER | CLONE_NEWNET) == 0 && user_map(user, group)) {
        made = MADE_WITH_USERS;
    }
    made = made != MADE_NONE && loopback_start() ? made : (char)MADE_NONE;
    (void)write(ready, &made, 1);
    close(ready);
    (void)read(done, &byte, 1);
    _exit(0);
}

static int namespace_open(pid_t pid, const char *name)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/ns/%s", (int)pid, name);
    return open(path, O_RDONLY | O_CLOEXEC);
}

static void own_make(struct attach_network *network)
{
    int done[2], ready[2];
    char made = MADE_NONE;
    if (pipe2(done, O_CLOEXEC) != 0) {
        return;
    }
    if (pipe2(ready, O_CLOEXEC) != 0) {
        close(done[0]);
        close(done[1]);
        return;
    }
    pid_t child = fork();
    if (child == 0) {
        close(done[1]);
        close(ready[0]);
        make(done[0], ready[1]);
    }
    close(done[0]);
    close(ready[1]);
    ssize_t got = -1;
    while (child > 0 && (got = read(ready[0], &made, 1)) < 0 && errno == EINTR) {
    }
    if (got == 1 && made != MADE_NONE) {
        network->users = made == MADE_WITH_USERS ? namespace_open(child, "user") : -1;
        network->own = made == MADE_NETWORK || network->users >= 0 ? namespace_open(child, "net") : -1;
        if (network->own < 0 && network->users >= 0) {
            close(network->users);
            network->users = -1;
        }
    }
    close(done[1]);
    close(ready[0]);
    while (child > 0 && waitpid(child, NULL, 0) < 0 && errno == EINTR) {
    }
}

// From 127.77.N.1 on, with an N that no other run has taken. The abstract name that holds N is released when its owner ends.
static void addresses_reserve(struct attach_network *network)
{
    network->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    for (uint32_t number = 0; number < 256; number++) {
        struct sockaddr_un name = {.sun_family = AF_UNIX};
        int length = snprintf(name.sun_path + 1, sizeof name.sun_path - 1, "tcasim-network-%u", number);
        network->address_base = 127u << 24 | 77u << 16 | number << 8 | 1u;
        if (bind(network->fd, (const struct sockaddr *)&name,
                 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length)) == 0) {
            return;
        }
    }
}

void attach_network_make(struct attach_network *network)
{
    *network = (struct attach_network){.fd = -1, .own = -1, .users = -1, .address_base = 127u << 24 | 77u << 16 | 1u};
    own_make(network);
    if (network->own < 0) {
        addresses_reserve(network);
    }
}

void attach_network_enter(const struct attach_network *network)
{
    if (network->users >= 0) {
        (void)setns(network->users, CLONE_NEWUSER);
    }
    if (network->own >= 0 && setns(network->own, CLONE_NEWNET) != 0) {
        fprintf(stderr, "tcasim: the run's network: %s\n", strerror(errno));
        _exit(127);
    }
}

void attach_network_end(struct attach_network *network)
{
    const int fds[] = {network->fd, network->own, network->users};
    for (size_t i = 0; i < sizeof fds / sizeof fds[0]; i++) {
        if (fds[i] >= 0) {
            close(fds[i]);
        }
    }
}
