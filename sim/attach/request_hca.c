// The HCA driver's requests. An object is named by a number that all processes of the node share, so it is searched
// among the process's own objects. Addresses must be in memory of the process.
#include <errno.h>
#include <stdlib.h>

#include "models/hca/abi/hca_abi.h"
#include "sim/attach/internal.h"

static int hca_command(struct attach_thread *thread, struct hca_command *command)
{
    return thread->backend.ops.hca_command(&thread->backend, command);
}

static bool has(const struct attach_thread *thread, enum attach_object_kind kind, uint64_t number)
{
    return attach_object_find(thread->process, kind, 0, number) != NULL;
}

static bool ring_owned(const struct attach_thread *thread, uint64_t base, uint64_t entries, uint64_t entry_bytes)
{
    return entries == 0 || attach_memory_owned(thread->process, base, entries * entry_bytes);
}

static bool record_owned(const struct attach_thread *thread, uint64_t record)
{
    return attach_memory_owned(thread->process, record, sizeof(uint64_t));
}

// --- objects --------------------------------------------------------------------------------------------------------

static const struct {
    enum attach_object_kind kind;
    enum hca_command_id destroy;
} objects[HCA_OBJECTS] = {
    [HCA_OBJECT_DEVICE] = {OBJECT_KINDS, HCA_COMMANDS},   [HCA_OBJECT_UAR] = {OBJECT_UAR, HCA_CMD_UAR_FREE},
    [HCA_OBJECT_PD] = {OBJECT_PD, HCA_CMD_PD_DESTROY},    [HCA_OBJECT_XRCD] = {OBJECT_XRCD, HCA_CMD_XRCD_DESTROY},
    [HCA_OBJECT_MR] = {OBJECT_MR, HCA_CMD_MR_DEREGISTER}, [HCA_OBJECT_EQ] = {OBJECT_EQ, HCA_CMD_EQ_DESTROY},
    [HCA_OBJECT_CQ] = {OBJECT_CQ, HCA_CMD_CQ_DESTROY},    [HCA_OBJECT_SRQ] = {OBJECT_SRQ, HCA_CMD_SRQ_DESTROY},
    [HCA_OBJECT_QP] = {OBJECT_QP, HCA_CMD_QP_DESTROY},
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
    return has(thread, OBJECT_EQ, init->eqn) && record_owned(thread, init->record) &&
           ring_owned(thread, init->base, init->entries, sizeof(struct hca_cqe));
}

static bool cq_resize_allowed(const struct attach_thread *thread, const struct hca_command *command)
{
    return ring_owned(thread, command->cq_resize.base, command->cq_resize.entries, sizeof(struct hca_cqe));
}

static bool srq_create_allowed(const struct attach_thread *thread, const struct hca_command *command)
{
    const struct hca_srq_init *init = &command->srq_create;
    bool xrc =
        init->xrcdn == HCA_NO_XRCD || (has(thread, OBJECT_XRCD, init->xrcdn) && has(thread, OBJECT_CQ, init->cqn));
    return has(thread, OBJECT_EQ, init->eqn) && has(thread, OBJECT_PD, init->pdn) && xrc &&
           record_owned(thread, init->record) && ring_owned(thread, init->base, init->entries, init->stride_bytes);
}

static bool qp_objects_owned(const struct attach_thread *thread, const struct hca_qp_init *init)
{
    bool own =
        has(thread, OBJECT_EQ, init->eqn) && has(thread, OBJECT_PD, init->pdn) && has(thread, OBJECT_UAR, init->uar);
    if (init->type == HCA_XRC_TARGET) {
        return own && has(thread, OBJECT_XRCD, init->xrcdn);
    }
    return own && has(thread, OBJECT_CQ, init->send_cqn) && has(thread, OBJECT_CQ, init->receive_cqn) &&
           (init->srqn == HCA_NO_SRQ || has(thread, OBJECT_SRQ, init->srqn));
}

static bool qp_create_allowed(const struct attach_thread *thread, const struct hca_command *command)
{
    const struct hca_qp_init *init = &command->qp_create;
    bool receives = init->srqn == HCA_NO_SRQ && init->receive_entries != 0 && init->type < HCA_XRC_INITIATOR;
    bool sends = init->type != HCA_XRC_TARGET;
    return (unsigned)init->type < HCA_QP_TYPES && qp_objects_owned(thread, init) &&
           (!sends || ring_owned(thread, init->send_base, init->send_entries, init->send_stride_bytes)) &&
           (!receives || (record_owned(thread, init->receive_record) &&
                          ring_owned(thread, init->receive_base, init->receive_entries, init->receive_stride_bytes)));
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
    if (!plat_process_memory_exists(process->pid, init->iova, init->bytes, (init->access & HCA_LOCAL_WRITE) != 0)) {
        return -EFAULT;
    }
    struct attach_object object = {.kind = OBJECT_MR,
                                   .va = init->iova,
                                   .va_bytes = init->bytes,
                                   .bytes = host_memory_page_count(init->iova, init->bytes)};
    object.pages = malloc(object.bytes * sizeof *object.pages);
    if (object.pages == NULL) {
        return -ENOMEM;
    }
    if (host_memory_pin(thread->backend.memory, &process->owner, init->iova, init->bytes, object.pages) != SIM_OK) {
        free(object.pages);
        return -ENOMEM;
    }
    init->pages = object.pages;
    init->page_bytes = 4096;
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

static int64_t region_create(struct attach_thread *thread, struct hca_command *command)
{
    const struct hca_mr_init *init = &command->mr_register;
    if (!has(thread, OBJECT_PD, init->pdn) || init->bytes == 0 || init->iova + init->bytes < init->iova) {
        return -EINVAL;
    }
    if (init->bus_address == 0) {
        return hca_is_gone(thread->backend.hca) ? -EIO : region_of_program(thread, command);
    }
    if (!attach_memory_owned(thread->process, init->bus_address, init->bytes)) {
        return -EFAULT;
    }
    int status = hca_command(thread, command);
    const struct attach_object object = {.kind = OBJECT_MR, .number = command->number};
    return status != 0 ? status : attach_object_keep(thread, &object);
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

static int64_t command_do(struct attach_thread *thread, struct hca_command *command)
{
    static bool (*const allowed[HCA_COMMANDS])(const struct attach_thread *, const struct hca_command *) = {
        [HCA_CMD_EQ_CREATE] = eq_create_allowed, [HCA_CMD_CQ_CREATE] = cq_create_allowed,
        [HCA_CMD_CQ_RESIZE] = cq_resize_allowed, [HCA_CMD_SRQ_CREATE] = srq_create_allowed,
        [HCA_CMD_QP_CREATE] = qp_create_allowed, [HCA_CMD_QP_MODIFY] = qp_modify_allowed,
    };
    const struct hca_command_info *info = hca_command_info(command->id);
    enum attach_object_kind kind = objects[info->object].kind;
    if (info->effect == HCA_DESTROYS) {
        return attach_object_release(thread, kind, 0, command->number);
    }
    if (command->id == HCA_CMD_MR_REGISTER) {
        return region_create(thread, command);
    }
    bool own = info->effect == HCA_CREATES || info->object == HCA_OBJECT_DEVICE || has(thread, kind, command->number);
    if (!own || (allowed[command->id] != NULL && !allowed[command->id](thread, command))) {
        return -EINVAL;
    }
    int status = hca_command(thread, command);
    if (status == 0 && command->id == HCA_CMD_EQ_CREATE) {
        events_note(thread->process, &command->eq_create);
    }
    const struct attach_object object = {.kind = kind, .number = command->number};
    return status == 0 && info->effect == HCA_CREATES ? attach_object_keep(thread, &object) : status;
}

int64_t attach_serve_hca_command(struct attach_thread *thread, const struct attach_args_hca_command *args,
                                 struct attach_reply_hca_command *reply)
{
    reply->command = args->command;
    return command_do(thread, &reply->command);
}
