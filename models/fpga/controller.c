// A descriptor controller and the module before it: words become descriptors, descriptors wait, completion signals
// become status words and cycle counts.
#include "models/fpga/internal.h"

static const struct sim_trace_field MOVED[] = {{"id", SIM_TRACE_DECIMAL, NULL}, {"bytes", SIM_TRACE_DECIMAL, NULL}};
static const struct sim_trace_field ENDED[] = {{"id", SIM_TRACE_DECIMAL, NULL}, {"error", SIM_TRACE_DECIMAL, NULL}};
static const struct sim_trace_point ACCEPTED[FPGA_DIRECTIONS] = {
    [FPGA_READ] = {"read_descriptor", MOVED, 2, "a descriptor was written into the read controller"},
    [FPGA_WRITE] = {"write_descriptor", MOVED, 2, "a descriptor was written into the write controller"},
};
static const struct sim_trace_point SIGNALLED[FPGA_DIRECTIONS] = {
    [FPGA_READ] = {"read_signalled", ENDED, 2, "the completion signal of a read"},
    [FPGA_WRITE] = {"write_signalled", ENDED, 2, "the completion signal of a write"},
};
static const struct sim_trace_point REFUSED = {"descriptor_refused", MOVED, 2,
                                               "a descriptor came to a controller that was full"};

static void signal_event_run(void *ctx);

void fpga_controller_init(fpga_t *fpga, enum fpga_direction direction)
{
    struct fpga_controller *controller = &fpga->controllers[direction];
    controller->fpga = fpga;
    controller->direction = direction;
    fpga_fifo_init(&controller->signals);
    sim_event_init(&controller->signal_event, signal_event_run, controller);
}

void fpga_controller_fini(struct fpga_controller *controller)
{
    sim_event_cancel(controller->fpga->sim, &controller->signal_event);
    fpga_fifo_fini(&controller->signals);
}

// --- arrival ---------------------------------------------------------------------------------------------------------

static struct fpga_entry entry_decode(const struct fpga_controller *controller)
{
    const uint32_t *words = controller->words;
    uint64_t source = (uint64_t)words[1] << 32 | words[0];
    uint64_t destination = (uint64_t)words[3] << 32 | words[2];
    bool read = controller->direction == FPGA_READ;
    return (struct fpga_entry){
        .used = true,
        .id = (uint8_t)(words[4] >> FPGA_ID_SHIFT),
        .remote = read ? source : destination,
        .local = read ? destination : source,
        .bytes = (words[4] & FPGA_LENGTH_DWORDS) * 4,
    };
}

static enum fpga_error entry_check(const fpga_t *fpga, const struct fpga_entry *entry)
{
    uint64_t memory_bytes = fpga->config.memory_bytes;
    if (entry->bytes == 0) {
        return FPGA_ERROR_LENGTH;
    }
    if ((entry->local | entry->remote) & 3) {
        return FPGA_ERROR_MISALIGNED;
    }
    bool inside = entry->local < memory_bytes && entry->bytes <= memory_bytes - entry->local;
    return inside && entry->bytes - 1 <= UINT64_MAX - entry->remote ? FPGA_OK : FPGA_ERROR_RANGE;
}

static uint32_t free_slot(const struct fpga_controller *controller)
{
    uint32_t slot = 0;
    while (controller->entries[slot].used) {
        slot++;
    }
    return slot;
}

static void descriptor_accept(struct fpga_controller *controller, const struct fpga_entry *descriptor)
{
    fpga_t *fpga = controller->fpga;
    uint32_t slot = free_slot(controller);
    struct fpga_entry *entry = &controller->entries[slot];
    *entry = *descriptor;
    entry->accepted_ps = fpga_edge_ps(fpga);
    entry->error = entry_check(fpga, entry);
    controller->status[entry->id] = FPGA_STATUS_BUSY | entry->id;
    controller->waiting[(controller->waiting_head + controller->waiting_count++) % FPGA_DESCRIPTORS] = (uint8_t)slot;
    controller->used++;
    if (controller->used > fpga->counters[FPGA_QUEUE_PEAK]) {
        fpga->counters[FPGA_QUEUE_PEAK] = controller->used;
    }
    sim_trace(fpga->sim, fpga->name, &ACCEPTED[controller->direction], (const uint64_t[]){entry->id, entry->bytes});
    fpga_transmit_kick(fpga);
}

static void descriptor_refuse(struct fpga_controller *controller, const struct fpga_entry *descriptor)
{
    fpga_t *fpga = controller->fpga;
    fpga->counters[FPGA_REFUSED_DESCRIPTORS]++;
    controller->status[descriptor->id] =
        FPGA_STATUS_DONE | FPGA_ERROR_QUEUE_FULL << FPGA_STATUS_ERROR_SHIFT | descriptor->id;
    controller->count[descriptor->id] = 0;
    sim_trace(fpga->sim, fpga->name, &REFUSED, (const uint64_t[]){descriptor->id, descriptor->bytes});
}

void fpga_controller_word(struct fpga_controller *controller, uint32_t word)
{
    controller->words[controller->word_count++] = word;
    if (controller->word_count < FPGA_DESCRIPTOR_WORDS) {
        return;
    }
    controller->word_count = 0;
    const struct fpga_entry descriptor = entry_decode(controller);
    if (controller->used < FPGA_DESCRIPTORS) {
        descriptor_accept(controller, &descriptor);
    } else {
        descriptor_refuse(controller, &descriptor);
    }
}

// --- progress --------------------------------------------------------------------------------------------------------

static uint32_t start_cycles(const struct fpga_controller *controller)
{
    const struct fpga_config *config = &controller->fpga->config;
    return controller->direction == FPGA_READ ? config->read_start_cycles : config->write_start_cycles;
}

static uint32_t finish_cycles(const struct fpga_controller *controller)
{
    const struct fpga_config *config = &controller->fpga->config;
    return controller->direction == FPGA_READ ? config->read_finish_cycles : config->write_finish_cycles;
}

struct fpga_entry *fpga_controller_front(struct fpga_controller *controller, uint64_t *due_ps_out)
{
    fpga_t *fpga = controller->fpga;
    *due_ps_out = SIM_NEVER_PS;
    while (controller->waiting_count > 0) {
        struct fpga_entry *entry = &controller->entries[controller->waiting[controller->waiting_head]];
        uint64_t start_ps = entry->accepted_ps + fpga_cycles_ps(fpga, start_cycles(controller));
        if (start_ps > sim_now_ps(fpga->sim)) {
            *due_ps_out = start_ps;
            return NULL;
        }
        if (entry->error == FPGA_OK) {
            return entry;
        }
        fpga->counters[FPGA_BAD_DESCRIPTORS]++;
        fpga_controller_front_issued(controller);
        fpga_controller_end(controller, entry);
    }
    return NULL;
}

void fpga_controller_front_issued(struct fpga_controller *controller)
{
    controller->waiting_head = (controller->waiting_head + 1) % FPGA_DESCRIPTORS;
    controller->waiting_count--;
}

bool fpga_controller_is_front(const struct fpga_controller *controller, const struct fpga_entry *entry)
{
    return controller->waiting_count > 0 &&
           &controller->entries[controller->waiting[controller->waiting_head]] == entry;
}

// --- completion ------------------------------------------------------------------------------------------------------

void fpga_controller_end(struct fpga_controller *controller, struct fpga_entry *entry)
{
    fpga_t *fpga = controller->fpga;
    uint64_t due_ps = fpga_edge_ps(fpga) + fpga_cycles_ps(fpga, finish_cycles(controller));
    fpga_fifo_push(&controller->signals,
                   &(struct fpga_due){.due_ps = due_ps, .entry = (uint32_t)(entry - controller->entries)});
    if (!sim_event_pending(&controller->signal_event)) {
        sim_event_schedule_at(fpga->sim, &controller->signal_event, due_ps);
    }
}

static void signal_event_run(void *ctx)
{
    static const struct sim_work signalling = {"FPGA", "descriptor controller", false};
    struct fpga_controller *controller = ctx;
    fpga_t *fpga = controller->fpga;
    sim_cause_label(fpga->sim, fpga->name, &signalling);
    struct fpga_entry *entry = &controller->entries[fpga_fifo_pop(&controller->signals).entry];
    const struct fpga_due *next = fpga_fifo_front(&controller->signals);
    if (next != NULL) {
        sim_event_schedule_at(fpga->sim, &controller->signal_event, next->due_ps);
    }
    uint64_t cycles = (sim_now_ps(fpga->sim) - entry->accepted_ps) / fpga->config.clock_ps;
    controller->status[entry->id] = FPGA_STATUS_DONE | (uint32_t)entry->error << FPGA_STATUS_ERROR_SHIFT | entry->id;
    controller->count[entry->id] = (uint32_t)cycles;
    fpga->counters[controller->direction == FPGA_READ ? FPGA_READS_DONE : FPGA_WRITES_DONE]++;
    sim_trace(fpga->sim, fpga->name, &SIGNALLED[controller->direction], (const uint64_t[]){entry->id, entry->error});
    entry->used = false;
    controller->used--;
    sim_progress(fpga->sim);
}
