// The firmware's commands: the function of each command, and the pages of the UAR BAR.
#include <string.h>

#include "models/hca/internal.h"

typedef enum sim_status (*command_fn)(hca_t *hca, struct hca_command *command);

enum sim_status hca_fw_command(hca_t *hca, struct hca_command *command)
{
    static const command_fn functions[HCA_COMMANDS] = {
#define COMMAND(id, name, object, effect, traits, operand) hca_cmd_##name,
#include "models/hca/abi/commands.def"
#undef COMMAND
    };
    return command->id < HCA_COMMANDS ? functions[command->id](hca, command) : SIM_ERR_INVALID;
}

uint64_t hca_fw_command_ps(const hca_t *hca, const struct hca_command *command)
{
    bool moves = command->id == HCA_CMD_QP_MODIFY && (command->qp_modify.mask & HCA_QP_STATE) != 0;
    bool stops = moves && (command->qp_modify.attr.state == HCA_RESET || command->qp_modify.attr.state == HCA_ERROR);
    return stops || command->id == HCA_CMD_QP_DESTROY ? hca->config.command_ps : 0;
}

_Static_assert(HCA_UAR_PAGES == 64, "a bit of uars for each");

bool hca_uar_valid(const hca_t *hca, uint32_t uar)
{
    return uar < HCA_UAR_PAGES && (hca->uars >> uar & 1) != 0;
}

enum sim_status hca_cmd_uar_alloc(hca_t *hca, struct hca_command *command)
{
    if (hca->uars == UINT64_MAX) {
        return SIM_ERR_NO_MEMORY;
    }
    command->number = (uint32_t)__builtin_ctzll(~hca->uars);
    hca->uars |= UINT64_C(1) << command->number;
    return SIM_OK;
}

enum sim_status hca_cmd_uar_free(hca_t *hca, struct hca_command *command)
{
    if (!hca_uar_valid(hca, command->number)) {
        return SIM_ERR_INVALID;
    }
    if (hca->uar_users[command->number] > 0) {
        return SIM_ERR_BUSY; // else its next owner could ring for the queues that name it
    }
    hca->uars &= ~(UINT64_C(1) << command->number);
    memset(hca->blueflame[command->number], 0, sizeof hca->blueflame[command->number]); // a request that never ended
    hca_doorbells_drop(hca, command->number);
    return SIM_OK;
}
