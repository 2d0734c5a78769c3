// How programs find and open devices.
#include <endian.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "verbs-shim/ibverbs/note.h"

// --- the list of devices --------------------------------------------------------------------------------------------

// The devices are queried when a program lists them for the first time.
static int devices_know(struct ibverbs_library *library)
{
    int status = 0;
    for (unsigned i = 0; i < library->device_count && status == 0; i++) {
        struct ibverbs_device *device = &library->devices[i];
        status = device->known ? 0 : device->ops->query_device(device->object, &device->info);
        device->known = status == 0;
    }
    return status;
}

static int devices_ask(struct ibverbs_library *library)
{
    IBVERBS_ENTER(library);
    return devices_know(library);
}

struct ibv_device **ibv_get_device_list(int *num_devices)
{
    struct ibverbs_library *library = ibverbs_current();
    unsigned count = library != NULL ? library->device_count : 0;
    int status = backend_current() == NULL ? -ENOSYS : count > 0 ? devices_ask(library) : 0;
    struct ibv_device **list = status == 0 ? calloc(count + 1, sizeof(struct ibv_device *)) : NULL;
    if (num_devices != NULL) {
        *num_devices = list != NULL ? (int)count : 0;
    }
    if (list == NULL) {
        return ibverbs_fail(status != 0 ? status : -ENOMEM);
    }
    for (unsigned i = 0; i < count; i++) {
        list[i] = &library->devices[i].base;
    }
    return list;
}

// Devices exist until their process ends.
void ibv_free_device_list(struct ibv_device **list)
{
    free(list);
}

const char *ibv_get_device_name(struct ibv_device *device)
{
    return device->name;
}

int ibv_get_device_index(struct ibv_device *device)
{
    return (int)((struct ibverbs_device *)device)->index;
}

__be64 ibv_get_device_guid(struct ibv_device *device)
{
    return ((struct ibverbs_device *)device)->info.attr.node_guid;
}

// A region is the program's memory at its address, not a set of held pages: a copy in a child process changes nothing.
int ibv_fork_init(void)
{
    return 0;
}

enum ibv_fork_status ibv_is_fork_initialized(void)
{
    return IBV_FORK_UNNEEDED;
}

// --- open and close -------------------------------------------------------------------------------------------------

static struct ibverbs_context *context_make(struct ibverbs_device *device, int async_fd)
{
    struct ibverbs_context *context = calloc(1, sizeof *context);
    if (context == NULL) {
        return NULL;
    }
    context->device = device;
    ibverbs_verbs_fill(&context->verbs);
    struct ibv_context *base = &context->verbs.context;
    base->device = &device->base;
    base->cmd_fd = fcntl(async_fd, F_DUPFD_CLOEXEC, 0); // not read by anything; programs pass it on
    base->async_fd = async_fd;
    base->num_comp_vectors = device->info.completion_vectors;
    base->abi_compat = __VERBS_ABI_IS_EXTENDED;
    (void)pthread_mutex_init(&base->mutex, NULL);
    ibverbs_queue_init(&context->events, device->library, async_fd);
    return context;
}

struct ibv_context *ibv_open_device(struct ibv_device *ibv_device)
{
    IBVERBS_ENTER(((struct ibverbs_device *)ibv_device)->library);
    struct ibverbs_device *device = (struct ibverbs_device *)ibv_device;
    uint64_t began_ps = ibverbs_note_begin(device->library);
    int async_fd = ibverbs_event_fd();
    if (async_fd < 0) {
        return ibverbs_fail(async_fd);
    }
    struct ibverbs_context *context = context_make(device, async_fd);
    int status =
        context != NULL ? device->ops->open(device->object, device->library->process, &context->object) : -ENOMEM;
    if (status != 0) {
        if (context != NULL) {
            (void)close(context->verbs.context.cmd_fd);
        }
        free(context);
        (void)close(async_fd);
        struct journal_record record = {.device = {.lid = 0}};
        (void)snprintf(record.device.device, sizeof record.device.device, "%.15s", device->base.name);
        ibverbs_note_library(device->library, began_ps, JOURNAL_OPEN_DEVICE, -status, &record);
        return ibverbs_fail(status);
    }
    context->number = device->library->contexts_opened++;
    context->next = device->library->contexts;
    device->library->contexts = context;
    device->library->live[IBVERBS_CONTEXT]++;
    if (device->library->outside != NULL) {
        device->library->outside->opened();
        if (device->library->outside->poll_cq != NULL) {
            context->verbs.context.ops.poll_cq = device->library->outside->poll_cq;
        }
    }
    ibverbs_note_context(context, began_ps, 0);
    return &context->verbs.context;
}

// Objects that the program leaves are destroyed with the context, as a kernel does when the last descriptor is closed;
// objects that use others come first.
static void objects_destroy(struct ibverbs_context *context)
{
    static const struct {
        enum ibverbs_kind kind;
        int (*end)(struct ibverbs_object *object);
    } order[] = {
        {IBVERBS_QP, ibverbs_qp_end}, {IBVERBS_AH, ibverbs_ah_end},           {IBVERBS_SRQ, ibverbs_srq_end},
        {IBVERBS_CQ, ibverbs_cq_end}, {IBVERBS_CHANNEL, ibverbs_channel_end}, {IBVERBS_MR, ibverbs_mr_end},
        {IBVERBS_PD, ibverbs_pd_end}, {IBVERBS_XRCD, ibverbs_xrcd_end},
    };
    for (unsigned i = 0; i < sizeof order / sizeof order[0]; i++) {
        struct ibverbs_object **list = &context->objects[order[i].kind];
        while (*list != NULL && order[i].end(*list) == 0) {
        }
    }
}

void ibverbs_context_destroy(struct ibverbs_context *context)
{
    struct ibverbs_library *library = context->device->library;
    objects_destroy(context);
    (void)context->device->ops->close(context->object);
    struct ibverbs_context **link = &library->contexts;
    while (*link != context) {
        link = &(*link)->next;
    }
    *link = context->next;
    library->live[IBVERBS_CONTEXT]--;
    ibverbs_queue_purge(&context->events, NULL);
    (void)close(context->verbs.context.async_fd);
    (void)close(context->verbs.context.cmd_fd);
    (void)pthread_mutex_destroy(&context->verbs.context.mutex);
    free(context);
}

// A region to which devices may still write keeps its context.
int ibv_close_device(struct ibv_context *base)
{
    struct ibverbs_context *context = ibverbs_context_of(base);
    IBVERBS_ENTER(context->device->library);
    uint64_t began_ps = ibverbs_note_begin(context->device->library);
    objects_destroy(context);
    int error = context->objects[IBVERBS_MR] != NULL ? EBUSY : 0;
    ibverbs_note_object(context, began_ps, JOURNAL_CLOSE_DEVICE, error, 0, 0);
    if (error == 0) {
        ibverbs_context_destroy(context);
    }
    return error;
}
