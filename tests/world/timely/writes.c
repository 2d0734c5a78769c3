// The functions that wait for room.
#include <errno.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "stages.h"

static char byte;

static long by_write(struct timely_scene *scene)
{
    return timely_result(write(scene->fds[0], &byte, 1));
}

static long by_writev(struct timely_scene *scene)
{
    const struct iovec piece = {&byte, 1};
    return timely_result(writev(scene->fds[0], &piece, 1));
}

static long by_send(struct timely_scene *scene)
{
    return timely_result(send(scene->fds[0], &byte, 1, 0));
}

static long by_sendto(struct timely_scene *scene)
{
    return timely_result(sendto(scene->fds[0], &byte, 1, 0, NULL, 0));
}

static long by_sendmsg(struct timely_scene *scene)
{
    struct iovec piece = {&byte, 1};
    const struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1};
    return timely_result(sendmsg(scene->fds[0], &message, 0));
}

// --- more than there is ever room for -------------------------------------------------------------------------------

static char many[TIMELY_MANY_BYTES / 4];
static struct iovec pieces[] = {{many, sizeof many}, {many, sizeof many}, {many, sizeof many}, {many, sizeof many}};

static long by_writev_of_many(struct timely_scene *scene)
{
    return timely_result(writev(scene->fds[0], pieces, 4));
}

static long by_sendmsg_of_many(struct timely_scene *scene)
{
    const struct msghdr message = {.msg_iov = pieces, .msg_iovlen = 4};
    return timely_result(sendmsg(scene->fds[0], &message, 0));
}

static long by_write_of_many(struct timely_scene *scene)
{
    long done = 0;
    for (unsigned i = 0; i < 4; i++) {
        done += write(scene->fds[0], many, sizeof many);
    }
    return done;
}

#define LIMIT(result) .has_limit = true, .limit_result = (result)

static const struct timely_row rows[] = {
    TIMELY_ROW(FUNCTION, "write", by_write, 1, .stage = &timely_full_socket, LIMIT(-EAGAIN)),
    TIMELY_ROW(FUNCTION, "write", by_write, 1, .stage = &timely_full_pipe),
    TIMELY_ROW(FUNCTION, "writev", by_writev, 1, .stage = &timely_full_socket, LIMIT(-EAGAIN)),
    TIMELY_ROW(FUNCTION, "writev", by_writev, 1, .stage = &timely_full_pipe),
    TIMELY_ROW(FUNCTION, "send", by_send, 1, .stage = &timely_full_socket, LIMIT(-EAGAIN)),
    TIMELY_ROW(FUNCTION, "sendto", by_sendto, 1, .stage = &timely_full_socket, LIMIT(-EAGAIN)),
    TIMELY_ROW(FUNCTION, "sendmsg", by_sendmsg, 1, .stage = &timely_full_socket, LIMIT(-EAGAIN)),
    TIMELY_ROW(FUNCTION, "write", by_write_of_many, TIMELY_MANY_BYTES, .stage = &timely_reader),
    TIMELY_ROW(FUNCTION, "write", by_write_of_many, TIMELY_MANY_BYTES, .stage = &timely_pipe_reader),
    TIMELY_ROW(FUNCTION, "writev", by_writev_of_many, TIMELY_MANY_BYTES, .stage = &timely_reader),
    TIMELY_ROW(FUNCTION, "writev", by_writev_of_many, TIMELY_MANY_BYTES, .stage = &timely_pipe_reader),
    TIMELY_ROW(FUNCTION, "sendmsg", by_sendmsg_of_many, TIMELY_MANY_BYTES, .stage = &timely_reader),
};
TIMELY_THEME(writes, rows);
