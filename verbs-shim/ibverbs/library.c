// The library's state of a process: its devices, contexts and objects.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "verbs-shim/ibverbs/note.h"

// The environment calls it when the process has ended, at whatever point.
static void library_release(void *state)
{
    struct ibverbs_library *library = state;
    library->abandoned = true;
    while (library->contexts != NULL) {
        struct ibverbs_context *context = library->contexts;
        context->device->ops->abandon(context->object);
        ibverbs_context_destroy(context);
    }
    free(library->unborn);
    free(library);
}

static struct ibverbs_library *library_make(struct backend_process *process)
{
    struct backend_library *slot = &process->libraries[BACKEND_LIBRARY_IBVERBS];
    if (slot->state == NULL) {
        struct ibverbs_library *library = calloc(1, sizeof *library);
        if (library != NULL) {
            library->process = process;
            library->journal = process->backend.ops->journal;
            if (library->journal != NULL) {
                library->slot_ps = library->journal->slot_ps(process->backend.ctx);
                library->journal->describe_by(process->backend.ctx, ibverbs_describe, library);
            }
            library->checks = library->journal != NULL && library->journal->checks(process->backend.ctx);
            library->journal_all = library->journal != NULL && library->journal->all(process->backend.ctx);
            slot->state = library;
            slot->release = library_release;
        }
    }
    return slot->state;
}

struct ibverbs_library *ibverbs_current(void)
{
    struct backend_process *process = backend_current();
    if (process != NULL && ibverbs_process_begin != NULL) {
        ibverbs_process_begin(process);
    }
    return process != NULL ? process->libraries[BACKEND_LIBRARY_IBVERBS].state : NULL;
}

int ibverbs_device_add(struct backend_process *process, const char *name, const struct ibverbs_device_ops *ops,
                       void *device)
{
    struct ibverbs_library *library = library_make(process);
    if (library == NULL) {
        return -ENOMEM;
    }
    if (library->device_count == IBVERBS_DEVICES_MAX) {
        return -ENOSPC;
    }
    unsigned index = library->device_count;
    struct ibverbs_device *added = &library->devices[index];
    *added = (struct ibverbs_device){.library = library, .ops = ops, .object = device, .index = index};
    struct ibv_device *base = &added->base;
    base->node_type = IBV_NODE_CA;
    base->transport_type = IBV_TRANSPORT_IB;
    (void)snprintf(base->name, sizeof base->name, "%s", name);
    (void)snprintf(base->dev_name, sizeof base->dev_name, "uverbs%u", index);
    (void)snprintf(base->dev_path, sizeof base->dev_path, "/sys/class/infiniband_verbs/uverbs%u", index);
    (void)snprintf(base->ibdev_path, sizeof base->ibdev_path, "/sys/class/infiniband/%s", name);
    library->device_count++;
    return 0;
}

void ibverbs_outside_set(struct backend_process *process, const struct ibverbs_outside *outside)
{
    struct ibverbs_library *library = process->libraries[BACKEND_LIBRARY_IBVERBS].state;
    if (library != NULL) {
        library->outside = outside;
    }
}

unsigned ibverbs_live(const struct backend_process *process, enum ibverbs_kind kind)
{
    const struct ibverbs_library *library = process->libraries[BACKEND_LIBRARY_IBVERBS].state;
    return library != NULL ? library->live[kind] : 0;
}

// --- objects --------------------------------------------------------------------------------------------------------

void *ibverbs_fail(int status)
{
    errno = -status;
    return NULL;
}

void *ibverbs_object_new(struct ibverbs_context *context, size_t bytes)
{
    context->device->library->unborn = calloc(1, bytes);
    return context->device->library->unborn;
}

void ibverbs_object_drop(struct ibverbs_context *context, void *container)
{
    context->device->library->unborn = NULL;
    free(container);
}

void ibverbs_object_add(struct ibverbs_object *object, struct ibverbs_context *context, enum ibverbs_kind kind,
                        void *container)
{
    struct ibverbs_object **list = &context->objects[kind];
    object->context = context;
    object->kind = kind;
    object->container = container;
    object->next = *list;
    object->link = list;
    if (object->next != NULL) {
        object->next->link = &object->next;
    }
    *list = object;
    context->device->library->live[kind]++;
    context->device->library->unborn = NULL;
}

void ibverbs_object_remove(struct ibverbs_object *object)
{
    *object->link = object->next;
    if (object->next != NULL) {
        object->next->link = object->link;
    }
    object->context->device->library->live[object->kind]--;
}
