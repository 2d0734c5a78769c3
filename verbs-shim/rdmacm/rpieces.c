// rsockets: data in several pieces. In a stream they are sent one after the other, in a datagram together.
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "verbs-shim/rdmacm/internal.h"
#include "verbs-shim/rdmacm/rsocket.h"

static ssize_t pieces_move(int fd, const struct iovec *pieces, int count, int flags, bool sends)
{
    ssize_t done = 0;
    for (int i = 0; i < count; i++) {
        ssize_t moved = sends
                            ? rsend(fd, pieces[i].iov_base, pieces[i].iov_len, flags)
                            : rrecv(fd, pieces[i].iov_base, pieces[i].iov_len, done > 0 ? flags | MSG_DONTWAIT : flags);
        if (moved < 0) {
            return done > 0 ? done : -1;
        }
        done += moved;
        if ((size_t)moved < pieces[i].iov_len) {
            break;
        }
    }
    return done;
}

static ssize_t datagram_move(int fd, const struct msghdr *message, int flags, bool sends, socklen_t *name_bytes)
{
    uint8_t whole[RS_DATAGRAM_BYTES];
    size_t done = 0;
    for (size_t i = 0; sends && i < message->msg_iovlen; i++) {
        const struct iovec *piece = &message->msg_iov[i];
        if (piece->iov_len > sizeof whole - done) {
            return cm_errno(-EMSGSIZE);
        }
        memcpy(whole + done, piece->iov_base, piece->iov_len);
        done += piece->iov_len;
    }
    if (sends) {
        return rsendto(fd, whole, done, flags, message->msg_name, message->msg_namelen);
    }
    ssize_t got = rrecvfrom(fd, whole, sizeof whole, flags, message->msg_name, name_bytes);
    for (size_t i = 0; got > 0 && i < message->msg_iovlen && done < (size_t)got; i++) {
        const struct iovec *piece = &message->msg_iov[i];
        size_t part = piece->iov_len < (size_t)got - done ? piece->iov_len : (size_t)got - done;
        memcpy(piece->iov_base, whole + done, part);
        done += part;
    }
    return got > 0 ? (ssize_t)done : got;
}

static ssize_t message_move(int fd, struct msghdr *message, int flags, bool sends)
{
    const struct rs *rs = rs_find(fd);
    if (message->msg_controllen != 0) {
        return cm_errno(-EOPNOTSUPP);
    }
    if (rs != NULL && rs->datagrams != NULL) {
        return datagram_move(fd, message, flags, sends, &message->msg_namelen);
    }
    return pieces_move(fd, message->msg_iov, (int)message->msg_iovlen, flags, sends);
}

ssize_t rreadv(int fd, const struct iovec *pieces, int count)
{
    struct msghdr message = {.msg_iov = (struct iovec *)(uintptr_t)pieces, .msg_iovlen = (size_t)count};
    return message_move(fd, &message, 0, false);
}

ssize_t rwritev(int fd, const struct iovec *pieces, int count)
{
    struct msghdr message = {.msg_iov = (struct iovec *)(uintptr_t)pieces, .msg_iovlen = (size_t)count};
    return message_move(fd, &message, 0, true);
}

ssize_t rrecvmsg(int fd, struct msghdr *message, int flags)
{
    return message_move(fd, message, flags, false);
}

ssize_t rsendmsg(int fd, const struct msghdr *message, int flags)
{
    struct msghdr copy = *message;
    return message_move(fd, &copy, flags, true);
}
