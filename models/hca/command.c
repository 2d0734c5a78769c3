// The firmware's commands: the function of each command, and the pages of the UAR BAR.
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

_Static_assert(HCA_UAR_PAGES == 64, "a bit of uars for each");

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
    uint64_t page = command->number < HCA_UAR_PAGES ? UINT64_C(1) << command->number : 0;
    if ((hca->uars & page) == 0) {
        return SIM_ERR_INVALID;
    }
    hca->uars &= ~page;
    return SIM_OK;
}
