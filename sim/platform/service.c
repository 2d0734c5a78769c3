#include "sim/platform/service.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "sim/platform/internal.h"

static void service_thread(void *arg)
{
    struct plat_service *service = arg;
    int error = peach2_proxy_serve(service->proxy);
    if (error != 0) {
        plat_machine_fail(service->machine, "%s: the service for remote reads ended: %s",
                          service->machine->nodes[service->node].config->name, strerror(-error));
    }
}

int plat_service_start(struct plat_service *service, plat_machine_t *machine, uint32_t node, peach2_handle_t *board,
                       struct peach2_proxy_address *address_out)
{
    const struct plat_node *host = &machine->nodes[node];
    char name[SCN_NAME_MAX + 32];
    *service = (struct plat_service){.machine = machine, .node = node, .backend = host->backend};
    snprintf(name, sizeof name, "%s.service", host->config->name);
    if (plat_machine_core_create(machine, node, name, &service->core) != SIM_OK) {
        return -ENOMEM;
    }
    service->backend.core = service->core;
    const struct backend backend = plat_backend_inproc(&service->backend);
    int error = peach2_open_shared(board, &backend, &service->handle);
    if (error == 0) {
        error = peach2_proxy_create(service->handle, PLAT_SERVICE_CHANNEL, &service->proxy);
    }
    if (error != 0) {
        return error;
    }
    *address_out = peach2_proxy_address(service->proxy);
    return sim_thread_spawn(machine->sim, name, service_thread, service) == SIM_OK ? 0 : -ENOMEM;
}

void plat_service_fini(struct plat_service *service)
{
    peach2_proxy_destroy(service->proxy);
    peach2_close(service->handle);
    host_core_destroy(service->core);
    *service = (struct plat_service){0};
}
