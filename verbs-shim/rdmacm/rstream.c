// rsockets: the stream of a connection.
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "verbs-shim/attach/attach.h"
#include "verbs-shim/rdmacm/internal.h"
#include "verbs-shim/rdmacm/rsocket.h"

// An immediate value holds an operation and a number of 29 bits.
enum { OP_DATA, OP_GRANT, OP_IOMAP, OP_CONTROL };
enum { OP_SHIFT = 29, WC_BATCH = 16, SPIN_US = 10, PIECE_FIRST = 2048, PIECE_MAX = 65536 };
#define VALUE_MASK ((UINT32_C(1) << OP_SHIFT) - 1)

static uint32_t immediate_of(unsigned op, uint32_t value)
{
    return op << OP_SHIFT | (value & VALUE_MASK);
}

uint32_t rs_iomap_immediate(void)
{
    return immediate_of(OP_IOMAP, 0);
}

void rs_copy(void *to, const void *from, size_t bytes)
{
    const struct backend_process *process = backend_current();
    memcpy(to, from, bytes);
    if (process != NULL) {
        process->backend.ops->cost(process->backend.ctx, BACKEND_COST_COPY, bytes);
    }
}

// --- requests -------------------------------------------------------------------------------------------------------
// A request's identifier: the number of bytes of the send buffer that it frees, or ID_CONTROL.

#define ID_CONTROL UINT64_MAX

int rs_write(struct rs *rs, const void *data, unsigned bytes, const struct rs_window *to, const uint32_t *immediate,
             uint64_t id)
{
    struct ibv_sge sge = {.addr = (uintptr_t)data, .length = bytes, .lkey = rs->mr->lkey};
    struct ibv_send_wr wr = {.wr_id = id, .sg_list = &sge, .num_sge = bytes != 0}, *bad;
    wr.opcode = immediate != NULL ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE;
    wr.imm_data = immediate != NULL ? htobe32(*immediate) : 0;
    wr.send_flags = id == 0 && bytes != 0 ? IBV_SEND_INLINE : 0;
    wr.wr.rdma.remote_addr = to->address;
    wr.wr.rdma.rkey = to->key;
    return -ibv_post_send(rs->id->qp, &wr, &bad);
}

int rs_control_send(struct rs *rs, uint32_t value)
{
    uint32_t immediate = immediate_of(OP_CONTROL, value);
    rs->controls_free--;
    return rs_write(rs, NULL, 0, &rs->peer.table, &immediate, ID_CONTROL);
}

// Grants when half of the buffer is free, or half of the messages have arrived.
void rs_grant(struct rs *rs)
{
    unsigned half = (unsigned)rs->receive_bytes / RS_HALVES;
    bool bytes = rs->give_bytes >= half, messages = (int16_t)(rs->received - rs->granted) >= 0;
    if ((!bytes && !messages) || rs->controls_free == 0 || rs->write_end || rs->state != RS_CONNECTED) {
        return;
    }
    uint32_t immediate = immediate_of(OP_GRANT, (uint16_t)(rs->received + rs->rq_size));
    struct rs_window to = rs->peer.table;
    rs->granted = (uint16_t)(rs->received + rs->rq_size / 2);
    rs->controls_free--;
    if (!bytes) {
        (void)rs_write(rs, NULL, 0, &to, &immediate, ID_CONTROL);
        return;
    }
    struct rs_window *own = &rs->table->own_halves[rs->peer_half];
    *own = (struct rs_window){(uintptr_t)(rs->receive_buffer + rs->give_offset), rs->mr->rkey, half};
    to.address += rs->peer_half * sizeof *own;
    (void)rs_write(rs, own, sizeof *own, &to, &immediate, ID_CONTROL);
    rs->give_bytes -= half;
    rs->give_offset = (rs->give_offset + half) % (half * RS_HALVES);
    rs->peer_half = (rs->peer_half + 1) % RS_HALVES;
}

// --- completions ----------------------------------------------------------------------------------------------------

// A peer that breaks the protocol: nothing more is read from or sent to it.
static void misled(struct rs *rs)
{
    rs->read_end = rs->write_end = true;
    rs->error = EPROTO;
}

// The peer has written that many bytes into the part of the receive buffer that was granted.
static void data_came(struct rs *rs, uint32_t bytes)
{
    unsigned whole = (unsigned)rs->receive_bytes / RS_HALVES * RS_HALVES;
    unsigned room = (unsigned)(rs->rq_size + RS_EXTRA_RECEIVES);
    if (bytes > whole - rs->unread_bytes - rs->give_bytes || rs->message_count == room) {
        misled(rs);
        return;
    }
    rs->messages[(rs->message_first + rs->message_count++) % room] = bytes;
    rs->unread_bytes += bytes;
    rs->received++;
}

static void came(struct rs *rs, uint32_t immediate)
{
    uint32_t value = immediate & VALUE_MASK;
    switch (immediate >> OP_SHIFT) {
    case OP_DATA:
        data_came(rs, value);
        break;
    case OP_GRANT:
        rs->may_send = (uint16_t)value;
        break;
    case OP_CONTROL:
        rs->read_end = true;
        rs->write_end = rs->write_end || value == RS_CONTROL_DISCONNECT;
        break;
    default: // a mapping: its data is in the table
        break;
    }
    (void)rs_receive_post(rs);
}

static void stream_completed(struct rs *rs, const struct ibv_wc *wc)
{
    if (wc->status != IBV_WC_SUCCESS) {
        rs->read_end = rs->write_end = true;
        rs->error = rs->error != 0 || wc->status == IBV_WC_WR_FLUSH_ERR ? rs->error : ECONNRESET;
    } else if (wc->opcode == IBV_WC_RECV_RDMA_WITH_IMM) {
        came(rs, be32toh(wc->imm_data));
    } else if (wc->wr_id == ID_CONTROL) {
        rs->controls_free++;
    } else {
        rs->requests_free++;
        rs->send_free += (unsigned)wc->wr_id;
    }
}

void rs_reap(struct rs *rs)
{
    struct ibv_wc wc[WC_BATCH];
    int count = rs->cq != NULL ? WC_BATCH : 0;
    while (count == WC_BATCH) {
        count = ibv_poll_cq(rs->cq, WC_BATCH, wc);
        for (int i = 0; i < count; i++) {
            (rs->datagrams != NULL ? rs_datagrams_completed : stream_completed)(rs, &wc[i]);
        }
    }
    if (rs->cq != NULL && rs->datagrams == NULL) {
        rs_grant(rs);
    }
}

// --- waiting --------------------------------------------------------------------------------------------------------

void rs_arm(struct rs *rs)
{
    if (rs->cq != NULL) {
        (void)ibv_req_notify_cq(rs->cq, 0);
    }
}

void rs_taken(struct rs *rs)
{
    struct ibv_cq *cq;
    void *context;
    if (rs->cq_channel != NULL && ibv_get_cq_event(rs->cq_channel, &cq, &context) == 0) {
        ibv_ack_cq_events(cq, 1);
    }
}

static int sleep_until_woken(struct rs *rs)
{
    struct pollfd ready[2] = {{.fd = rs->fd, .events = POLLIN},
                              {.fd = rs->cq_channel != NULL ? rs->cq_channel->fd : -1, .events = POLLIN}};
    rs_leave(rs);
    int found = poll(ready, 2, -1);
    int status = found < 0 ? -errno : 0;
    (void)pthread_mutex_lock(&rs->lock);
    if (found > 0 && ready[1].revents != 0) {
        rs_taken(rs);
    }
    if (found > 0 && ready[0].revents != 0) {
        rs_channel_ready(rs);
    }
    return status;
}

// Uses the system call's number: an additional check after a poll of the completion queue, which already took the time
// of an iteration of the caller's loop.
static void channel_poll(struct rs *rs)
{
    struct pollfd channel = {.fd = rs->fd, .events = POLLIN};
    if (rs->state != RS_CONNECTED || syscall(SYS_poll, &channel, 1, 0) == 1) {
        rs_channel_ready(rs);
    }
}

int rs_wait(struct rs *rs, rs_ready_fn ready, bool at_once)
{
    uint64_t until_ns = 0;
    if (rs->state == RS_CONNECTED) {
        until_ns = at_once ? 0 : cm_now_ns() + SPIN_US * 1000u;
        do {
            rs_reap(rs);
        } while (!ready(rs) && until_ns != 0 && cm_now_ns() < until_ns);
    }
    while (!ready(rs)) {
        if (at_once) {
            channel_poll(rs);
            return ready(rs) ? 0 : -EAGAIN;
        }
        rs_arm(rs);
        rs_reap(rs);
        int status = ready(rs) ? 0 : sleep_until_woken(rs);
        if (status != 0) {
            return status;
        }
        rs_reap(rs);
    }
    return 0;
}

// --- sending --------------------------------------------------------------------------------------------------------

bool rs_can_send(const struct rs *rs)
{
    if (rs->datagrams != NULL) {
        return rs_datagrams_can_send(rs);
    }
    const volatile struct rs_window *half = rs->table != NULL ? &rs->table->halves[rs->half] : NULL;
    return rs->state != RS_CONNECTING &&
           (rs->write_end || (half != NULL && rs->requests_free > 0 && rs->send_free >= PIECE_FIRST &&
                              rs->sent != rs->may_send && half->bytes > 0));
}

bool rs_all_sent(const struct rs *rs)
{
    bool idle = rs->requests_free == (unsigned)rs->sq_size;
    if (rs->datagrams != NULL) {
        return idle;
    }
    return rs->write_end || (idle && rs->controls_free == RS_CONTROLS && rs->state == RS_CONNECTED);
}

static unsigned smaller(size_t a, size_t b)
{
    return (unsigned)(a < b ? a : b);
}

static int piece_put(struct rs *rs, const void *data, size_t most, const struct rs_window *to, bool notifies)
{
    unsigned bytes = smaller(most, to->bytes);
    bool inlined = bytes <= (unsigned)rs->inline_bytes;
    bytes = inlined ? bytes : smaller(smaller(bytes, rs->send_free), (size_t)rs->send_bytes - rs->send_head);
    uint32_t immediate = immediate_of(OP_DATA, bytes);
    const void *from = data;
    if (!inlined) {
        rs_copy(rs->send_buffer + rs->send_head, data, bytes);
        from = rs->send_buffer + rs->send_head;
    }
    int status = rs_write(rs, from, bytes, to, notifies ? &immediate : NULL, inlined ? 0 : bytes);
    if (status != 0) {
        return status;
    }
    if (!inlined) {
        rs->send_free -= bytes;
        rs->send_head = (rs->send_head + bytes) % (unsigned)rs->send_bytes;
    }
    rs->requests_free--;
    return (int)bytes;
}

int rs_piece_write(struct rs *rs, const void *data, size_t most, const struct rs_window *to)
{
    return piece_put(rs, data, most, to, false);
}

// Sends as much as there is room for in one message. A negative errno.
static int piece_send(struct rs *rs, const uint8_t *data, size_t most)
{
    struct rs_window *half = &rs->table->halves[rs->half];
    int bytes = piece_put(rs, data, most, half, true);
    if (bytes > 0) {
        rs->sent++;
        half->address += (unsigned)bytes;
        half->bytes -= (unsigned)bytes;
        rs->half = half->bytes == 0 ? (rs->half + 1) % RS_HALVES : rs->half;
    }
    return bytes;
}

// Small pieces first, so that the copy of the next piece overlaps with the transfer.
static ssize_t stream_send(struct rs *rs, const uint8_t *data, size_t bytes, int flags)
{
    bool at_once = ((rs->flags & O_NONBLOCK) | (flags & MSG_DONTWAIT)) != 0;
    size_t done = 0, piece = PIECE_FIRST;
    int status = rs->state == RS_CONNECTED || rs->state == RS_CONNECTING ? 0
                 : rs->state == RS_FAILED                                ? -EPIPE
                                                                         : -ENOTCONN;
    while (status >= 0 && done < bytes) {
        status = rs_can_send(rs) ? 0 : rs_wait(rs, rs_can_send, at_once);
        if (status == 0 && rs->write_end) {
            status = rs->error != 0 ? -rs->error : -EPIPE;
        }
        status = status != 0 ? status : piece_send(rs, data + done, bytes - done < piece ? bytes - done : piece);
        done += status > 0 ? (size_t)status : 0;
        piece = piece < PIECE_MAX ? piece * 2 : piece;
    }
    return done > 0 ? (ssize_t)done : status;
}

ssize_t rsend(int fd, const void *data, size_t bytes, int flags)
{
    struct rs *rs = rs_enter(fd);
    if (rs == NULL) {
        return -1;
    }
    ssize_t sent =
        rs->datagrams != NULL ? rs_datagram_send(rs, data, bytes, flags, NULL) : stream_send(rs, data, bytes, flags);
    rs_leave(rs);
    return sent >= 0 ? sent : cm_errno((int)sent);
}

// --- receiving ------------------------------------------------------------------------------------------------------

bool rs_can_receive(const struct rs *rs)
{
    if (rs->datagrams != NULL) {
        return rs_datagrams_can_receive(rs);
    }
    return rs->state != RS_CONNECTING && (rs->message_count > 0 || rs->read_end);
}

// Copies available data, up to `most` bytes. peek: the data stays.
static size_t pieces_take(struct rs *rs, uint8_t *buffer, size_t most, bool peek)
{
    unsigned room = (unsigned)(rs->rq_size + RS_EXTRA_RECEIVES), offset = rs->take_offset;
    size_t done = 0;
    for (unsigned i = 0, count = rs->message_count; i < count && done < most; i++) {
        uint32_t *left = &rs->messages[rs->message_first];
        unsigned bytes = smaller(peek ? rs->messages[(rs->message_first + i) % room] : *left, most - done);
        rs_copy(buffer + done, rs->receive_buffer + offset, bytes);
        done += bytes;
        offset = (offset + bytes) % ((unsigned)rs->receive_bytes / RS_HALVES * RS_HALVES);
        if (peek) {
            continue;
        }
        *left -= bytes;
        if (*left == 0) {
            rs->message_first = (rs->message_first + 1) % room;
            rs->message_count--;
        }
    }
    if (!peek) {
        rs->take_offset = offset;
        rs->unread_bytes -= (unsigned)done;
        rs->give_bytes += (unsigned)done;
        rs_grant(rs);
    }
    return done;
}

static ssize_t stream_receive(struct rs *rs, uint8_t *buffer, size_t bytes, int flags)
{
    bool at_once = ((rs->flags & O_NONBLOCK) | (flags & MSG_DONTWAIT)) != 0, all = (flags & MSG_WAITALL) != 0;
    size_t done = 0;
    int status = rs->state >= RS_CONNECTING ? 0 : -ENOTCONN;
    while (status == 0 && done < bytes) {
        status = rs_can_receive(rs) && rs->message_count > 0 ? 0 : rs_wait(rs, rs_can_receive, at_once);
        if (status == 0 && (rs->message_count == 0 || rs->read_shut)) {
            status = rs->state == RS_FAILED || rs->error != 0 ? -rs->error : 0;
            break;
        }
        done += status == 0 ? pieces_take(rs, buffer + done, bytes - done, (flags & MSG_PEEK) != 0) : 0;
        if (!all || (flags & MSG_PEEK) != 0) {
            break;
        }
    }
    return done > 0 ? (ssize_t)done : status;
}

ssize_t rrecv(int fd, void *buffer, size_t bytes, int flags)
{
    struct rs *rs = rs_enter(fd);
    if (rs == NULL) {
        return -1;
    }
    ssize_t got = rs->datagrams != NULL ? rs_datagram_receive(rs, buffer, bytes, flags, NULL, NULL)
                                        : stream_receive(rs, buffer, bytes, flags);
    rs_leave(rs);
    return got >= 0 ? got : cm_errno((int)got);
}

// --- other forms of the calls ---------------------------------------------------------------------------------------

ssize_t rread(int fd, void *buffer, size_t bytes)
{
    return rrecv(fd, buffer, bytes, 0);
}

ssize_t rwrite(int fd, const void *data, size_t bytes)
{
    return rsend(fd, data, bytes, 0);
}

ssize_t rrecvfrom(int fd, void *buffer, size_t bytes, int flags, struct sockaddr *from, socklen_t *from_bytes)
{
    struct rs *rs = rs_enter(fd);
    if (rs == NULL) {
        return -1;
    }
    if (rs->datagrams != NULL) {
        ssize_t got = rs_datagram_receive(rs, buffer, bytes, flags, from, from_bytes);
        rs_leave(rs);
        return got >= 0 ? got : cm_errno((int)got);
    }
    rs_leave(rs);
    ssize_t got = rrecv(fd, buffer, bytes, flags);
    if (got > 0 && from != NULL) {
        (void)rgetpeername(fd, from, from_bytes);
    }
    return got;
}

ssize_t rsendto(int fd, const void *data, size_t bytes, int flags, const struct sockaddr *to, socklen_t to_bytes)
{
    struct sockaddr_storage copy = {0};
    struct rs *rs = to != NULL ? rs_enter(fd) : NULL;
    if (to == NULL) {
        return rsend(fd, data, bytes, flags);
    }
    if (rs == NULL) {
        return -1;
    }
    ssize_t sent = rs->datagrams == NULL ? -EISCONN : -EINVAL;
    if (rs->datagrams != NULL && to_bytes <= sizeof copy) {
        memcpy(&copy, to, to_bytes);
        sent = rs_datagram_send(rs, data, bytes, flags, (const struct sockaddr *)&copy);
    }
    rs_leave(rs);
    return sent >= 0 ? sent : cm_errno((int)sent);
}
