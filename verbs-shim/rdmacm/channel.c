// Event channels. The descriptor of a channel is an epoll descriptor, which the program may wait for like any other: it
// is readable while an event is in the list, or a message has arrived that will become an event.
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "verbs-shim/attach/attach.h"
#include "verbs-shim/rdmacm/internal.h"

enum { NUMBER_SIGNAL, NUMBER_TIMER }; // used like identifier numbers

// --- descriptors ----------------------------------------------------------------------------------------------------

static int watch(const struct cm_channel *channel, int fd, uint64_t number)
{
    struct epoll_event interest = {.events = EPOLLIN, .data.u64 = number};
    return epoll_ctl(channel->base.fd, EPOLL_CTL_ADD, fd, &interest) == 0 ? 0 : -errno;
}

int cm_channel_watch(struct cm_id *id)
{
    return watch(cm_channel_of(id), id->socket, id->number);
}

void cm_channel_unwatch(struct cm_id *id)
{
    (void)epoll_ctl(id->base.channel->fd, EPOLL_CTL_DEL, id->socket, NULL);
}

struct cm_channel *cm_channel_new(void)
{
    struct cm_channel *channel = attach_environment() != NULL ? calloc(1, sizeof *channel) : NULL;
    if (channel == NULL) {
        errno = attach_environment() != NULL ? ENOMEM : ENODEV;
        return NULL;
    }
    *channel = (struct cm_channel){.end = &channel->first, .timer = -1};
    channel->base.fd = epoll_create1(EPOLL_CLOEXEC);
    channel->signal = eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE | EFD_NONBLOCK);
    if (channel->base.fd < 0 || channel->signal < 0 || watch(channel, channel->signal, NUMBER_SIGNAL) != 0) {
        cm_channel_free(channel);
        errno = EMFILE;
        return NULL;
    }
    return channel;
}

void cm_channel_free(struct cm_channel *channel)
{
    const int fds[] = {channel->base.fd, channel->signal, channel->timer};
    for (size_t i = 0; i < sizeof fds / sizeof fds[0]; i++) {
        if (fds[i] >= 0) {
            (void)close(fds[i]);
        }
    }
    while (channel->first != NULL) {
        struct cm_event *event = channel->first;
        channel->first = event->next;
        free(event);
    }
    channel->closed = true;
    if (channel->waiters == 0) {
        free(channel);
    }
}

struct rdma_event_channel *rdma_create_event_channel(void)
{
    CM_ENTER();
    struct cm_channel *channel = cm_channel_new();
    return channel != NULL ? &channel->base : NULL;
}

void rdma_destroy_event_channel(struct rdma_event_channel *channel)
{
    CM_ENTER();
    cm_channel_free((struct cm_channel *)channel);
}

// --- deadlines ------------------------------------------------------------------------------------------------------

// If no descriptor is left (a process has 64 timers in simulated time) the channel's identifiers have no timeouts.
static bool timer_have(struct cm_channel *channel)
{
    if (channel->timer < 0) {
        channel->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
        if (channel->timer >= 0) {
            (void)watch(channel, channel->timer, NUMBER_TIMER);
        }
    }
    return channel->timer >= 0;
}

void cm_channel_rearm(struct cm_channel *channel)
{
    uint64_t next_ns = 0; // 0: none
    for (const struct cm_id *id = cm_ids(); id != NULL; id = id->next) {
        if (cm_channel_of(id) == channel && id->deadline_ns != 0 && (next_ns == 0 || id->deadline_ns < next_ns)) {
            next_ns = id->deadline_ns;
        }
    }
    if (next_ns != 0 ? timer_have(channel) : channel->timer >= 0) {
        const struct itimerspec when = {
            .it_value = {.tv_sec = (time_t)(next_ns / 1000000000u), .tv_nsec = (long)(next_ns % 1000000000u)}};
        (void)timerfd_settime(channel->timer, TFD_TIMER_ABSTIME, &when, NULL);
    }
}

void cm_deadline_set(struct cm_id *id, uint64_t delay_ns)
{
    if (delay_ns != 0 || id->deadline_ns != 0) {
        id->deadline_ns = delay_ns != 0 ? cm_now_ns() + delay_ns : 0;
        cm_channel_rearm(cm_channel_of(id));
    }
}

static void timer_ready(struct cm_channel *channel)
{
    uint64_t times;
    (void)!read(channel->timer, &times, sizeof times);
    uint64_t now_ns = cm_now_ns();
    for (struct cm_id *id = cm_ids(); id != NULL; id = id->next) {
        if (cm_channel_of(id) == channel && id->deadline_ns != 0 && id->deadline_ns <= now_ns) {
            id->deadline_ns = 0;
            cm_deadline_passed(id);
        }
    }
    cm_channel_rearm(channel);
}

// --- events ---------------------------------------------------------------------------------------------------------

static void count(const struct cm_channel *channel, bool up)
{
    uint64_t one = 1;
    if (up) {
        (void)!write(channel->signal, &one, sizeof one);
    } else {
        (void)!read(channel->signal, &one, sizeof one);
    }
}

static void list_append(struct cm_channel *channel, struct cm_event *event)
{
    event->next = NULL;
    *channel->end = event;
    channel->end = &event->next;
    count(channel, true);
}

struct cm_event *cm_event_put(struct cm_id *id, enum rdma_cm_event_type type, int status)
{
    struct cm_event *event = calloc(1, sizeof *event);
    if (event != NULL) {
        event->base = (struct rdma_cm_event){.id = &id->base, .event = type, .status = status};
        event->owner = id;
        list_append(cm_channel_of(id), event);
    }
    return event;
}

static struct cm_event *list_take(struct cm_channel *channel, struct cm_event **link)
{
    struct cm_event *event = *link;
    *link = event->next;
    if (event->next == NULL) {
        channel->end = link;
    }
    count(channel, false);
    return event;
}

void cm_events_drop(struct cm_id *id)
{
    struct cm_channel *channel = cm_channel_of(id);
    struct cm_event **link = &channel->first;
    while (*link != NULL) {
        if ((*link)->owner != id && (*link)->base.id != &id->base) {
            link = &(*link)->next;
            continue;
        }
        struct cm_event *event = list_take(channel, link);
        if (event->base.id != &id->base) { // a connection request that the program has not seen
            cm_id_free(cm_id_of(event->base.id));
        }
        free(event);
    }
}

static struct cm_event *event_take(struct cm_channel *channel)
{
    CM_ENTER();
    struct cm_event *event = channel->first != NULL ? list_take(channel, &channel->first) : NULL;
    if (event != NULL) {
        event->owner->events_taken++;
    }
    return event;
}

static void descriptor_ready(struct cm_channel *channel, uint64_t number)
{
    CM_ENTER();
    struct cm_id *id = number > NUMBER_TIMER ? cm_id_find(number) : NULL;
    if (number == NUMBER_TIMER) {
        timer_ready(channel);
    } else if (id != NULL && cm_channel_of(id) == channel && id->socket >= 0) {
        cm_socket_ready(id);
    }
}

static void waiters_count(struct cm_channel *channel, bool more)
{
    CM_ENTER();
    channel->waiters += more ? 1u : -1u;
}

// Waits until a descriptor is readable. -1 and errno.
static int descriptor_wait(struct cm_channel *channel)
{
    struct epoll_event ready;
    bool blocks = (fcntl(channel->base.fd, F_GETFL) & O_NONBLOCK) == 0;
    int found = epoll_wait(channel->base.fd, &ready, 1, blocks ? -1 : 0);
    int error = found == 0 ? EAGAIN : errno;
    while (channel->closed) { // like a read of a descriptor that another thread closes: it never returns
        (void)pause();
    }
    if (found <= 0) {
        errno = error;
        return -1;
    }
    descriptor_ready(channel, ready.data.u64);
    return 0;
}

int rdma_get_cm_event(struct rdma_event_channel *base, struct rdma_cm_event **event_out)
{
    struct cm_channel *channel = (struct cm_channel *)base;
    waiters_count(channel, true);
    struct cm_event *event = event_take(channel);
    int status = 0;
    while (event == NULL && status == 0) {
        status = descriptor_wait(channel);
        event = event_take(channel);
    }
    waiters_count(channel, false);
    if (event == NULL) {
        return -1;
    }
    cm_event_pay();
    *event_out = &event->base;
    return 0;
}

int rdma_ack_cm_event(struct rdma_cm_event *base)
{
    struct cm_event *event = (struct cm_event *)base;
    if (event == NULL) {
        return cm_errno(-EINVAL);
    }
    CM_ENTER();
    event->owner->events_acknowledged++;
    free(event);
    cm_acknowledged();
    return 0;
}

int cm_complete(struct cm_id *id)
{
    if (!id->sync) {
        return 0;
    }
    if (id->base.event != NULL) {
        (void)rdma_ack_cm_event(id->base.event);
        id->base.event = NULL;
    }
    if (rdma_get_cm_event(id->base.channel, &id->base.event) != 0) {
        return -1;
    }
    int status = id->base.event->status;
    if (id->base.event->event == RDMA_CM_EVENT_REJECTED) {
        return cm_errno(-ECONNREFUSED);
    }
    return cm_errno(status > 0 ? -EREMOTEIO : status);
}

// --- migration to another channel -----------------------------------------------------------------------------------

static void events_move(struct cm_id *id, struct cm_channel *from, struct cm_channel *to)
{
    struct cm_event **link = &from->first;
    while (*link != NULL) {
        if ((*link)->owner == id) {
            list_append(to, list_take(from, link));
        } else {
            link = &(*link)->next;
        }
    }
}

// NULL: the identifier gets a channel of its own and becomes synchronous.
int rdma_migrate_id(struct rdma_cm_id *base, struct rdma_event_channel *wanted)
{
    CM_ENTER();
    struct cm_id *id = cm_id_of(base);
    struct cm_channel *from = cm_channel_of(id), *to = (struct cm_channel *)wanted;
    bool had_own = id->sync;
    if (from == to) {
        return 0;
    }
    to = to != NULL ? to : cm_channel_new();
    if (to == NULL) {
        return -1;
    }
    if (had_own && base->event != NULL) {
        struct cm_event *event = (struct cm_event *)base->event;
        event->owner->events_acknowledged++;
        free(event);
        base->event = NULL;
    }
    if (id->socket >= 0) {
        cm_channel_unwatch(id);
    }
    events_move(id, from, to);
    base->channel = &to->base;
    id->sync = wanted == NULL;
    int status = id->socket >= 0 ? cm_channel_watch(id) : 0;
    cm_channel_rearm(from);
    cm_channel_rearm(to);
    cm_wait_acknowledged(id);
    if (had_own) {
        cm_channel_free(from);
    }
    return cm_errno(status);
}

const char *rdma_event_str(enum rdma_cm_event_type event)
{
    static const char *const names[] = {
        [RDMA_CM_EVENT_ADDR_RESOLVED] = "RDMA_CM_EVENT_ADDR_RESOLVED",
        [RDMA_CM_EVENT_ADDR_ERROR] = "RDMA_CM_EVENT_ADDR_ERROR",
        [RDMA_CM_EVENT_ROUTE_RESOLVED] = "RDMA_CM_EVENT_ROUTE_RESOLVED",
        [RDMA_CM_EVENT_ROUTE_ERROR] = "RDMA_CM_EVENT_ROUTE_ERROR",
        [RDMA_CM_EVENT_CONNECT_REQUEST] = "RDMA_CM_EVENT_CONNECT_REQUEST",
        [RDMA_CM_EVENT_CONNECT_RESPONSE] = "RDMA_CM_EVENT_CONNECT_RESPONSE",
        [RDMA_CM_EVENT_CONNECT_ERROR] = "RDMA_CM_EVENT_CONNECT_ERROR",
        [RDMA_CM_EVENT_UNREACHABLE] = "RDMA_CM_EVENT_UNREACHABLE",
        [RDMA_CM_EVENT_REJECTED] = "RDMA_CM_EVENT_REJECTED",
        [RDMA_CM_EVENT_ESTABLISHED] = "RDMA_CM_EVENT_ESTABLISHED",
        [RDMA_CM_EVENT_DISCONNECTED] = "RDMA_CM_EVENT_DISCONNECTED",
        [RDMA_CM_EVENT_DEVICE_REMOVAL] = "RDMA_CM_EVENT_DEVICE_REMOVAL",
        [RDMA_CM_EVENT_MULTICAST_JOIN] = "RDMA_CM_EVENT_MULTICAST_JOIN",
        [RDMA_CM_EVENT_MULTICAST_ERROR] = "RDMA_CM_EVENT_MULTICAST_ERROR",
        [RDMA_CM_EVENT_ADDR_CHANGE] = "RDMA_CM_EVENT_ADDR_CHANGE",
        [RDMA_CM_EVENT_TIMEWAIT_EXIT] = "RDMA_CM_EVENT_TIMEWAIT_EXIT",
    };
    return (unsigned)event < sizeof names / sizeof names[0] ? names[event] : "UNKNOWN EVENT";
}
