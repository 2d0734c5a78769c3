// The state of the process: its lock, its devices, its identifiers.
#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "verbs-shim/attach/attach.h"
#include "verbs-shim/attach/kernel_call.h"
#include "verbs-shim/rdmacm/internal.h"

enum { DEVICES_MAX = 4, NUMBERS_RESERVED = 2 };

static struct {
    pthread_mutex_t mutex;
    pthread_cond_t acknowledged;
    struct cm_device devices[DEVICES_MAX];
    struct cm_id *ids;
    uint64_t numbers; // number of numbers given
} library = {.mutex = PTHREAD_MUTEX_INITIALIZER, .acknowledged = PTHREAD_COND_INITIALIZER, .numbers = NUMBERS_RESERVED};

// --- lock and time --------------------------------------------------------------------------------------------------

void cm_enter(void)
{
    (void)pthread_mutex_lock(&library.mutex);
}

void cm_leave(int *unused)
{
    (void)unused;
    int error = errno;
    (void)pthread_mutex_unlock(&library.mutex);
    errno = error;
}

void cm_wait_acknowledged(const struct cm_id *id)
{
    while (id->events_acknowledged != id->events_taken) {
        (void)pthread_cond_wait(&library.acknowledged, &library.mutex);
    }
}

void cm_acknowledged(void)
{
    (void)pthread_cond_broadcast(&library.acknowledged);
}

int cm_errno(int status)
{
    if (status == 0) {
        return 0;
    }
    errno = -status;
    return -1;
}

uint64_t cm_now_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void cm_event_pay(void)
{
    attach_spend_ps(attach_environment()->interrupt_ps);
}

// The child of a fork must not use its parent's devices, connections and ports: it closes the descriptors that would
// keep them open after the parent has ended. It does not use close(2), as the process is not attached yet.
static void forked(void)
{
    library.mutex = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    library.acknowledged = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
    memset(library.devices, 0, sizeof library.devices);
    for (const struct cm_id *id = library.ids; id != NULL; id = id->next) {
        const int mine[] = {id->socket, id->claim};
        for (size_t i = 0; i < sizeof mine / sizeof mine[0]; i++) {
            if (mine[i] >= 0) {
                (void)kernel_call(SYS_close, mine[i], 0, 0, 0, 0, 0);
            }
        }
    }
    library.ids = NULL;
}

__attribute__((constructor)) static void start(void)
{
    (void)pthread_atfork(NULL, NULL, forked);
}

// --- devices --------------------------------------------------------------------------------------------------------

static bool device_ask(struct cm_device *device)
{
    return ibv_query_device(device->verbs, &device->attr) == 0 &&
           ibv_query_port(device->verbs, CM_PORT, &device->port) == 0 &&
           ibv_query_gid(device->verbs, CM_PORT, 0, &device->gid) == 0;
}

static struct cm_device *device_open(struct ibv_device *which)
{
    struct cm_device *free_one = NULL;
    for (unsigned i = 0; i < DEVICES_MAX; i++) {
        struct cm_device *device = &library.devices[i];
        if (device->verbs != NULL && device->verbs->device == which) {
            return device;
        }
        free_one = free_one == NULL && device->verbs == NULL ? device : free_one;
    }
    if (free_one == NULL) {
        errno = ENOSPC;
        return NULL;
    }
    free_one->verbs = ibv_open_device(which);
    if (free_one->verbs != NULL && !device_ask(free_one)) {
        (void)ibv_close_device(free_one->verbs);
        free_one->verbs = NULL;
        errno = ENODEV;
    }
    return free_one->verbs != NULL ? free_one : NULL;
}

// The node's address belongs to ibsim0 if the node has it, as with an IPoIB interface; TCASIM_RDMA_CM_DEVICE names
// another device.
static struct ibv_device *device_find(struct ibv_device **list, const char *name)
{
    const char *wanted = name != NULL ? name : getenv("TCASIM_RDMA_CM_DEVICE");
    const char *preferred = wanted != NULL ? wanted : "ibsim0";
    for (struct ibv_device **device = list; *device != NULL; device++) {
        if (strcmp(ibv_get_device_name(*device), preferred) == 0) {
            return *device;
        }
    }
    return wanted == NULL ? list[0] : NULL;
}

struct cm_device *cm_device_open(const char *name)
{
    struct ibv_device **list = attach_environment() != NULL ? ibv_get_device_list(NULL) : NULL;
    struct ibv_device *found = list != NULL ? device_find(list, name) : NULL;
    struct cm_device *device = found != NULL ? device_open(found) : NULL;
    if (found == NULL) {
        errno = ENODEV;
    }
    if (list != NULL) {
        ibv_free_device_list(list);
    }
    return device;
}

struct ibv_context **rdma_get_devices(int *count_out)
{
    CM_ENTER();
    struct ibv_device **list = attach_environment() != NULL ? ibv_get_device_list(NULL) : NULL;
    struct ibv_context **contexts = calloc(DEVICES_MAX + 1, sizeof(struct ibv_context *));
    int count = 0;
    for (unsigned i = 0; list != NULL && contexts != NULL && list[i] != NULL && count < DEVICES_MAX; i++) {
        const struct cm_device *device = device_open(list[i]);
        if (device != NULL) {
            contexts[count++] = device->verbs;
        }
    }
    if (list != NULL) {
        ibv_free_device_list(list);
    }
    if (count_out != NULL) {
        *count_out = count;
    }
    if (count == 0) {
        free(contexts);
        errno = ENODEV;
        return NULL;
    }
    return contexts;
}

void rdma_free_devices(struct ibv_context **list)
{
    free(list);
}

// --- identifiers ----------------------------------------------------------------------------------------------------

struct cm_id *cm_ids(void)
{
    return library.ids;
}

struct cm_id *cm_id_find(uint64_t number)
{
    struct cm_id *id = library.ids;
    while (id != NULL && id->number != number) {
        id = id->next;
    }
    return id;
}

struct cm_id *cm_id_new(struct cm_channel *channel, void *context, enum rdma_port_space ps, enum ibv_qp_type type)
{
    struct cm_id *id = calloc(1, sizeof *id);
    if (id == NULL) {
        return NULL;
    }
    id->base.channel = &channel->base;
    id->base.context = context;
    id->base.ps = ps;
    id->base.qp_type = type;
    id->number = library.numbers++;
    // A kernel uses a random number; here runs must be reproducible.
    id->psn = (uint32_t)(id->number * 7919u) & 0xffffffu;
    id->socket = -1;
    id->claim = -1;
    id->next = library.ids;
    library.ids = id;
    return id;
}

void cm_id_free(struct cm_id *id)
{
    struct cm_id **link = &library.ids;
    while (*link != NULL && *link != id) {
        link = &(*link)->next;
    }
    if (*link == id) {
        *link = id->next;
    }
    cm_groups_leave(id);
    cm_port_give(id);
    if (id->sync) {
        cm_channel_free(cm_channel_of(id));
    }
    free(id->qp_init);
    free(id);
}
