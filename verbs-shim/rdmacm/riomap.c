// rsockets: memory of one side into which the peer writes directly.
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

#include "verbs-shim/rdmacm/internal.h"
#include "verbs-shim/rdmacm/rsocket.h"

enum { INDEX_SHIFT = 40 }; // position of the index in an offset that the library chose

static bool control_is_free(const struct rs *rs)
{
    return rs->controls_free > 0 || rs->write_end;
}

static struct rs_mapping *mapping_take(struct rs *rs)
{
    for (int i = 0; i < RS_IOMAPS_MAX; i++) {
        if (rs->mappings[i].mr == NULL) {
            rs->mappings[i].index = i;
            return &rs->mappings[i];
        }
    }
    return NULL;
}

// Sends a mapping to the peer; bytes 0: the mapping was removed.
static int mapping_send(struct rs *rs, int index, uint64_t offset, const struct rs_window *window)
{
    struct rs_iomap *own = &rs->table->own_iomaps[index];
    struct rs_window to = rs->peer.table;
    uint32_t immediate = rs_iomap_immediate();
    int status = rs_wait(rs, control_is_free, false);
    if (status != 0 || rs->write_end) {
        return status != 0 ? status : -EPIPE;
    }
    *own = (struct rs_iomap){offset, *window};
    to.address += offsetof(struct rs_table, iomaps) + (size_t)index * sizeof *own;
    rs->controls_free--;
    return rs_write(rs, own, sizeof *own, &to, &immediate, UINT64_MAX);
}

static off_t map(struct rs *rs, void *memory, size_t bytes, int rights, off_t offset)
{
    int waited = rs->state == RS_CONNECTING ? rs_wait(rs, rs_is_decided, false) : 0;
    struct rs_mapping *mapping = mapping_take(rs);
    bool remote = (rights & PROT_WRITE) != 0;
    if (waited != 0 || rs->state != RS_CONNECTED) {
        return -ENOTCONN;
    }
    if (mapping == NULL || bytes > UINT32_MAX || (remote && (uint32_t)mapping->index >= rs->peer.iomaps)) {
        return mapping == NULL || remote ? -ENOMEM : -EINVAL;
    }
    mapping->mr =
        ibv_reg_mr(rs->id->pd, memory, bytes, IBV_ACCESS_LOCAL_WRITE | (remote ? IBV_ACCESS_REMOTE_WRITE : 0));
    if (mapping->mr == NULL) {
        return -errno;
    }
    mapping->memory = memory;
    mapping->bytes = bytes;
    if (!remote) {
        mapping->index = -1;
        return 0;
    }
    offset = offset == -1 ? (off_t)mapping->index << INDEX_SHIFT : offset;
    const struct rs_window window = {(uintptr_t)memory, mapping->mr->rkey, (uint32_t)bytes};
    int status = mapping_send(rs, mapping->index, (uint64_t)offset, &window);
    return status == 0 ? offset : status;
}

off_t riomap(int fd, void *memory, size_t bytes, int rights, int flags, off_t offset)
{
    struct rs *rs = rs_enter(fd);
    if (rs == NULL) {
        return -1;
    }
    bool valid = flags == 0 && (rights & ~(PROT_WRITE | PROT_NONE)) == 0 && offset >= -1;
    off_t mapped = valid ? map(rs, memory, bytes, rights, offset) : -EINVAL;
    rs_leave(rs);
    return mapped >= 0 ? mapped : cm_errno((int)mapped);
}

int riounmap(int fd, void *memory, size_t bytes)
{
    struct rs *rs = rs_enter(fd);
    int status = -EINVAL;
    if (rs == NULL) {
        return -1;
    }
    for (int i = 0; i < RS_IOMAPS_MAX && status == -EINVAL; i++) {
        struct rs_mapping *mapping = &rs->mappings[i];
        if (mapping->mr != NULL && mapping->memory == memory && mapping->bytes == bytes) {
            const struct rs_window none = {0};
            if (mapping->index >= 0 && !rs->write_end) {
                (void)mapping_send(rs, mapping->index, 0, &none);
            }
            status = -ibv_dereg_mr(mapping->mr);
            mapping->mr = NULL;
        }
    }
    rs_leave(rs);
    return cm_errno(status);
}

// --- writing --------------------------------------------------------------------------------------------------------

// The peer's memory at the offset; bytes: what is left from there. false: nothing is mapped.
static bool target_find(const struct rs *rs, uint64_t offset, struct rs_window *to)
{
    for (int i = 0; i < rs->iomap_size; i++) {
        const struct rs_iomap *iomap = &rs->table->iomaps[i];
        if (offset >= iomap->offset && offset - iomap->offset < iomap->window.bytes) {
            uint32_t skip = (uint32_t)(offset - iomap->offset);
            *to = (struct rs_window){iomap->window.address + skip, iomap->window.key, iomap->window.bytes - skip};
            return true;
        }
    }
    return false;
}

static bool has_room(const struct rs *rs)
{
    return rs->write_end || (rs->requests_free > 0 && rs->send_free > 0);
}

static ssize_t stream_write(struct rs *rs, const uint8_t *data, size_t bytes, uint64_t offset, bool at_once)
{
    size_t done = 0;
    int status = rs->state == RS_CONNECTED ? 0 : -ENOTCONN;
    while (status >= 0 && done < bytes) {
        struct rs_window to;
        status = has_room(rs) ? 0 : rs_wait(rs, has_room, at_once);
        if (status == 0) {
            status = rs->write_end ? -EPIPE : target_find(rs, offset + done, &to) ? 0 : -EFAULT;
        }
        status = status == 0 ? rs_piece_write(rs, data + done, bytes - done, &to) : status;
        done += status > 0 ? (size_t)status : 0;
    }
    return done > 0 ? (ssize_t)done : status;
}

size_t riowrite(int fd, const void *data, size_t bytes, off_t offset, int flags)
{
    struct rs *rs = rs_enter(fd);
    if (rs == NULL) {
        return (size_t)-1;
    }
    ssize_t written =
        stream_write(rs, data, bytes, (uint64_t)offset, ((rs->flags & O_NONBLOCK) | (flags & MSG_DONTWAIT)) != 0);
    rs_leave(rs);
    return (size_t)(written >= 0 ? written : cm_errno((int)written));
}
