// Messages of several pieces, and several messages in a call. The kernel would wait within the call until all of them
// are sent, or there; here each wait is one of its own, so that other threads run in between.
//
// Leaves out: a message with control data that waits for all of its bytes (MSG_WAITALL), which blocks in the kernel, and
// the remaining time that recvmmsg writes back.
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "verbs-shim/attach/kernel_call.h"
#include "verbs-shim/world/calls.h"
#include "verbs-shim/world/descriptors.h"
#include "verbs-shim/world/reach.h"
#include "verbs-shim/world/world.h"

// What remains of the pieces of a message: the first one without the bytes before `offset`.
struct rest {
    const struct iovec *pieces;
    size_t count, offset;
};
enum { PIECES_AT_ONCE = 16 }; // of a stream, which has no bounds between them

static void rest_skip(struct rest *rest, size_t bytes)
{
    rest->offset += bytes;
    while (rest->count > 0 && rest->offset >= rest->pieces->iov_len) {
        rest->offset -= rest->pieces->iov_len;
        rest->pieces++;
        rest->count--;
    }
}

static long rest_call(long number, int fd, struct msghdr *message, const struct rest *rest, int flags)
{
    struct iovec pieces[PIECES_AT_ONCE];
    size_t count = rest->count < PIECES_AT_ONCE ? rest->count : PIECES_AT_ONCE;
    for (size_t i = 0; i < count; i++) {
        size_t skipped = i == 0 ? rest->offset : 0;
        pieces[i] = (struct iovec){(char *)rest->pieces[i].iov_base + skipped, rest->pieces[i].iov_len - skipped};
    }
    message->msg_iov = pieces;
    message->msg_iovlen = count;
    return kernel_call(number, fd, (long)(uintptr_t)message, flags, 0, 0, 0);
}

// --- sending --------------------------------------------------------------------------------------------------------

// To a stream. Control data goes with the first piece.
static long send_all(int fd, const struct msghdr *message, int flags)
{
    struct rest rest = {.pieces = message->msg_iov, .count = message->msg_iovlen};
    struct msghdr part = *message;
    size_t done = 0;
    do {
        long put = world_ready_await(fd, POLLOUT, flags);
        put = put == 0 ? rest_call(SYS_sendmsg, fd, &part, &rest, flags | MSG_DONTWAIT) : put;
        if (world_sent_piece(fd, put)) {
            continue;
        }
        if (put < 0) {
            return done > 0 ? (long)done : put;
        }
        done += (size_t)put;
        rest_skip(&rest, (size_t)put);
        part.msg_control = NULL;
        part.msg_controllen = 0;
    } while (rest.count > 0);
    return (long)done;
}

static long message_send(int fd, const struct msghdr *message, int flags)
{
    int error = message != NULL ? world_unreachable(message->msg_name, message->msg_namelen) : 0;
    if (error != 0) {
        return -error;
    }
    if (message != NULL && message->msg_iovlen <= IOV_MAX && (flags & MSG_FASTOPEN) == 0 &&
        world_descriptor_of(fd) == WORLD_STREAM && world_blocks(fd, flags)) {
        return send_all(fd, message, flags);
    }
    long status = world_ready_await(fd, POLLOUT, flags);
    return status == 0 ? world_sent(fd, kernel_call(SYS_sendmsg, fd, (long)(uintptr_t)message, flags, 0, 0, 0))
                       : status;
}

long world_call_sendmsg(const long *a)
{
    return message_send((int)a[0], (const struct msghdr *)a[1], (int)a[2]);
}

long world_call_sendmmsg(const long *a)
{
    struct mmsghdr *messages = (struct mmsghdr *)a[1];
    long done = 0;
    while (done < (long)(unsigned)a[2]) {
        long put = message_send((int)a[0], &messages[done].msg_hdr, (int)a[3]);
        if (put < 0) {
            return done > 0 ? done : put;
        }
        messages[done++].msg_len = (unsigned)put;
    }
    return done;
}

static size_t bytes_of(const struct iovec *pieces, size_t count)
{
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++) {
        bytes += pieces[i].iov_len;
    }
    return bytes;
}

// A pipe takes PIPE_BUF bytes as a whole, and more than that in any pieces.
static long pipe_send(int fd, const struct iovec *pieces, size_t count)
{
    long done = 0;
    for (size_t i = 0; i < count; i++) {
        long put = world_pipe_write(fd, pieces[i].iov_base, pieces[i].iov_len);
        if (put < 0) {
            return done > 0 ? done : put;
        }
        done += put;
        if ((size_t)put < pieces[i].iov_len) {
            break;
        }
    }
    return done;
}

long world_call_writev(const long *a)
{
    int fd = (int)a[0];
    const struct iovec *pieces = (const struct iovec *)a[1];
    enum world_descriptor kind = world_descriptor_of(fd);
    bool waits = a[2] >= 0 && a[2] <= IOV_MAX && world_blocks(fd, 0);
    if (waits && kind == WORLD_STREAM) {
        const struct msghdr message = {.msg_iov = (struct iovec *)a[1], .msg_iovlen = (size_t)a[2]};
        return message_send(fd, &message, 0);
    }
    if (waits && kind == WORLD_PIPE && bytes_of(pieces, (size_t)a[2]) > PIPE_BUF) {
        return pipe_send(fd, pieces, (size_t)a[2]);
    }
    long status = world_ready_await(fd, POLLOUT, 0);
    return status == 0 ? world_sent(fd, kernel_call(SYS_writev, a[0], a[1], a[2], 0, 0, 0)) : status;
}

// --- receiving ------------------------------------------------------------------------------------------------------

// MSG_WAITALL. The rest of the message's header is that of its first piece.
static long receive_all(int fd, struct msghdr *message, int flags)
{
    struct rest rest = {.pieces = message->msg_iov, .count = message->msg_iovlen};
    struct msghdr part = *message;
    size_t have = 0;
    while (rest.count > 0) {
        long got = world_ready_await(fd, POLLIN, flags);
        got = got == 0 ? rest_call(SYS_recvmsg, fd, &part, &rest, flags & ~MSG_WAITALL) : got;
        attach_may_wake();
        if (got <= 0) {
            return have > 0 ? (long)have : got;
        }
        have += (size_t)got;
        rest_skip(&rest, (size_t)got);
        if (have == (size_t)got) {
            message->msg_namelen = part.msg_namelen;
            message->msg_flags = part.msg_flags;
            part.msg_name = NULL;
        }
    }
    return (long)have;
}

long world_call_recvmsg(const long *a)
{
    int fd = (int)a[0], flags = (int)a[2];
    struct msghdr *message = (struct msghdr *)a[1];
    if ((flags & (MSG_WAITALL | MSG_PEEK | MSG_DONTWAIT)) == MSG_WAITALL && message != NULL &&
        message->msg_controllen == 0 && message->msg_iovlen <= IOV_MAX && world_descriptor_of(fd) == WORLD_STREAM &&
        world_blocks(fd, flags)) {
        return receive_all(fd, message, flags);
    }
    long status = world_ready_await(fd, POLLIN, flags);
    return status == 0 ? world_moved(fd, kernel_call(SYS_recvmsg, a[0], a[1], a[2], 0, 0, 0)) : status;
}

// Waits for each message, or with MSG_WAITFORONE for the first. As in the kernel, the timeout is checked after each.
long world_call_recvmmsg(const long *a)
{
    int fd = (int)a[0], flags = (int)a[3];
    unsigned count = (unsigned)a[2], have = 0;
    struct mmsghdr *messages = (struct mmsghdr *)a[1];
    uint64_t deadline_ps = world_deadline_after((const struct timespec *)a[4]);
    do {
        bool waits = have == 0 || (flags & MSG_WAITFORONE) == 0;
        long status = waits ? world_ready_await(fd, POLLIN, flags) : 0;
        if (status == 0) {
            status = world_moved(fd, kernel_call(SYS_recvmmsg, fd, (long)(uintptr_t)&messages[have], count - have,
                                                 (flags & ~MSG_WAITFORONE) | MSG_DONTWAIT, 0, 0));
        }
        if (status < 0) {
            return have > 0 ? (long)have : status;
        }
        have += (unsigned)status;
        if (status == 0 || !waits || !world_blocks(fd, flags)) {
            break;
        }
    } while (have < count && attach_now_ps() < deadline_ps);
    return (long)have;
}
