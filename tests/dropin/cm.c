// What programs see of rdma_cm: `cm CLAIM` tests a claim; exit status 0: it holds. The process connects to itself
// through its node's address; for claims with two processes, `cm serve-...` is the peer.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <unistd.h>

#include "cm_steps.h"

// --- claims ---------------------------------------------------------------------------------------------------------

static void message_crosses(void)
{
    struct rdma_cm_id *active, *passive;
    char data[2][16] = {"across", ""};
    struct ibv_wc wc;
    pair_make(&active, &passive);
    struct ibv_mr *from = rdma_reg_msgs(active, data[0], 16), *to = rdma_reg_msgs(passive, data[1], 16);
    CHECK(from != NULL && to != NULL);
    CHECK(rdma_post_recv(passive, NULL, data[1], 16, to) == 0);
    CHECK(rdma_post_send(active, NULL, data[0], 16, from, IBV_SEND_SIGNALED) == 0);
    CHECK(rdma_get_send_comp(active, &wc) == 1 && wc.status == IBV_WC_SUCCESS);
    CHECK(rdma_get_recv_comp(passive, &wc) == 1 && wc.status == IBV_WC_SUCCESS);
    CHECK(strcmp(data[1], "across") == 0);
    CHECK(rdma_dereg_mr(from) == 0 && rdma_dereg_mr(to) == 0);
}

static void private_data_crosses_both_ways(void)
{
    static const char question[56] = "question", answer[196] = "answer";
    struct rdma_conn_param param = {.private_data = question, .private_data_len = 56, .initiator_depth = 3};
    struct rdma_cm_id *listener = listener_make(RDMA_PS_TCP, 1), *active = routed_make(RDMA_PS_TCP, NULL);
    qp_make(active);
    CHECK(rdma_connect(active, &param) == 0);
    struct rdma_cm_event *event = event_get(RDMA_CM_EVENT_CONNECT_REQUEST);
    struct rdma_cm_id *passive = event->id;
    CHECK(event->listen_id == listener && event->param.conn.private_data_len == 56);
    CHECK(event->param.conn.responder_resources == 3 && event->param.conn.initiator_depth == 0);
    CHECK(memcmp(event->param.conn.private_data, question, 56) == 0);
    CHECK(rdma_ack_cm_event(event) == 0);
    qp_make(passive);
    param = (struct rdma_conn_param){.private_data = answer, .private_data_len = 196};
    CHECK(rdma_accept(passive, &param) == 0);
    event = event_get(RDMA_CM_EVENT_ESTABLISHED);
    CHECK(event->id == active && memcmp(event->param.conn.private_data, answer, 196) == 0);
    CHECK(rdma_ack_cm_event(event) == 0);
}

static void too_much_private_data_is_refused(void)
{
    static const char much[57];
    struct rdma_conn_param param = {.private_data = much, .private_data_len = sizeof much};
    struct rdma_cm_id *active = routed_make(RDMA_PS_TCP, NULL);
    CHECK(rdma_connect(active, &param) == -1 && errno == EINVAL);
}

static void nobody_listens(void)
{
    struct rdma_cm_id *active = routed_make(RDMA_PS_TCP, NULL);
    CHECK(rdma_connect(active, NULL) == 0);
    CHECK(status_take(RDMA_CM_EVENT_REJECTED) == 8); // IBA 12.6.7.2: invalid service ID
}

static void refusal_carries_its_reason(void)
{
    struct rdma_cm_id *listener = listener_make(RDMA_PS_TCP, 1), *active = routed_make(RDMA_PS_TCP, NULL);
    CHECK(rdma_connect(active, NULL) == 0);
    struct rdma_cm_id *passive = event_take(RDMA_CM_EVENT_CONNECT_REQUEST);
    CHECK(rdma_reject(passive, "full", 5) == 0);
    struct rdma_cm_event *event = event_get(RDMA_CM_EVENT_REJECTED);
    CHECK(event->status == 28 && strcmp(event->param.conn.private_data, "full") == 0);
    CHECK(rdma_ack_cm_event(event) == 0);
    id_end(passive);
    id_end(listener);
    id_end(active);
}

static void listeners_end_refuses_who_waits(void)
{
    struct rdma_cm_id *listener = listener_make(RDMA_PS_TCP, 4), *active = routed_make(RDMA_PS_TCP, NULL);
    CHECK(rdma_connect(active, NULL) == 0);
    CHECK(rdma_destroy_id(listener) == 0);
    CHECK(status_take(RDMA_CM_EVENT_REJECTED) == 28);
}

static void unknown_address_is_an_error_after_its_time(void)
{
    struct rdma_cm_id *id = id_make(RDMA_PS_TCP);
    struct sockaddr_in to = address_of(NULL, PORT);
    to.sin_addr.s_addr = htonl(0x7f010203); // 127.1.2.3
    uint64_t before = now_ms();
    CHECK(rdma_resolve_addr(id, NULL, (struct sockaddr *)&to, 250) == 0);
    CHECK(status_take(RDMA_CM_EVENT_ADDR_ERROR) == -ETIMEDOUT);
    CHECK(now_ms() - before >= 250 && now_ms() - before < 252);
}

// Two wait on one channel, and the one that began later ends earlier.
static void each_deadline_has_its_own_time(void)
{
    static const int timeouts_ms[] = {250, 100};
    struct sockaddr_in to = address_of(NULL, PORT);
    to.sin_addr.s_addr = htonl(0x7f010203);
    uint64_t before = now_ms();
    for (size_t i = 0; i < 2; i++) {
        CHECK(rdma_resolve_addr(id_make(RDMA_PS_TCP), NULL, (struct sockaddr *)&to, timeouts_ms[i]) == 0);
    }
    for (size_t i = 2; i-- > 0;) {
        CHECK(status_take(RDMA_CM_EVENT_ADDR_ERROR) == -ETIMEDOUT);
        uint64_t took_ms = now_ms() - before;
        CHECK(took_ms >= (uint64_t)timeouts_ms[i] && took_ms < (uint64_t)timeouts_ms[i] + 2);
    }
}

static void port_has_one_owner(void)
{
    struct rdma_cm_id *listener = listener_make(RDMA_PS_TCP, 1), *other = id_make(RDMA_PS_TCP);
    struct rdma_cm_id *datagrams = id_make(RDMA_PS_UDP);
    struct sockaddr_in any = address_of(NULL, PORT);
    CHECK(rdma_bind_addr(other, (struct sockaddr *)&any) == -1 && errno == EADDRINUSE);
    CHECK(rdma_bind_addr(datagrams, (struct sockaddr *)&any) == 0); // a port space of its own
    CHECK(rdma_destroy_id(listener) == 0);
    CHECK(rdma_bind_addr(other, (struct sockaddr *)&any) == 0);
}

static void child_keeps_no_port(void)
{
    struct rdma_cm_id *listener = listener_make(RDMA_PS_TCP, 1), *other = id_make(RDMA_PS_TCP);
    struct sockaddr_in any = address_of(NULL, PORT);
    pid_t child = fork();
    if (child == 0) {
        (void)pause();
    }
    CHECK(child > 0 && rdma_destroy_id(listener) == 0);
    CHECK(rdma_bind_addr(other, (struct sockaddr *)&any) == 0);
    CHECK(kill(child, SIGKILL) == 0);
}

static void full_backlog_loses_requests(void)
{
    struct rdma_cm_id *listener = listener_make(RDMA_PS_TCP, 1), *first = routed_make(RDMA_PS_TCP, NULL),
                      *second = routed_make(RDMA_PS_TCP, NULL);
    struct rdma_event_channel *of_listener = rdma_create_event_channel();
    CHECK(of_listener != NULL && rdma_migrate_id(listener, of_listener) == 0);
    uint64_t before = now_ms();
    CHECK(rdma_connect(first, NULL) == 0 && rdma_connect(second, NULL) == 0);
    struct rdma_cm_event *event = event_get(RDMA_CM_EVENT_UNREACHABLE);
    CHECK(event->status == -ETIMEDOUT);
    CHECK(now_ms() - before > 90000 && now_ms() - before < 100000); // 16 times 6.1 s
}

static void both_sides_hear_of_the_end_once(void)
{
    struct rdma_cm_id *active, *passive;
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;
    pair_make(&active, &passive);
    CHECK(rdma_disconnect(active) == 0);
    CHECK(event_take(RDMA_CM_EVENT_DISCONNECTED) == passive);
    CHECK(ibv_query_qp(active->qp, &attr, IBV_QP_STATE, &init) == 0 && attr.qp_state == IBV_QPS_ERR);
    CHECK(rdma_disconnect(passive) == 0);
    CHECK(event_take(RDMA_CM_EVENT_DISCONNECTED) == active);
    struct pollfd more = {.fd = channel->fd, .events = POLLIN};
    CHECK(poll(&more, 1, 10) == 0);
}

static void channel_can_be_waited_for(void)
{
    struct pollfd ready = {.fd = channel->fd, .events = POLLIN};
    struct rdma_cm_event *event;
    struct rdma_cm_id *id = id_make(RDMA_PS_TCP);
    struct sockaddr_in to = address_of(NULL, PORT);
    CHECK(fcntl(channel->fd, F_SETFL, fcntl(channel->fd, F_GETFL) | O_NONBLOCK) == 0);
    CHECK(poll(&ready, 1, 0) == 0);
    CHECK(rdma_get_cm_event(channel, &event) == -1 && errno == EAGAIN);
    CHECK(rdma_resolve_addr(id, NULL, (struct sockaddr *)&to, 1000) == 0);
    CHECK(poll(&ready, 1, 1000) == 1);
    CHECK(rdma_get_cm_event(channel, &event) == 0 && event->event == RDMA_CM_EVENT_ADDR_RESOLVED);
    CHECK(poll(&ready, 1, 0) == 0);
    CHECK(rdma_ack_cm_event(event) == 0);
}

static void identifier_takes_its_events_along(void)
{
    struct rdma_event_channel *before = channel;
    struct rdma_cm_id *listener = listener_make(RDMA_PS_TCP, 1), *active = routed_make(RDMA_PS_TCP, NULL),
                      *refused = routed_make(RDMA_PS_UDP, NULL);
    CHECK(rdma_connect(active, NULL) == 0);  // a message waits in the listener's socket
    CHECK(rdma_connect(refused, NULL) == 0); // an event waits in the channel, as there is no listener for datagrams
    channel = rdma_create_event_channel();
    CHECK(channel != NULL && rdma_migrate_id(listener, channel) == 0 && rdma_migrate_id(refused, channel) == 0);
    CHECK(event_take(RDMA_CM_EVENT_UNREACHABLE) == refused);
    struct rdma_cm_id *passive = event_take(RDMA_CM_EVENT_CONNECT_REQUEST);
    CHECK(passive->channel == channel && active->channel == before);
}

static void datagram_service_is_found(void)
{
    struct rdma_cm_id *listener = listener_make(RDMA_PS_UDP, 1), *active = routed_make(RDMA_PS_UDP, NULL);
    struct ibv_port_attr port;
    qp_make(active);
    CHECK(rdma_connect(active, NULL) == 0);
    struct rdma_cm_id *passive = event_take(RDMA_CM_EVENT_CONNECT_REQUEST);
    qp_make(passive);
    CHECK(rdma_accept(passive, NULL) == 0);
    struct rdma_cm_event *event = event_get(RDMA_CM_EVENT_ESTABLISHED);
    CHECK(ibv_query_port(active->verbs, 1, &port) == 0);
    CHECK(event->param.ud.qp_num == passive->qp->qp_num && event->param.ud.qkey == RDMA_UDP_QKEY);
    CHECK(event->param.ud.ah_attr.dlid == port.lid && event->param.ud.ah_attr.port_num == 1);
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;
    CHECK(ibv_query_qp(passive->qp, &attr, IBV_QP_QKEY | IBV_QP_STATE, &init) == 0);
    CHECK(attr.qkey == RDMA_UDP_QKEY && attr.qp_state == IBV_QPS_RTS);
    CHECK(rdma_ack_cm_event(event) == 0);
    id_end(passive);
    id_end(active);
    id_end(listener);
}

static void group_is_joined_and_left(void)
{
    struct rdma_cm_id *id = routed_make(RDMA_PS_UDP, NULL);
    struct sockaddr_in one = address_of(NULL, 0), group = one;
    CHECK(rdma_join_multicast(id, (struct sockaddr *)&one, NULL) == -1 && errno == EINVAL);
    CHECK(inet_pton(AF_INET, "224.0.0.27", &group.sin_addr) == 1);
    qp_make(id);
    CHECK(rdma_join_multicast(id, (struct sockaddr *)&group, &group) == 0);
    struct rdma_cm_event *event = event_get(RDMA_CM_EVENT_MULTICAST_JOIN);
    const struct rdma_ud_param *found = &event->param.ud;
    CHECK(found->private_data == &group && found->qp_num == 0xffffff && found->qkey == RDMA_UDP_QKEY);
    CHECK(found->ah_attr.dlid >= 0xc000 && found->ah_attr.grh.dgid.raw[0] == 0xff);
    CHECK(rdma_ack_cm_event(event) == 0);
    CHECK(rdma_leave_multicast(id, (struct sockaddr *)&group) == 0);
    CHECK(rdma_leave_multicast(id, (struct sockaddr *)&group) == -1 && errno == EADDRNOTAVAIL);
    id_end(id);
}

// --- two programs ---------------------------------------------------------------------------------------------------

static void serve(bool accepts)
{
    (void)listener_make(RDMA_PS_TCP, 1);
    struct rdma_cm_id *passive = event_take(RDMA_CM_EVENT_CONNECT_REQUEST);
    if (accepts) {
        qp_make(passive);
        CHECK(rdma_accept(passive, NULL) == 0);
        (void)event_take(RDMA_CM_EVENT_ESTABLISHED);
    }
    (void)raise(SIGKILL);
}

static void serve_and_die(void)
{
    serve(true);
}

static void serve_and_die_before_the_answer(void)
{
    serve(false);
}

static void partner_that_is_killed_disconnects(void)
{
    struct rdma_cm_id *active = routed_make(RDMA_PS_TCP, "node1");
    qp_make(active);
    CHECK(rdma_connect(active, NULL) == 0);
    CHECK(event_take(RDMA_CM_EVENT_ESTABLISHED) == active);
    CHECK(event_take(RDMA_CM_EVENT_DISCONNECTED) == active);
}

static void partner_that_is_killed_before_its_answer_refuses(void)
{
    struct rdma_cm_id *active = routed_make(RDMA_PS_TCP, "node1");
    CHECK(rdma_connect(active, NULL) == 0);
    CHECK(status_take(RDMA_CM_EVENT_REJECTED) == 28);
}

static const struct {
    const char *name;
    void (*holds)(void);
} claims[] = {
    {"message_crosses", message_crosses},
    {"private_data_crosses_both_ways", private_data_crosses_both_ways},
    {"too_much_private_data_is_refused", too_much_private_data_is_refused},
    {"nobody_listens", nobody_listens},
    {"refusal_carries_its_reason", refusal_carries_its_reason},
    {"listeners_end_refuses_who_waits", listeners_end_refuses_who_waits},
    {"unknown_address_is_an_error_after_its_time", unknown_address_is_an_error_after_its_time},
    {"each_deadline_has_its_own_time", each_deadline_has_its_own_time},
    {"port_has_one_owner", port_has_one_owner},
    {"child_keeps_no_port", child_keeps_no_port},
    {"full_backlog_loses_requests", full_backlog_loses_requests},
    {"both_sides_hear_of_the_end_once", both_sides_hear_of_the_end_once},
    {"channel_can_be_waited_for", channel_can_be_waited_for},
    {"identifier_takes_its_events_along", identifier_takes_its_events_along},
    {"datagram_service_is_found", datagram_service_is_found},
    {"group_is_joined_and_left", group_is_joined_and_left},
    {"most_reads_of_the_device_are_taken", most_reads_of_the_device_are_taken},
    {"acknowledge_time_is_the_programs", acknowledge_time_is_the_programs},
    {"member_that_only_sends_receives_nothing", member_that_only_sends_receives_nothing},
    {"identifier_outlives_its_events", identifier_outlives_its_events},
    {"named_device_is_used_or_none", named_device_is_used_or_none},
    {"serve_and_die", serve_and_die},
    {"serve_and_die_before_the_answer", serve_and_die_before_the_answer},
    {"partner_that_is_killed_disconnects", partner_that_is_killed_disconnects},
    {"partner_that_is_killed_before_its_answer_refuses", partner_that_is_killed_before_its_answer_refuses},
};

int main(int argc, char **argv)
{
    CHECK(argc == 2);
    channel = rdma_create_event_channel();
    CHECK(channel != NULL);
    for (size_t i = 0; i < sizeof claims / sizeof claims[0]; i++) {
        if (strcmp(claims[i].name, argv[1]) == 0) {
            claims[i].holds();
            return 0;
        }
    }
    (void)fprintf(stderr, "cm: there is no claim %s\n", argv[1]);
    return 2;
}
