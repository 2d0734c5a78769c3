#include "cm_steps.h"

#include <netdb.h>
#include <time.h>

struct rdma_event_channel *channel;

struct sockaddr_in address_of(const char *host, uint16_t port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    if (host != NULL) {
        struct hostent *found = gethostbyname(host);
        CHECK(found != NULL);
        memcpy(&address.sin_addr, found->h_addr_list[0], sizeof address.sin_addr);
    }
    return address;
}

struct rdma_cm_id *id_make(enum rdma_port_space space)
{
    struct rdma_cm_id *id;
    CHECK(rdma_create_id(channel, &id, NULL, space) == 0);
    return id;
}

struct rdma_cm_id *listener_make(enum rdma_port_space space, int backlog)
{
    struct rdma_cm_id *id = id_make(space);
    struct sockaddr_in any = address_of(NULL, PORT);
    CHECK(rdma_bind_addr(id, (struct sockaddr *)&any) == 0);
    CHECK(rdma_listen(id, backlog) == 0);
    CHECK(ntohs(rdma_get_src_port(id)) == PORT);
    return id;
}

struct rdma_cm_event *event_get(enum rdma_cm_event_type type)
{
    struct rdma_cm_event *event;
    CHECK(rdma_get_cm_event(channel, &event) == 0);
    if (event->event != type) {
        (void)fprintf(stderr, "cm: %s %d in place of %s\n", rdma_event_str(event->event), event->status,
                      rdma_event_str(type));
        exit(1);
    }
    return event;
}

struct rdma_cm_id *event_take(enum rdma_cm_event_type type)
{
    struct rdma_cm_event *event = event_get(type);
    struct rdma_cm_id *id = event->id;
    CHECK(rdma_ack_cm_event(event) == 0);
    return id;
}

int status_take(enum rdma_cm_event_type type)
{
    struct rdma_cm_event *event = event_get(type);
    int status = event->status;
    CHECK(rdma_ack_cm_event(event) == 0);
    return status;
}

struct rdma_cm_id *routed_make(enum rdma_port_space space, const char *host)
{
    struct rdma_cm_id *id = id_make(space);
    struct sockaddr_in to = address_of(host, PORT);
    CHECK(rdma_resolve_addr(id, NULL, (struct sockaddr *)&to, 1000) == 0);
    CHECK(event_take(RDMA_CM_EVENT_ADDR_RESOLVED) == id);
    CHECK(id->verbs != NULL && id->port_num == 1);
    CHECK(rdma_resolve_route(id, 1000) == 0);
    CHECK(event_take(RDMA_CM_EVENT_ROUTE_RESOLVED) == id);
    return id;
}

void qp_make(struct rdma_cm_id *id)
{
    struct ibv_qp_init_attr init = {.cap = {.max_send_wr = 2, .max_recv_wr = 2, .max_send_sge = 1, .max_recv_sge = 1},
                                    .qp_type = id->qp_type};
    CHECK(rdma_create_qp(id, NULL, &init) == 0);
    CHECK(id->qp != NULL && id->pd != NULL && id->send_cq != NULL && id->recv_cq != NULL);
}

void id_end(struct rdma_cm_id *id)
{
    rdma_destroy_ep(id);
}

uint64_t now_ms(void)
{
    struct timespec now;
    CHECK(clock_gettime(CLOCK_MONOTONIC, &now) == 0);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

void pair_make(struct rdma_cm_id **active, struct rdma_cm_id **passive)
{
    struct rdma_cm_id *listener = listener_make(RDMA_PS_TCP, 1);
    *active = routed_make(RDMA_PS_TCP, NULL);
    qp_make(*active);
    CHECK(rdma_connect(*active, NULL) == 0);
    *passive = event_take(RDMA_CM_EVENT_CONNECT_REQUEST);
    qp_make(*passive);
    CHECK(rdma_accept(*passive, NULL) == 0);
    CHECK(event_take(RDMA_CM_EVENT_ESTABLISHED) == *active);
    CHECK(event_take(RDMA_CM_EVENT_ESTABLISHED) == *passive);
    id_end(listener);
}
