// Allocation of the board's memory, in units.
#include "verbs-shim/libtca/internal.h"

static bool is_free(const struct tca_context *context, uint32_t first, uint32_t units)
{
    for (uint32_t i = first; i < first + units; i++) {
        if (context->board_units_used[i]) {
            return false;
        }
    }
    return true;
}

static void mark(struct tca_context *context, uint32_t first, uint32_t units, bool used)
{
    for (uint32_t i = first; i < first + units; i++) {
        context->board_units_used[i] = used;
    }
}

bool tca_board_take(struct tca_context *context, uint32_t units, uint32_t *first_out)
{
    for (uint32_t first = 0; units <= TCA_BOARD_SLOTS && first <= TCA_BOARD_SLOTS - units; first++) {
        if (is_free(context, first, units)) {
            mark(context, first, units, true);
            *first_out = first;
            return true;
        }
    }
    return false;
}

void tca_board_give(struct tca_context *context, uint32_t first, uint32_t units)
{
    mark(context, first, units, false);
}
