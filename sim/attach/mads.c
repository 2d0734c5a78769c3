// Management datagrams of programs: the agents' answers (models/hca/management.h). They take no simulated time.
#include <errno.h>
#include <string.h>

#include "models/hca/management.h"
#include "sim/attach/internal.h"

static hca_t *adapter_of(void *ctx, unsigned node, const char **name_out)
{
    const struct attach_server *server = ctx;
    *name_out = server->scenario->nodes[node].name;
    return plat_machine_backend(server->machine, node)->hca;
}

int64_t attach_serve_mad(struct attach_thread *thread, const struct attach_args_mad *args,
                         struct attach_reply_mad *reply)
{
    struct attach_server *server = thread->process->server;
    uint32_t node = thread->process->node;
    const struct hca_subnet subnet = {server->scenario->node_count, adapter_of, server};
    reply->mad = args->mad;
    if (plat_machine_backend(server->machine, node)->hca == NULL) {
        return -ENODEV;
    }
    if (args->lid > UINT16_MAX) {
        return -EINVAL;
    }
    return hca_mad_answer(&subnet, node, (uint16_t)args->lid, reply->mad.bytes) ? 0 : -ETIMEDOUT;
}
