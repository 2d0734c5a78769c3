// XRC domains (annex A14): they hold the shared receive queues that requests to a target may name.
//
// A domain opened with a file is the same for all that open it with that file, and exists until the last one closes it;
// the inode identifies the file. Not modelled: domains shared by several processes, so a file is valid only inside its
// process.
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "verbs-shim/ibverbs/internal.h"

static struct ibverbs_xrcd *shared_find(const struct ibverbs_context *context, const struct stat *file)
{
    for (struct ibverbs_object *at = context->objects[IBVERBS_XRCD]; at != NULL; at = at->next) {
        struct ibverbs_xrcd *xrcd = at->container;
        if (xrcd->shared && xrcd->file_device == file->st_dev && xrcd->file_inode == file->st_ino) {
            return xrcd;
        }
    }
    return NULL;
}

static int xrcd_create(struct ibverbs_context *context, const struct stat *file, struct ibverbs_xrcd **xrcd_out)
{
    struct ibverbs_xrcd *xrcd = ibverbs_object_new(context, sizeof *xrcd);
    int status = xrcd != NULL ? context->device->ops->xrcd_create(context->object, &xrcd->object.device) : -ENOMEM;
    if (status != 0) {
        ibverbs_object_drop(context, xrcd);
        return status;
    }
    xrcd->base.context = &context->verbs.context;
    xrcd->shared = file != NULL;
    xrcd->file_device = file != NULL ? file->st_dev : 0;
    xrcd->file_inode = file != NULL ? file->st_ino : 0;
    ibverbs_object_add(&xrcd->object, context, IBVERBS_XRCD, xrcd);
    *xrcd_out = xrcd;
    return 0;
}

struct ibv_xrcd *ibverbs_open_xrcd(struct ibv_context *ibv_context, struct ibv_xrcd_init_attr *init)
{
    IBVERBS_ENTER_CONTEXT(ibv_context);
    struct ibverbs_context *context = ibverbs_context_of(ibv_context);
    const uint32_t needed = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
    struct ibverbs_xrcd *xrcd = NULL;
    struct stat file;
    if ((context->device->info.qp_types & 1u << IBV_QPT_XRC_RECV) == 0) {
        return ibverbs_fail(-EOPNOTSUPP);
    }
    bool has_file = init->fd != -1;
    if (init->comp_mask != needed || (init->oflags & ~(O_CREAT | O_EXCL)) != 0 ||
        (has_file && fstat(init->fd, &file) != 0)) {
        return ibverbs_fail(-EINVAL);
    }
    xrcd = has_file ? shared_find(context, &file) : NULL;
    if (xrcd != NULL && (init->oflags & O_EXCL) != 0) {
        return ibverbs_fail(-EINVAL);
    }
    if (xrcd == NULL && has_file && (init->oflags & O_CREAT) == 0) {
        return ibverbs_fail(-EAGAIN); // as Linux: there is no domain yet
    }
    int status = xrcd == NULL ? xrcd_create(context, has_file ? &file : NULL, &xrcd) : 0;
    if (status != 0) {
        return ibverbs_fail(status);
    }
    xrcd->opens++;
    return &xrcd->base;
}

int ibverbs_xrcd_end(struct ibverbs_object *object)
{
    int status = ibverbs_ops(object)->xrcd_destroy(object->device);
    if (status == 0) {
        ibverbs_object_remove(object);
        free(object->container);
    }
    return status;
}

int ibverbs_close_xrcd(struct ibv_xrcd *ibv_xrcd)
{
    IBVERBS_ENTER_CONTEXT(ibv_xrcd->context);
    struct ibverbs_xrcd *xrcd = ibverbs_xrcd_of(ibv_xrcd);
    if (xrcd->opens == 1) {
        return ibverbs_status(xrcd->object.users > 0 ? EBUSY : -ibverbs_xrcd_end(&xrcd->object));
    }
    xrcd->opens--;
    return 0;
}
