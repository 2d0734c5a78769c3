// Attributes of a device and its ports (IBA 11.2.1.2).
#include <endian.h>
#include <stddef.h>
#include <string.h>

#include "verbs-shim/ibverbs/internal.h"

// --- device ---------------------------------------------------------------------------------------------------------

int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
    *attr = ibverbs_context_of(context)->device->info.attr;
    return 0;
}

static size_t min_size(size_t a, size_t b)
{
    return a < b ? a : b;
}

// bytes: size of the caller's struct, which may be older or newer than ours.
int ibverbs_query_device_ex(struct ibv_context *context, const struct ibv_query_device_ex_input *input,
                            struct ibv_device_attr_ex *attr, size_t bytes)
{
    const struct ibv_device_attr *orig = &ibverbs_context_of(context)->device->info.attr;
    const struct ibv_device_attr_ex whole = {
        .orig_attr = *orig, .device_cap_flags_ex = orig->device_cap_flags, .phys_port_cnt_ex = orig->phys_port_cnt};
    if (input != NULL && input->comp_mask != 0) {
        return ibverbs_status(EINVAL);
    }
    memset(attr, 0, bytes);
    memcpy(attr, &whole, min_size(bytes, sizeof whole));
    return 0;
}

// --- port -----------------------------------------------------------------------------------------------------------

static int port_get(struct ibv_context *ibv_context, unsigned port, struct ibv_port_attr *attr_out)
{
    struct ibverbs_context *context = ibverbs_context_of(ibv_context);
    if (!ibverbs_port_valid(context, port)) {
        return EINVAL;
    }
    *attr_out = (struct ibv_port_attr){0};
    return -context->device->ops->query_port(context->device->object, port, attr_out);
}

int ibverbs_query_port(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr, size_t bytes)
{
    IBVERBS_ENTER_CONTEXT(context);
    struct ibv_port_attr whole;
    int error = port_get(context, port, &whole);
    if (error == 0) {
        memset(attr, 0, bytes);
        memcpy(attr, &whole, min_size(bytes, sizeof whole));
    }
    return ibverbs_status(error);
}

// For programs built before the struct grew: it ended where port_cap_flags2 is now.
#undef ibv_query_port
int ibv_query_port(struct ibv_context *context, uint8_t port_num, struct _compat_ibv_port_attr *attr)
{
    return ibverbs_query_port(context, port_num, (struct ibv_port_attr *)(void *)attr,
                              offsetof(struct ibv_port_attr, port_cap_flags2));
}

// --- tables of a port -----------------------------------------------------------------------------------------------

static int gid_get(struct ibv_context *context, unsigned port, unsigned index, union ibv_gid *gid_out)
{
    const struct ibverbs_device *device = ibverbs_context_of(context)->device;
    struct ibv_port_attr attr;
    int error = port_get(context, port, &attr);
    if (error != 0) {
        return error;
    }
    return index < (unsigned)attr.gid_tbl_len ? -device->ops->query_gid(device->object, port, index, gid_out) : EINVAL;
}

int ibv_query_gid(struct ibv_context *context, uint8_t port_num, int index, union ibv_gid *gid)
{
    IBVERBS_ENTER_CONTEXT(context);
    errno = index >= 0 ? gid_get(context, port_num, (unsigned)index, gid) : EINVAL;
    return errno == 0 ? 0 : -1;
}

int _ibv_query_gid_ex(struct ibv_context *context, uint32_t port_num, uint32_t gid_index, struct ibv_gid_entry *entry,
                      uint32_t flags, size_t entry_size)
{
    IBVERBS_ENTER_CONTEXT(context);
    struct ibv_gid_entry whole = {.gid_index = gid_index, .port_num = port_num, .gid_type = IBV_GID_TYPE_IB};
    if (flags != 0) {
        return EOPNOTSUPP;
    }
    int error = gid_get(context, port_num, gid_index, &whole.gid);
    if (error == 0) {
        memset(entry, 0, entry_size);
        memcpy(entry, &whole, min_size(entry_size, sizeof whole));
    }
    return error;
}

// The GIDs of all ports. Returns their number, or a negative errno.
ssize_t _ibv_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries, size_t max_entries,
                             uint32_t flags, size_t entry_size)
{
    IBVERBS_ENTER_CONTEXT(context);
    unsigned ports = ibverbs_context_of(context)->device->info.attr.phys_port_cnt;
    size_t count = 0;
    if (flags != 0) {
        return -EOPNOTSUPP;
    }
    for (unsigned port = 1; port <= ports; port++) {
        struct ibv_port_attr attr;
        int error = port_get(context, port, &attr);
        for (int index = 0; error == 0 && index < attr.gid_tbl_len; index++) {
            if (count == max_entries) {
                return -EINVAL;
            }
            struct ibv_gid_entry *entry = (void *)((uint8_t *)entries + count * entry_size);
            error = _ibv_query_gid_ex(context, port, (uint32_t)index, entry, 0, entry_size);
            count++;
        }
        if (error != 0) {
            return -error;
        }
    }
    return (ssize_t)count;
}

static int pkey_get(struct ibv_context *context, unsigned port, unsigned index, __be16 *pkey_out)
{
    const struct ibverbs_device *device = ibverbs_context_of(context)->device;
    struct ibv_port_attr attr;
    uint16_t pkey;
    int error = port_get(context, port, &attr);
    if (error == 0) {
        error = index < attr.pkey_tbl_len ? -device->ops->query_pkey(device->object, port, index, &pkey) : EINVAL;
    }
    if (error == 0) {
        *pkey_out = htobe16(pkey);
    }
    return error;
}

int ibv_query_pkey(struct ibv_context *context, uint8_t port_num, int index, __be16 *pkey)
{
    IBVERBS_ENTER_CONTEXT(context);
    errno = index >= 0 ? pkey_get(context, port_num, (unsigned)index, pkey) : EINVAL;
    return errno == 0 ? 0 : -1;
}

int ibv_get_pkey_index(struct ibv_context *context, uint8_t port_num, __be16 pkey)
{
    __be16 entry;
    for (int index = 0; ibv_query_pkey(context, port_num, index, &entry) == 0; index++) {
        if (entry == pkey) {
            return index;
        }
    }
    return -1;
}
