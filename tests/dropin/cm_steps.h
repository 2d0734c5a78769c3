// Steps of a program on rdma_cm, for claims about it. A step that fails ends the program with status 1.
#pragma once

#include <arpa/inet.h>
#include <errno.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            (void)fprintf(stderr, "cm: %s line %d: %s (errno %s)\n", strrchr("/" __FILE__, '/') + 1, __LINE__,         \
                          #condition, strerror(errno));                                                                \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

enum { PORT = 7471 };

extern struct rdma_event_channel *channel; // of all identifiers

struct sockaddr_in address_of(const char *host, uint16_t port); // host NULL: any
struct rdma_cm_id *id_make(enum rdma_port_space space);
struct rdma_cm_id *listener_make(enum rdma_port_space space, int backlog); // at PORT
struct rdma_cm_event *event_get(enum rdma_cm_event_type type);
struct rdma_cm_id *event_take(enum rdma_cm_event_type type); // acknowledges the event, returns its identifier
int status_take(enum rdma_cm_event_type type);               // acknowledges the event, returns its status
struct rdma_cm_id *routed_make(enum rdma_port_space space, const char *host);
void qp_make(struct rdma_cm_id *id);
void id_end(struct rdma_cm_id *id);
uint64_t now_ms(void);
// Both sides of a connection of the process to itself.
void pair_make(struct rdma_cm_id **active, struct rdma_cm_id **passive);

// --- claims of cm_limits.c ------------------------------------------------------------------------------------------

void most_reads_of_the_device_are_taken(void);
void acknowledge_time_is_the_programs(void);
void member_that_only_sends_receives_nothing(void);
void identifier_outlives_its_events(void);
void named_device_is_used_or_none(void);
