// Events of the context: completion events of armed CQs, and asynchronous events.
#include <errno.h>
#include <stdlib.h>

#include "verbs-shim/tca-verbs/internal.h"

void tcav_event_push(struct tcav_context *context, const struct ibverbs_event *event)
{
    struct tcav_event_node *node = malloc(sizeof *node);
    if (node == NULL) {
        return;
    }
    *node = (struct tcav_event_node){.event = *event};
    struct tcav_event_node **end = &context->events;
    while (*end != NULL) {
        end = &(*end)->next;
    }
    *end = node;
}

void tcav_event_async(struct tcav_context *context, enum ibv_event_type type, void *user)
{
    tcav_event_push(context, &(struct ibverbs_event){.type = type, .user = user, .port = 1});
}

void tcav_events_purge(struct tcav_context *context, const void *user)
{
    for (struct tcav_event_node **link = &context->events; *link != NULL;) {
        struct tcav_event_node *node = *link;
        if (node->event.user == user) {
            *link = node->next;
            free(node);
        } else {
            link = &node->next;
        }
    }
}

int tcav_event_get(void *object, uint64_t timeout_ns, struct ibverbs_event *event_out)
{
    struct tcav_context *context = object;
    bool limited = timeout_ns != IBVERBS_FOR_EVER && timeout_ns != IBVERBS_NO_WAIT;
    uint64_t until_ps = limited ? tcav_now_ps(context) + timeout_ns * TCAV_NS : 0;
    do {
        tcav_pay(context, BACKEND_COST_CALL, 1);
        unsigned found = tcav_progress(context);
        if (context->events != NULL) {
            struct tcav_event_node *node = context->events;
            *event_out = node->event;
            context->events = node->next;
            free(node);
            return 0;
        }
        if (timeout_ns == IBVERBS_NO_WAIT) {
            return -EAGAIN;
        }
        if (limited && tcav_now_ps(context) >= until_ps) {
            return -ETIMEDOUT;
        }
        if (found == 0) {
            tcav_progress_wait(context, until_ps);
        }
    } while (true);
}
