#include "doubles.h"

#include <rdma/rsocket.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/shim/test.h"
#include "verbs-shim/attach/attach.h"
#include "verbs-shim/rdmacm/rsocket.h"

struct doubles doubles;
static char folder[64];

void doubles_begin(void)
{
    char path[128];
    doubles = (struct doubles){0};
    snprintf(folder, sizeof folder, "/tmp/tcasim-rdmacm-XXXXXX");
    EXPECT_NOT_NULL(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/.rdma_cm", folder);
    EXPECT_EQ(mkdir(path, 0700), 0);
    snprintf(path, sizeof path, "%s/attach", folder);
    setenv("TCASIM_ATTACH", path, 1);
}

void doubles_end(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -r %s", folder);
    EXPECT_EQ(system(command), 0);
    unsetenv("TCASIM_ATTACH");
}

struct cm_id doubles_id(enum rdma_port_space ps)
{
    struct cm_id id = {.socket = -1, .claim = -1};
    id.base.ps = ps;
    id.base.qp_type = ps == RDMA_PS_UDP ? IBV_QPT_UD : IBV_QPT_RC;
    return id;
}

// --- the simulator --------------------------------------------------------------------------------------------------

const struct attach_environment *attach_environment(void)
{
    static const struct attach_environment environment = {.node_index = DOUBLE_OWN_NODE,
                                                          .node_count = DOUBLE_NODES,
                                                          .address_base = DOUBLE_ADDRESS_BASE,
                                                          .interrupt_ps = DOUBLE_INTERRUPT_PS};
    return &environment;
}

enum attach_mode attach_mode(void)
{
    return ATTACH_TIMED;
}

// --- the connection manager -----------------------------------------------------------------------------------------

int cm_errno(int status)
{
    errno = status < 0 ? -status : errno;
    return status < 0 ? -1 : 0;
}

void cm_enter(void)
{
}

void cm_leave(int *unused)
{
    (void)unused;
}

int cm_complete(struct cm_id *id)
{
    (void)id;
    return 0;
}

struct cm_device *cm_device_open(const char *name)
{
    static struct ibv_context verbs;
    static struct cm_device device = {.verbs = &verbs, .port = {.lid = DOUBLE_OWN_NODE + 1}};
    (void)name;
    return &device;
}

bool cm_is_group(const struct sockaddr *address)
{
    (void)address;
    return false;
}

struct cm_channel *cm_channel_new(void)
{
    return NULL;
}

struct cm_id *cm_id_new(struct cm_channel *channel, void *context, enum rdma_port_space ps, enum ibv_qp_type type)
{
    (void)channel;
    (void)context;
    (void)ps;
    (void)type;
    return NULL;
}

void cm_id_free(struct cm_id *id)
{
    cm_port_give(id);
}

int cm_qp_connect(struct cm_id *id, uint8_t responder_resources, uint8_t initiator_depth)
{
    (void)id;
    (void)responder_resources;
    (void)initiator_depth;
    return 0;
}

int cm_qp_error(struct cm_id *id)
{
    (void)id;
    return 0;
}

unsigned cm_private_room(enum rdma_port_space ps, enum cm_kind kind)
{
    (void)ps;
    (void)kind;
    return 0;
}

int cm_channel_watch(struct cm_id *id)
{
    (void)id;
    doubles.watched++;
    return 0;
}

void cm_channel_unwatch(struct cm_id *id)
{
    (void)id;
}

void cm_deadline_set(struct cm_id *id, uint64_t delay_ns)
{
    (void)id;
    doubles.deadline_ns = delay_ns;
}

struct cm_event *cm_event_put(struct cm_id *id, enum rdma_cm_event_type type, int status)
{
    (void)id;
    doubles.events++;
    doubles.event = type;
    doubles.event_status = status;
    return NULL;
}

const char *ibv_get_device_name(struct ibv_device *device)
{
    (void)device;
    return "ibsim0";
}

// --- rsockets -------------------------------------------------------------------------------------------------------

struct rs *rs_find(int fd)
{
    static struct rs rs;
    EXPECT_EQ(fd, DOUBLE_SOCKET);
    rs.datagrams = doubles.datagrams ? (struct rs_datagrams *)&rs : NULL;
    return &rs;
}

static struct double_move *move_begin(size_t bytes, int flags)
{
    struct double_move *move = &doubles.moves[doubles.move_count++ % DOUBLE_MOVES];
    move->bytes = bytes;
    move->flags = flags;
    return move;
}

static ssize_t move_end(const struct double_move *move)
{
    errno = move->result < 0 ? (int)-move->result : 0;
    return move->result < 0 ? -1 : move->result;
}

ssize_t rsend(int fd, const void *data, size_t bytes, int flags)
{
    struct double_move *move = move_begin(bytes, flags);
    EXPECT_EQ(fd, DOUBLE_SOCKET);
    for (ssize_t i = 0; i < move->result; i++) {
        doubles.wire[doubles.wire_bytes++] = ((const uint8_t *)data)[i];
    }
    return move_end(move);
}

ssize_t rrecv(int fd, void *data, size_t bytes, int flags)
{
    struct double_move *move = move_begin(bytes, flags);
    EXPECT_EQ(fd, DOUBLE_SOCKET);
    for (ssize_t i = 0; i < move->result; i++) {
        ((uint8_t *)data)[i] = doubles.wire[doubles.taken++];
    }
    return move_end(move);
}

ssize_t rsendto(int fd, const void *data, size_t bytes, int flags, const struct sockaddr *to, socklen_t to_bytes)
{
    (void)to;
    (void)to_bytes;
    doubles.moves[doubles.move_count % DOUBLE_MOVES].result = (ssize_t)bytes;
    return rsend(fd, data, bytes, flags);
}

ssize_t rrecvfrom(int fd, void *data, size_t bytes, int flags, struct sockaddr *from, socklen_t *from_bytes)
{
    (void)from;
    (void)from_bytes;
    return rrecv(fd, data, bytes, flags);
}
