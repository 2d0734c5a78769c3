// What a communication thread does with its processor: copies inside its rank's memory, and atomics.
#include <string.h>

#include "verbs-shim/acp/internal.h"

// Addresses are checked when a command is made; those of another rank's command are checked here.
static void *bytes_at(struct acpb_process *process, acp_ga_t ga, uint64_t bytes, uint32_t issuer)
{
    const struct acpb_region *region = acpb_region_find(process, ga, bytes);
    if (region == NULL) {
        acpb_fail(process, "rank %u asks for %llu bytes at global address 0x%llx, where no region is registered",
                  issuer, (unsigned long long)bytes, (unsigned long long)ga);
        return NULL;
    }
    return (void *)(uintptr_t)(region->address + acpb_offset_of(ga));
}

static uint64_t changed(const struct acpb_command *command, uint64_t old)
{
    switch ((enum acpb_kind)command->kind) {
    case ACPB_CAS:
        return old == command->compare ? command->value : old;
    case ACPB_SWAP:
        return command->value;
    case ACPB_ADD:
        return old + command->value;
    case ACPB_XOR:
        return old ^ command->value;
    case ACPB_OR:
        return old | command->value;
    case ACPB_AND:
        return old & command->value;
    case ACPB_COPY:
        break;
    }
    return old;
}

// Little-endian words: the first bytes of a 64-bit word are the low ones.
static uint64_t word_change(struct acpb_process *process, const struct acpb_command *command, void *word)
{
    uint64_t old = 0;
    memcpy(&old, word, command->bytes);
    uint64_t value = changed(command, old);
    memcpy(word, &value, command->bytes);
    acpb_pay(process, BACKEND_COST_LOAD_STORE, 2);
    return old;
}

uint64_t acpb_local_run(struct acpb_process *process, const struct acpb_command *command)
{
    void *src = bytes_at(process, command->src, command->bytes, command->issuer);
    if (src == NULL) {
        return 0;
    }
    if (command->kind != ACPB_COPY) {
        return word_change(process, command, src);
    }
    void *dst = bytes_at(process, command->dst, command->bytes, command->issuer);
    if (dst != NULL) {
        memmove(dst, src, command->bytes);
        acpb_pay(process, BACKEND_COST_COPY, command->bytes);
    }
    return 0;
}

void acpb_local_store(struct acpb_process *process, const struct acpb_command *command, uint64_t old)
{
    void *dst = bytes_at(process, command->dst, command->bytes, process->rank);
    if (dst != NULL) {
        memcpy(dst, &old, command->bytes);
        acpb_pay(process, BACKEND_COST_LOAD_STORE, 1);
    }
}
