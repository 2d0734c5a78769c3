// The HCA driver's requests. An object is named by a number that all processes of the node share, so it is searched
// among the process's own objects. Addresses must be in memory of the process.
#include <errno.h>
#include <stdlib.h>

#include "models/hca/abi/hca_abi.h"
#include "sim/attach/internal.h"

enum { PAGE_BYTES = 4096 };

static int hca_command(struct attach_thread *thread, struct hca_command *command)
{
    return thread->backend.ops.hca_command(&thread->backend, command);
}

static bool has(const struct attach_thread *thread, enum attach_object_kind kind, uint64_t number)
{
    return attach_object_find(thread->process, kind, 0, number) != NULL;
}

// --- objects --------------------------------------------------------------------------------------------------------

static const struct {
    enum attach_object_kind kind;
    enum hca_command_id destroy;
} objects[HCA_OBJECTS] = {
    [HCA_OBJECT_DEVICE] = {OBJECT_KINDS, HCA_COMMANDS},
#define COMMAND(ID, end) [HCA_OBJECT_##ID] = {OBJECT_##ID, HCA_CMD_##end},
#define REQUEST(ID, end)
#define OBJECT(ID, title, by, end, waits) by(ID, end)
#include "sim/attach/objects.def"
#undef OBJECT
#undef REQUEST
#undef COMMAND
};

int attach_hca_object_destroy(struct attach_thread *thread, const struct attach_object *object)
{
    struct hca_command command = {.id = HCA_COMMANDS, .number = (uint32_t)object->number};
    for (unsigned i = 0; i < HCA_OBJECTS; i++) {
        command.id = objects[i].kind == object->kind ? objects[i].destroy : command.id;
    }
    int status = hca_command(thread, &command);
    if (status == 0 && object->pages != NULL) { // pages of a region
        thread->process->open_regions -= object->open;
        host_memory_unpin(thread->backend.memory, object->pages, object->bytes);
        free(object->pages);
    }
    return status;
}

// --- checks of commands ---------------------------------------------------------------------------------------------

// The memory that a command gives the HCA: rings and records. Each is in memory of the process and stays as long as the
// object. A ring without entries names nothing.
static unsigned ranges_of(const struct hca_command *command, struct attach_bus_range ranges[ATTACH_OBJECT_RANGES_MAX])
{
    const struct hca_eq_init *eq = &command->eq_create;
    const struct hca_cq_init *cq = &command->cq_create;
    const struct hca_srq_init *srq = &command->srq_create;
    const struct hca_qp_init *qp = &command->qp_create;
    const uint64_t record_bytes = sizeof(uint64_t);
    bool sends = qp->type != HCA_XRC_TARGET;
    bool receives = qp->srqn == HCA_NO_SRQ && qp->receive_entries != 0 && qp->type < HCA_XRC_INITIATOR;
    switch (command->id) {
    case HCA_CMD_EQ_CREATE:
        ranges[0] = (struct attach_bus_range){eq->record, record_bytes};
        ranges[1] = (struct attach_bus_range){eq->base, eq->entries * sizeof(struct hca_eqe)};
        return 2;
    case HCA_CMD_CQ_CREATE:
        ranges[0] = (struct attach_bus_range){cq->record, record_bytes};
        ranges[1] = (struct attach_bus_range){cq->base, cq->entries * sizeof(struct hca_cqe)};
        return 2;
    case HCA_CMD_CQ_RESIZE:
        ranges[0] =
            (struct attach_bus_range){command->cq_resize.base, command->cq_resize.entries * sizeof(struct hca_cqe)};
        return 1;
    case HCA_CMD_SRQ_CREATE:
        ranges[0] = (struct attach_bus_range){srq->record, record_bytes};
        ranges[1] = (struct attach_bus_range){srq->base, (uint64_t)srq->entries * srq->stride_bytes};
        return 2;
    case HCA_CMD_QP_CREATE:
        ranges[0] =
            (struct attach_bus_range){qp->send_base, sends ? (uint64_t)qp->send_entries * qp->send_stride_bytes : 0};
        ranges[1] = (struct attach_bus_range){qp->receive_record, receives ? record_bytes : 0};
        ranges[2] = (struct attach_bus_range){qp->receive_base,
                                              receives ? (uint64_t)qp->receive_entries * qp->receive_stride_bytes : 0};
        return 3;
    default:
        return 0;
    }
}

// The driver itself writes there when the HCA fails, so it must be memory of the node.
static bool eq_create_allowed(const struct attach_thread *thread, const struct hca_command *command)
{
    const struct hca_eq_init *init = &command->eq_create;
    return attach_pinned_owned(thread->process, init->record, sizeof(uint64_t)) &&
           attach_pinned_owned(thread->process, init->base, init->entries * sizeof(struct hca_eqe));
}

static bool cq_create_allowed(const struct attach_thread *thread, const struct hca_command *command)
{
    const struct hca_cq_init *init = &command->cq_create;
    return has(thread, OBJECT_EQ, init->eqn) && has(thread, OBJECT_UAR, init->uar);
}

static bool srq_create_allowed(const struct attach_thread *thread, const struct hca_command *command)
{
    const struct hca_srq_init *init = &command->srq_create;
    bool xrc =
        init->xrcdn == HCA_NO_XRCD || (has(thread, OBJECT_XRCD, init->xrcdn) && has(thread, OBJECT_CQ, init->cqn));
    return has(thread, OBJECT_EQ, init->eqn) && has(thread, OBJECT_PD, init->pdn) && xrc;
}

static bool qp_create_allowed(const struct attach_thread *thread, const struct hca_command *command)
{
    const struct hca_qp_init *init = &command->qp_create;
    bool own = (unsigned)init->type < HCA_QP_TYPES && has(thread, OBJECT_EQ, init->eqn) &&
               has(thread, OBJECT_PD, init->pdn) && has(thread, OBJECT_UAR, init->uar);
    if (init->type == HCA_XRC_TARGET) {
        return own && has(thread, OBJECT_XRCD, init->xrcdn);
    }
    return own && has(thread, OBJECT_CQ, init->send_cqn) && has(thread, OBJECT_CQ, init->receive_cqn) &&
           (init->srqn == HCA_NO_SRQ || has(thread, OBJECT_SRQ, init->srqn));
}

// The operand names no object and no memory; what it says is checked by the HCA. The ring of a resized CQ: ranges_of.
static bool names_nothing(const struct attach_thread *thread, const struct hca_command *command)
{
    (void)thread;
    (void)command;
    return true;
}

static bool qp_modify_allowed(const struct attach_thread *thread, const struct hca_command *command)
{
    const struct hca_qp_attr *attr = &command->qp_modify.attr;
    (void)thread;
    return (unsigned)attr->state < HCA_QP_STATES && (unsigned)attr->current_state < HCA_QP_STATES;
}

// --- regions --------------------------------------------------------------------------------------------------------

// Registers memory of the program that is not pinned: page by page, with the process as its owner.
static int64_t region_of_program(struct attach_thread *thread, struct hca_command *command)
{
    struct attach_process *process = thread->process;
    struct hca_mr_init *init = &command->mr_register;
    uint64_t address = init->iova + init->displacement;
    if (address + init->bytes < address || init->displacement % PAGE_BYTES != 0) {
        return -EINVAL;
    }
    if (!attach_reach_has(process, address, init->bytes, (init->access & HCA_LOCAL_WRITE) != 0)) {
        return -EFAULT;
    }
    struct attach_object object = {.kind = OBJECT_MR,
                                   .va = address,
                                   .va_bytes = init->bytes,
                                   .bytes = host_memory_page_count(address, init->bytes)};
    object.pages = malloc(object.bytes * sizeof *object.pages);
    if (object.pages == NULL) {
        return -ENOMEM;
    }
    if (host_memory_pin(thread->backend.memory, &process->owner, address, init->bytes, object.pages) != SIM_OK) {
        free(object.pages);
        return -ENOMEM;
    }
    init->pages = object.pages;
    init->page_bytes = PAGE_BYTES;
    enum sim_status status = hca_fw_command(thread->backend.hca, command);
    init->pages = NULL; // the program must not see this address of the simulator
    object.number = command->number;
    if (status != SIM_OK) {
        host_memory_unpin(thread->backend.memory, object.pages, object.bytes);
        free(object.pages);
        return status == SIM_ERR_NO_MEMORY ? -ENOMEM : -EINVAL;
    }
    object.open = (init->access & (HCA_REMOTE_WRITE | HCA_REMOTE_ATOMIC)) != 0;
    process->open_regions += object.open;
    return attach_object_keep(thread, &object);
}

// Carries out a command that creates an object, which names its memory already.
static int64_t object_create(struct attach_thread *thread, struct hca_command *command, struct attach_object *object)
{
    int status = hca_command(thread, command);
    if (status != 0) {
        attach_memory_unname(thread, object);
        return status;
    }
    object->number = command->number;
    return attach_object_keep(thread, object);
}

static int64_t region_create(struct attach_thread *thread, struct hca_command *command)
{
    const struct hca_mr_init *init = &command->mr_register;
    if (!has(thread, OBJECT_PD, init->pdn) || init->bytes == 0 || init->iova + init->bytes < init->iova) {
        return -EINVAL;
    }
    if (init->bus_address == 0) {
        return hca_is_gone(thread->backend.hca) ? -EIO : region_of_program(thread, command);
    }
    struct attach_object object = {.kind = OBJECT_MR};
    const struct attach_bus_range range = {init->bus_address, init->bytes};
    return attach_memory_name(thread->process, &object, &range, 1) ? object_create(thread, command, &object) : -EFAULT;
}

// --- commands -------------------------------------------------------------------------------------------------------

static void events_note(struct attach_process *process, const struct hca_eq_init *init)
{
    uint64_t to = init->base + init->entries * sizeof(struct hca_eqe);
    bool first = process->writes.events_to == 0;
    process->writes.events_from =
        first || init->base < process->writes.events_from ? init->base : process->writes.events_from;
    process->writes.events_to = to > process->writes.events_to ? to : process->writes.events_to;
}

// The CQ names its new ring instead of the old one, which stays until no entry is on its way there. The names change
// before the driver waits: whoever destroys the CQ meanwhile ends the new ring.
static int64_t ring_replace(struct attach_thread *thread, struct hca_command *command)
{
    struct attach_object ring = {.kind = OBJECT_CQ};
    struct attach_bus_range range[ATTACH_OBJECT_RANGES_MAX];
    if (!attach_memory_name(thread->process, &ring, range, ranges_of(command, range)) || ring.name_count != 1) {
        attach_memory_unname(thread, &ring);
        return -EINVAL;
    }
    struct attach_object *cq = attach_object_find(thread->process, OBJECT_CQ, 0, command->number);
    const uint64_t old = cq->names[1], fresh = ring.names[0]; // as ranges_of lists them
    cq->names[1] = fresh;
    int status = hca_command(thread, command); // it is refused at once, or carried out at once and then waited for
    if (status == 0) {
        ring.names[0] = old;
    } else {
        cq->names[1] = old;
    }
    attach_memory_unname(thread, &ring);
    return status;
}

// May the process give this operand? A command with an operand that has no check here is refused.
static bool operand_allowed(const struct attach_thread *thread, const struct hca_command *command)
{
    static bool (*const checks[HCA_COMMANDS])(const struct attach_thread *, const struct hca_command *) = {
        [HCA_CMD_EQ_CREATE] = eq_create_allowed, [HCA_CMD_CQ_CREATE] = cq_create_allowed,
        [HCA_CMD_CQ_RESIZE] = names_nothing,     [HCA_CMD_SRQ_CREATE] = srq_create_allowed,
        [HCA_CMD_SRQ_ARM] = names_nothing,       [HCA_CMD_QP_CREATE] = qp_create_allowed,
        [HCA_CMD_QP_MODIFY] = qp_modify_allowed, [HCA_CMD_GROUP_ATTACH] = names_nothing,
        [HCA_CMD_GROUP_DETACH] = names_nothing,
    };
    static const bool is_free[HCA_COMMANDS] = {
#define COMMAND(id, name, object, effect, traits, operand)                                                             \
    [HCA_CMD_##id] = HCA_##effect == HCA_QUERIES || sizeof(operand) == sizeof(struct hca_no_operand),
#include "models/hca/abi/commands.def"
#undef COMMAND
    };
    return checks[command->id] != NULL ? checks[command->id](thread, command) : is_free[command->id];
}

static int64_t command_do(struct attach_thread *thread, struct hca_command *command)
{
    const struct hca_command_info *info = hca_command_info(command->id);
    struct attach_object object = {.kind = objects[info->object].kind};
    if (info->effect == HCA_DESTROYS) {
        return attach_object_release(thread, object.kind, 0, command->number);
    }
    if (command->id == HCA_CMD_MR_REGISTER) {
        return region_create(thread, command);
    }
    bool creates = info->effect == HCA_CREATES;
    bool own = creates || info->object == HCA_OBJECT_DEVICE || has(thread, object.kind, command->number);
    if (!own || !operand_allowed(thread, command)) {
        return -EINVAL;
    }
    if (command->id == HCA_CMD_CQ_RESIZE) {
        return ring_replace(thread, command);
    }
    if (!creates) {
        return hca_command(thread, command);
    }
    struct attach_bus_range ranges[ATTACH_OBJECT_RANGES_MAX];
    if (!attach_memory_name(thread->process, &object, ranges, ranges_of(command, ranges))) {
        return -EINVAL;
    }
    int64_t status = object_create(thread, command, &object);
    if (status == 0 && command->id == HCA_CMD_EQ_CREATE) {
        events_note(thread->process, &command->eq_create);
    }
    return status;
}

int64_t attach_serve_hca_command(struct attach_thread *thread, const struct attach_args_hca_command *args,
                                 struct attach_reply_hca_command *reply)
{
    reply->command = args->command;
    return command_do(thread, &reply->command);
}
