// Claims about rdma_cm: limits of the device, options, members of groups, and how long things exist.
#include <poll.h>
#include <pthread.h>
#include <unistd.h>

#include "cm_steps.h"

static struct ibv_qp_attr attr_of(const struct rdma_cm_id *id)
{
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;
    CHECK(ibv_query_qp(id->qp, &attr, IBV_QP_TIMEOUT | IBV_QP_MAX_QP_RD_ATOMIC, &init) == 0);
    return attr;
}

static void accept_and_establish(struct rdma_cm_id *active)
{
    struct rdma_cm_id *passive = event_take(RDMA_CM_EVENT_CONNECT_REQUEST);
    qp_make(passive);
    CHECK(rdma_accept(passive, NULL) == 0);
    CHECK(event_take(RDMA_CM_EVENT_ESTABLISHED) == active);
    CHECK(event_take(RDMA_CM_EVENT_ESTABLISHED) == passive);
}

// rdma_connect(3): the values must be within the attributes of the device.
void most_reads_of_the_device_are_taken(void)
{
    struct ibv_device_attr device;
    struct rdma_cm_id *active = routed_make(RDMA_PS_TCP, NULL);
    (void)listener_make(RDMA_PS_TCP, 1);
    qp_make(active);
    CHECK(ibv_query_device(active->verbs, &device) == 0 && device.max_qp_init_rd_atom < 254);
    struct rdma_conn_param param = {.initiator_depth = (uint8_t)(device.max_qp_init_rd_atom + 1)};
    CHECK(rdma_connect(active, &param) == -1 && errno == EINVAL);
    param = (struct rdma_conn_param){.responder_resources = (uint8_t)(device.max_qp_rd_atom + 1)};
    CHECK(rdma_connect(active, &param) == -1 && errno == EINVAL);
    param = (struct rdma_conn_param){.initiator_depth = (uint8_t)device.max_qp_init_rd_atom,
                                     .responder_resources = (uint8_t)device.max_qp_rd_atom};
    CHECK(rdma_connect(active, &param) == 0);
    accept_and_establish(active);
    // The other side, on the same device, answers max_qp_rd_atom of them.
    int most = device.max_qp_init_rd_atom < device.max_qp_rd_atom ? device.max_qp_init_rd_atom : device.max_qp_rd_atom;
    CHECK(attr_of(active).max_rd_atomic == most);
}

// rdma_set_option(3): 4.096 us * 2^timeout, instead of the value that follows from the path.
void acknowledge_time_is_the_programs(void)
{
    uint8_t timeout = 10;
    struct rdma_cm_id *active = routed_make(RDMA_PS_TCP, NULL);
    (void)listener_make(RDMA_PS_TCP, 1);
    CHECK(rdma_set_option(active, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &timeout, sizeof timeout) == 0);
    qp_make(active);
    CHECK(rdma_connect(active, NULL) == 0);
    accept_and_establish(active);
    CHECK(attr_of(active).timeout == 10);
}

// --- groups ---------------------------------------------------------------------------------------------------------

enum { GRH = 40, BYTES = 16 };

struct member {
    struct rdma_cm_id *id;
    struct ibv_mr *mr;
    struct ibv_ah *ah; // to the group
    uint32_t qp_num;   // of all members
    char data[GRH + BYTES];
};

static void join(struct member *member, uint32_t flags)
{
    struct sockaddr_in group = {.sin_family = AF_INET};
    CHECK(inet_pton(AF_INET, "224.0.0.27", &group.sin_addr) == 1);
    struct rdma_cm_join_mc_attr_ex attr = {.comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS,
                                           .join_flags = flags,
                                           .addr = (struct sockaddr *)&group};
    member->id = routed_make(RDMA_PS_UDP, NULL);
    qp_make(member->id);
    member->mr = rdma_reg_msgs(member->id, member->data, sizeof member->data);
    CHECK(member->mr != NULL);
    CHECK(rdma_post_recv(member->id, NULL, member->data, sizeof member->data, member->mr) == 0);
    CHECK(rdma_join_multicast_ex(member->id, &attr, NULL) == 0);
    struct rdma_cm_event *event = event_get(RDMA_CM_EVENT_MULTICAST_JOIN);
    member->ah = ibv_create_ah(member->id->pd, &event->param.ud.ah_attr);
    member->qp_num = event->param.ud.qp_num;
    CHECK(member->ah != NULL && rdma_ack_cm_event(event) == 0);
}

static void send_word(struct member *member)
{
    static char word[BYTES] = "word";
    struct ibv_wc wc;
    struct ibv_mr *mr = rdma_reg_msgs(member->id, word, BYTES);
    CHECK(mr != NULL);
    CHECK(rdma_post_ud_send(member->id, NULL, word, BYTES, mr, IBV_SEND_SIGNALED, member->ah, member->qp_num) == 0);
    CHECK(rdma_get_send_comp(member->id, &wc) == 1 && wc.status == IBV_WC_SUCCESS);
    CHECK(rdma_dereg_mr(mr) == 0);
}

// rdma_join_multicast_ex(3): a full member that only sends gets no messages of the group.
void member_that_only_sends_receives_nothing(void)
{
    static struct member sender, receiver;
    struct ibv_wc wc;
    join(&sender, RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER);
    join(&receiver, RDMA_MC_JOIN_FLAG_FULLMEMBER);
    send_word(&sender);
    CHECK(rdma_get_recv_comp(receiver.id, &wc) == 1 && wc.status == IBV_WC_SUCCESS);
    send_word(&receiver);
    CHECK(usleep(1000) == 0); // until it has come everywhere
    CHECK(ibv_poll_cq(sender.id->recv_cq, 1, &wc) == 0);
}

// --- how long things exist ------------------------------------------------------------------------------------------

static void *acknowledge_later(void *event)
{
    CHECK(usleep(5000) == 0);
    CHECK(rdma_ack_cm_event(event) == 0);
    return NULL;
}

// rdma_destroy_id(3), rdma_get_cm_event(3): destruction waits until all events are acknowledged.
void identifier_outlives_its_events(void)
{
    pthread_t thread;
    struct rdma_cm_id *id = id_make(RDMA_PS_TCP);
    struct sockaddr_in to = address_of(NULL, PORT);
    CHECK(rdma_resolve_addr(id, NULL, (struct sockaddr *)&to, 1000) == 0);
    struct rdma_cm_event *event = event_get(RDMA_CM_EVENT_ADDR_RESOLVED);
    uint64_t before = now_ms();
    CHECK(pthread_create(&thread, NULL, acknowledge_later, event) == 0);
    CHECK(rdma_destroy_id(id) == 0);
    CHECK(now_ms() - before >= 4);
    CHECK(pthread_join(thread, NULL) == 0);
}

// docs/attached-programs.md
void named_device_is_used_or_none(void)
{
    struct sockaddr_in own = address_of("node0", PORT);
    struct rdma_cm_id *id = id_make(RDMA_PS_TCP);
    CHECK(setenv("TCASIM_RDMA_CM_DEVICE", "none", 1) == 0);
    CHECK(rdma_bind_addr(id, (struct sockaddr *)&own) == -1 && errno == ENODEV);
    CHECK(setenv("TCASIM_RDMA_CM_DEVICE", "ibsim0", 1) == 0);
    CHECK(rdma_bind_addr(id, (struct sockaddr *)&own) == 0);
    CHECK(strcmp(ibv_get_device_name(id->verbs->device), "ibsim0") == 0);
}
