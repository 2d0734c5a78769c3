// rsockets: waits for several sockets and other descriptors together.
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "verbs-shim/rdmacm/internal.h"
#include "verbs-shim/rdmacm/rsocket.h"

enum { PER_SOCKET = 2 }; // descriptors: the connection's and the completion channel's

static short events_of(const struct rs *rs, short wanted)
{
    short events = 0;
    if (rs->datagrams != NULL) {
        events |= rs_can_receive(rs) ? POLLIN : 0;
        events |= rs_can_send(rs) ? POLLOUT : 0;
        return (short)((events & wanted) | (rs->state == RS_FAILED ? POLLERR : 0));
    }
    if (rs->state == RS_FAILED) {
        return (short)(POLLERR | (wanted & (POLLIN | POLLOUT)));
    }
    if (rs->state != RS_CONNECTED) {
        return 0;
    }
    events |= rs_can_receive(rs) ? POLLIN : 0;
    events |= rs_can_send(rs) ? POLLOUT : 0;
    events &= wanted;
    bool over = rs->read_end && rs->write_end && rs->message_count == 0;
    return (short)(events | (over ? POLLHUP : 0));
}

// Checks the sockets without a call of the kernel; returns how many are ready.
static int sockets_poll(struct pollfd *fds, nfds_t count, bool arms)
{
    int ready = 0;
    for (nfds_t i = 0; i < count; i++) {
        struct rs *rs = rs_enter(fds[i].fd);
        fds[i].revents = 0;
        if (rs == NULL) {
            continue;
        }
        if (arms) {
            rs_arm(rs);
        }
        if (rs->state == RS_CONNECTED) {
            rs_reap(rs);
        }
        fds[i].revents = events_of(rs, fds[i].events);
        rs_leave(rs);
        ready += fds[i].revents != 0;
    }
    return ready;
}

static void descriptors_fill(const struct pollfd *fds, nfds_t count, struct pollfd *kernel)
{
    for (nfds_t i = 0; i < count; i++) {
        const struct rs *rs = rs_find(fds[i].fd);
        kernel[PER_SOCKET * i] = (struct pollfd){.fd = fds[i].fd, .events = rs != NULL ? POLLIN : fds[i].events};
        kernel[PER_SOCKET * i + 1] =
            (struct pollfd){.fd = rs != NULL && rs->cq_channel != NULL ? rs->cq_channel->fd : -1, .events = POLLIN};
    }
}

// Updates the sockets from the kernel's answer; returns how many are ready.
static int descriptors_take(struct pollfd *fds, nfds_t count, const struct pollfd *kernel)
{
    int ready = 0;
    for (nfds_t i = 0; i < count; i++) {
        struct rs *rs = rs_enter(fds[i].fd);
        if (rs == NULL) {
            fds[i].revents = kernel[PER_SOCKET * i].revents;
        } else {
            if (kernel[PER_SOCKET * i + 1].revents != 0) {
                rs_taken(rs);
            }
            if (kernel[PER_SOCKET * i].revents != 0 && rs->state == RS_LISTENING) {
                fds[i].revents = POLLIN & fds[i].events;
            } else if (kernel[PER_SOCKET * i].revents != 0) {
                rs_channel_ready(rs);
            }
            if (rs->state != RS_LISTENING) {
                rs_reap(rs);
                fds[i].revents = events_of(rs, fds[i].events);
            }
            rs_leave(rs);
        }
        ready += fds[i].revents != 0;
    }
    return ready;
}

static bool any_socket(const struct pollfd *fds, nfds_t count, bool connected)
{
    bool any = false;
    for (nfds_t i = 0; i < count && !any; i++) {
        const struct rs *rs = rs_find(fds[i].fd);
        any = rs != NULL && (!connected || rs->state == RS_CONNECTED);
    }
    return any;
}

// If the caller's loop polls with timeout 0, its poll of a completion queue already took the time of an iteration: the
// kernel is then asked directly, in no simulated time.
static int kernel_wait(const struct pollfd *fds, struct pollfd *kernel, nfds_t count, int timeout_ms)
{
    if (timeout_ms == 0 && any_socket(fds, count, true)) {
        return (int)syscall(SYS_poll, kernel, count * PER_SOCKET, 0);
    }
    return poll(kernel, count * PER_SOCKET, timeout_ms);
}

int rpoll(struct pollfd *fds, nfds_t count, int timeout_ms)
{
    if (!any_socket(fds, count, false)) {
        return poll(fds, count, timeout_ms);
    }
    struct pollfd *kernel = calloc(count * PER_SOCKET, sizeof *kernel);
    if (kernel == NULL) {
        return cm_errno(-ENOMEM);
    }
    uint64_t until_ns = timeout_ms > 0 ? cm_now_ns() + (uint64_t)timeout_ms * 1000000u : 0;
    int ready = sockets_poll(fds, count, false);
    ready = ready == 0 && timeout_ms != 0 ? sockets_poll(fds, count, true) : ready;
    while (true) {
        uint64_t now_ns = timeout_ms > 0 ? cm_now_ns() : 0;
        int left_ms = timeout_ms < 0 ? -1 : now_ns < until_ns ? (int)((until_ns - now_ns + 999999) / 1000000) : 0;
        descriptors_fill(fds, count, kernel);
        int found = kernel_wait(fds, kernel, count, ready > 0 ? 0 : left_ms);
        if (found < 0) {
            ready = -1;
            break;
        }
        ready = descriptors_take(fds, count, kernel);
        if (ready > 0 || (found == 0 && left_ms == 0)) {
            break;
        }
        ready = sockets_poll(fds, count, true);
    }
    free(kernel);
    return ready;
}

// --- select ---------------------------------------------------------------------------------------------------------

static void set_take(fd_set *set, int fd, bool ready, int *count)
{
    if (set != NULL && FD_ISSET(fd, set)) {
        if (ready) {
            ++*count;
        } else {
            FD_CLR(fd, set);
        }
    }
}

int rselect(int count, fd_set *in, fd_set *out, fd_set *except, struct timeval *timeout)
{
    struct pollfd *fds = calloc(count > 0 ? (size_t)count : 1, sizeof *fds);
    nfds_t used = 0;
    if (fds == NULL || count < 0 || count > FD_SETSIZE) {
        free(fds);
        return cm_errno(fds == NULL ? -ENOMEM : -EINVAL);
    }
    for (int fd = 0; fd < count; fd++) {
        bool reads = in != NULL && FD_ISSET(fd, in), writes = out != NULL && FD_ISSET(fd, out);
        if (reads || writes || (except != NULL && FD_ISSET(fd, except))) {
            fds[used++] = (struct pollfd){.fd = fd, .events = (short)((reads ? POLLIN : 0) | (writes ? POLLOUT : 0))};
        }
    }
    int ready =
        rpoll(fds, used, timeout != NULL ? (int)(timeout->tv_sec * 1000 + (timeout->tv_usec + 999) / 1000) : -1);
    int bits = 0;
    for (nfds_t i = 0; ready >= 0 && i < used; i++) {
        short events = fds[i].revents;
        set_take(in, fds[i].fd, (events & (POLLIN | POLLHUP | POLLERR)) != 0, &bits);
        set_take(out, fds[i].fd, (events & (POLLOUT | POLLERR)) != 0, &bits);
        set_take(except, fds[i].fd, false, &bits);
    }
    free(fds);
    return ready >= 0 ? bits : -1;
}
