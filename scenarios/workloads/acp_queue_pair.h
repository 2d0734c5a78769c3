// The memory that a queue pair of ACP takes on a device; many are made, because memory is counted in pages.
#pragma once

#include <infiniband/verbs.h>
#include <stdlib.h>

#include "one_put_all.h"

enum { ACP_QUEUE_PAIR_SAMPLES = 512 };

// name: the device; NULL: the first one. Makes them as the library does. They are not destroyed; the program ends soon.
static inline size_t acp_queue_pair_bytes(const char *name)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    size_t i = 0;
    while (list != NULL && list[i] != NULL && name != NULL && strcmp(ibv_get_device_name(list[i]), name) != 0) {
        i++;
    }
    struct ibv_context *context = list != NULL && list[i] != NULL ? ibv_open_device(list[i]) : NULL;
    struct ibv_pd *pd = context != NULL ? ibv_alloc_pd(context) : NULL;
    struct ibv_cq *cq = pd != NULL ? ibv_create_cq(context, ACP_QUEUE_PAIR_SAMPLES, NULL, NULL, 0) : NULL;
    struct ibv_qp_init_attr init = {.send_cq = cq, .recv_cq = cq, .cap = {1, 0, 1, 0, 0}, .qp_type = IBV_QPT_RC};
    size_t before = one_put_memory();
    for (int k = 0; k < ACP_QUEUE_PAIR_SAMPLES; k++) {
        if (cq == NULL || ibv_create_qp(pd, &init) == NULL) {
            fprintf(stderr, "no queue pairs\n");
            exit(1);
        }
    }
    return (one_put_memory() - before) / ACP_QUEUE_PAIR_SAMPLES;
}
