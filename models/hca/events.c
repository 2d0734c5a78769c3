// Event queues: rings in host memory that the HCA writes.
//
// An event queue that seems full has not yet overflowed: the HCA reads its record, and events wait for it. A queue that
// is still full has one entry left, for the event that reports the loss of others: HCA_EVENT_DEVICE_FATAL. No event
// follows it. (A ConnectX notifies its driver through another event queue, and drivers avoid the case with spare
// entries; a process here has one queue.)
#include <stdlib.h>

#include "models/hca/internal.h"

struct hca_held_event {
    struct hca_held_event *next;
    enum hca_event_type type;
    uint32_t object;
};

bool hca_eq_valid(const hca_t *hca, uint32_t eqn)
{
    return eqn >= 1 && eqn <= hca->config.max_eq && hca->eqs[eqn].used;
}

enum sim_status hca_cmd_eq_create(hca_t *hca, struct hca_command *command)
{
    const struct hca_eq_init *init = &command->eq_create;
    if (init->entries < 2 || (init->entries & (init->entries - 1)) != 0 || init->base % sizeof(struct hca_eqe) != 0 ||
        init->record % 8 != 0) {
        return SIM_ERR_INVALID;
    }
    for (uint32_t eqn = 1; eqn <= hca->config.max_eq; eqn++) {
        if (!hca->eqs[eqn].used) {
            hca->eqs[eqn] = (struct hca_eq){.init = *init, .used = true, .generation = hca->eqs[eqn].generation + 1};
            hca->fence_address = init->base;
            hca->fence_possible = true;
            command->number = eqn;
            return SIM_OK;
        }
    }
    return SIM_ERR_NO_MEMORY;
}

enum sim_status hca_eq_query(const hca_t *hca, uint32_t eqn, struct hca_eq_init *init_out)
{
    if (!hca_eq_valid(hca, eqn)) {
        return SIM_ERR_INVALID;
    }
    *init_out = hca->eqs[eqn].init;
    return SIM_OK;
}

static struct hca_held_event *held_pop(struct hca_eq *eq)
{
    struct hca_held_event *held = eq->held;
    eq->held = held->next;
    return held;
}

static void held_drop(struct hca_eq *eq)
{
    while (eq->held != NULL) {
        free(held_pop(eq));
    }
}

enum sim_status hca_cmd_eq_destroy(hca_t *hca, struct hca_command *command)
{
    if (!hca_eq_valid(hca, command->number)) {
        return SIM_ERR_INVALID;
    }
    struct hca_eq *eq = &hca->eqs[command->number];
    if (eq->users > 0) {
        return SIM_ERR_BUSY;
    }
    held_drop(eq);
    eq->used = false;
    eq->generation++;
    return SIM_OK;
}

// --- raising -------------------------------------------------------------------------------------------------------

// The last entry is reserved.
static bool eq_full(const struct hca_eq *eq)
{
    return eq->producer - eq->consumer >= eq->init.entries - 1;
}

static void event_write(hca_t *hca, struct hca_eq *eq, enum hca_event_type type, uint32_t object)
{
    uint32_t index = eq->producer & (eq->init.entries - 1);
    const struct hca_eqe eqe = {
        .object = object, .type = (uint8_t)type, .owner = (eq->producer & eq->init.entries) == 0};
    eq->producer++;
    hca->counters[HCA_EVENTS_RAISED]++;
    hca_dma_write(hca, eq->init.base + (uint64_t)index * sizeof eqe, &eqe, sizeof eqe);
}

static void eq_overflow(hca_t *hca, struct hca_eq *eq)
{
    hca->counters[HCA_EQ_OVERFLOWS]++;
    while (eq->held != NULL) {
        hca->counters[HCA_EVENTS_LOST]++;
        free(held_pop(eq));
    }
    event_write(hca, eq, HCA_EVENT_DEVICE_FATAL, 0);
    eq->overflown = true;
}

static void record_read(hca_t *hca, struct hca_eq *eq);

static void record_done(hca_t *hca, struct hca_dma_read *read)
{
    struct hca_eq *eq = read->owner;
    if (!eq->used || eq->generation != read->generation) {
        return;
    }
    eq->reading = false;
    if (!read->failed) {
        eq->consumer = read->data[0] | (uint32_t)read->data[1] << 8 | (uint32_t)read->data[2] << 16 |
                       (uint32_t)read->data[3] << 24;
    }
    if (eq_full(eq)) {
        eq_overflow(hca, eq);
        return;
    }
    while (eq->held != NULL && !eq_full(eq)) {
        struct hca_held_event *held = held_pop(eq);
        event_write(hca, eq, held->type, held->object);
        free(held);
    }
    if (eq->held != NULL) {
        record_read(hca, eq);
    }
}

static void record_read(hca_t *hca, struct hca_eq *eq)
{
    eq->reading = true;
    struct hca_dma_read *read =
        hca_dma_read(hca, HCA_DMA_QUEUES, eq->init.record, sizeof(uint64_t), NULL, record_done, eq);
    read->generation = eq->generation;
}

static void event_hold(hca_t *hca, struct hca_eq *eq, enum hca_event_type type, uint32_t object)
{
    struct hca_held_event *held = malloc(sizeof *held);
    if (held == NULL) {
        sim_panic(hca->name, "no memory for an event");
    }
    *held = (struct hca_held_event){.type = type, .object = object};
    if (eq->held == NULL) {
        eq->held = held;
    } else {
        eq->held_last->next = held;
    }
    eq->held_last = held;
    if (!eq->reading) {
        record_read(hca, eq);
    }
}

void hca_event_raise(hca_t *hca, uint32_t eqn, enum hca_event_type type, uint32_t object)
{
    if (!hca_eq_valid(hca, eqn)) {
        return;
    }
    struct hca_eq *eq = &hca->eqs[eqn];
    if (eq->overflown) {
        hca->counters[HCA_EVENTS_LOST]++;
    } else if (eq->held != NULL || eq_full(eq)) {
        event_hold(hca, eq, type, object);
    } else {
        event_write(hca, eq, type, object);
    }
}

void hca_event_raise_all(hca_t *hca, enum hca_event_type type)
{
    for (uint32_t eqn = 1; eqn <= hca->config.max_eq; eqn++) {
        hca_event_raise(hca, eqn, type, 0);
    }
}

void hca_events_fini(hca_t *hca)
{
    for (uint32_t eqn = 1; eqn <= hca->config.max_eq; eqn++) {
        held_drop(&hca->eqs[eqn]);
    }
}
