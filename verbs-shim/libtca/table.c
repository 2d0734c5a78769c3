// The older generation of names: tables of descriptors by index (tca-api.h). An entry is a checked copy. A chain
// becomes a descriptor of the newer generation when it is set on a channel, and is kept until one of its entries
// changes.
#include <stdlib.h>

#include "verbs-shim/libtca/internal.h"
#include "verbs-shim/libtca/tca-api.h"

// Tables of tcaCreateDMADesc count from 0; the table in the board's memory comes after them.
#define TABLE_INTERNAL tcaTables

struct entry {
    bool set;
    struct tca_copy copy;
    tcaDesc *chain;         // the chain that begins here; NULL: it must be built
    uint32_t chain_entries; // entries of that chain
};

struct tca_table {
    uint32_t count;
    struct entry entries[];
};

// Programs can name only tables of tcaCreateDMADesc.
static int named(int tag)
{
    return tag < tcaTables ? tag : -1;
}

void tca_tables_free(struct tca_context *context)
{
    for (unsigned i = 0; i <= TABLE_INTERNAL; i++) {
        free(context->tables[i]);
        context->tables[i] = NULL;
    }
}

static int table_make(struct tca_context *context, const char *call, unsigned index, int count)
{
    struct tca_table *table = calloc(1, sizeof *table + (size_t)count * sizeof table->entries[0]);
    if (table == NULL) {
        return tca_refuse(context, tcaErrorNoMemory, "%s: no memory for a table of %d descriptors", call, count);
    }
    table->count = (uint32_t)count;
    context->tables[index] = table;
    return tcaSuccess;
}

tcaresult tcaCreateDMADesc(int *tag, int n)
{
    struct tca_context *context = tca_context_current();
    unsigned index = 0;
    if (context == NULL) {
        return tcaErrorNotInitialized;
    }
    while (index < tcaTables && context->tables[index] != NULL) {
        index++;
    }
    if (tag == NULL || n < 1 || n > tcaTableEntries) {
        return tca_refuse(context, tcaErrorArgument, "tcaCreateDMADesc: %d descriptors: a table has 1 to %d", n,
                          tcaTableEntries);
    }
    if (index == tcaTables) {
        return tca_refuse(context, tcaErrorNoMemory, "tcaCreateDMADesc: there are %d tables", tcaTables);
    }
    int error = table_make(context, "tcaCreateDMADesc", index, n);
    if (error == tcaSuccess) {
        *tag = (int)index;
    }
    return error;
}

// Drops the chains that contain the entry; they must be built again.
static int chains_forget(struct tca_context *context, const char *call, struct tca_table *table, uint32_t slot)
{
    for (uint32_t first = 0; first <= slot; first++) {
        struct entry *entry = &table->entries[first];
        if (entry->chain != NULL && slot - first < entry->chain_entries) {
            int error = tca_desc_check(context, call, entry->chain);
            if (error != tcaSuccess) {
                return error;
            }
            (void)tcaDescFree(entry->chain);
            entry->chain = NULL;
        }
    }
    return tcaSuccess;
}

tcaresult tcaDMADescInt_Init(void)
{
    struct tca_context *context = tca_context_current();
    if (context == NULL) {
        return tcaErrorNotInitialized;
    }
    struct tca_table *table = context->tables[TABLE_INTERNAL];
    for (uint32_t i = 0; table != NULL && i < table->count; i++) {
        int error = chains_forget(context, "tcaDMADescInt_Init", table, i);
        if (error != tcaSuccess) {
            return error;
        }
        table->entries[i].set = false;
    }
    return table != NULL ? tcaSuccess : table_make(context, "tcaDMADescInt_Init", TABLE_INTERNAL, tcaTableEntries);
}

static int table_find(struct tca_context *context, const char *call, int index, int slot, struct tca_table **table_out)
{
    int error = tcaSuccess;
    if (index == TABLE_INTERNAL && context->tables[TABLE_INTERNAL] == NULL) {
        error = tcaDMADescInt_Init();
    }
    if (error != tcaSuccess) {
        return error;
    }
    *table_out = index >= 0 && index <= TABLE_INTERNAL ? context->tables[index] : NULL;
    if (*table_out == NULL) {
        return tca_refuse(context, tcaErrorArgument, "%s: %d is no table of tcaCreateDMADesc", call, index);
    }
    if (slot < 0 || (uint32_t)slot >= (*table_out)->count) {
        return tca_refuse(context, tcaErrorArgument, "%s: descriptor %d: the table has 0 to %u", call, slot,
                          (*table_out)->count - 1);
    }
    return tcaSuccess;
}

// One side of a copy as a program names it.
struct side {
    const tcaHandle *handle;
    size_t offset;
};

static int entry_set(const char *call, int index, int slot, int *next, struct side dst, struct side src,
                     struct tca_copy *copy, int wait_slot)
{
    struct tca_context *context = tca_context_current();
    struct tca_table *table;
    if (context == NULL) {
        return tcaErrorNotInitialized;
    }
    int error = table_find(context, call, index, slot, &table);
    if (error == tcaSuccess && next == NULL) {
        error = tca_refuse(context, tcaErrorArgument, "%s: next is null", call);
    }
    if (error == tcaSuccess && index == TABLE_INTERNAL) {
        copy->flags |= tcaDMAUseInternal;
    }
    if (error == tcaSuccess) {
        error = tca_copy_resolve(context, call, copy, dst.handle, dst.offset, src.handle, src.offset, wait_slot);
    }
    if (error == tcaSuccess) {
        error = chains_forget(context, call, table, (uint32_t)slot);
    }
    if (error != tcaSuccess) {
        return error;
    }
    table->entries[slot].copy = *copy;
    table->entries[slot].set = true;
    *next = slot + 1;
    return tcaSuccess;
}

tcaresult tcaSetDMADesc_Memcpy(int tag, int slot, int *next, const tcaHandle *dst, size_t dst_offset,
                               const tcaHandle *src, size_t src_offset, size_t size, int flags, int wait_slot,
                               uint32_t wait_tag)
{
    struct tca_copy copy = {.width = size, .count = 1, .flags = flags, .tag = wait_tag};
    return entry_set("tcaSetDMADesc_Memcpy", named(tag), slot, next, (struct side){dst, dst_offset},
                     (struct side){src, src_offset}, &copy, wait_slot);
}

static struct tca_copy rows_of(size_t dst_pitch, size_t src_pitch, size_t width, size_t count, int flags, uint32_t tag)
{
    return (struct tca_copy){.width = width,
                             .count = count,
                             .source_pitch = src_pitch,
                             .destination_pitch = dst_pitch,
                             .flags = flags,
                             .tag = tag};
}

tcaresult tcaSetDMADesc_Memcpy2D(int tag, int slot, int *next, const tcaHandle *dst, size_t dst_offset,
                                 size_t dst_pitch, const tcaHandle *src, size_t src_offset, size_t src_pitch,
                                 size_t width, size_t count, int flags, int wait_slot, uint32_t wait_tag)
{
    struct tca_copy copy = rows_of(dst_pitch, src_pitch, width, count, flags, wait_tag);
    return entry_set("tcaSetDMADesc_Memcpy2D", named(tag), slot, next, (struct side){dst, dst_offset},
                     (struct side){src, src_offset}, &copy, wait_slot);
}

tcaresult tcaSetDMADescInt_Memcpy(int slot, int *next, const tcaHandle *dst, size_t dst_offset, const tcaHandle *src,
                                  size_t src_offset, size_t size, int flags, int wait_slot, uint32_t wait_tag)
{
    struct tca_copy copy = {.width = size, .count = 1, .flags = flags, .tag = wait_tag};
    return entry_set("tcaSetDMADescInt_Memcpy", TABLE_INTERNAL, slot, next, (struct side){dst, dst_offset},
                     (struct side){src, src_offset}, &copy, wait_slot);
}

tcaresult tcaSetDMADescInt_Memcpy2D(int slot, int *next, const tcaHandle *dst, size_t dst_offset, size_t dst_pitch,
                                    const tcaHandle *src, size_t src_offset, size_t src_pitch, size_t width,
                                    size_t count, int flags, int wait_slot, uint32_t wait_tag)
{
    struct tca_copy copy = rows_of(dst_pitch, src_pitch, width, count, flags, wait_tag);
    return entry_set("tcaSetDMADescInt_Memcpy2D", TABLE_INTERNAL, slot, next, (struct side){dst, dst_offset},
                     (struct side){src, src_offset}, &copy, wait_slot);
}

// --- chains --------------------------------------------------------------------------------------------------------

// Takes every entry from the first one to the first without tcaDMAContinue.
static int chain_build(struct tca_context *context, const char *call, struct tca_table *table, uint32_t first)
{
    struct entry *begin = &table->entries[first];
    tcaDesc *desc = tcaDescNew();
    int error = desc != NULL ? tcaSuccess : tcaErrorNoMemory;
    uint32_t count = 0;
    for (bool more = true; more && error == tcaSuccess; count++) {
        const struct entry *entry = begin + count;
        if (first + count == table->count || !entry->set) {
            error = count == 0
                        ? tca_refuse(context, tcaErrorNotSet, "%s: descriptor %u is not set", call, first)
                        : tca_refuse(context, tcaErrorNotSet,
                                     "%s: the chain from descriptor %u goes on to descriptor %u, which is not set",
                                     call, first, first + count);
            break;
        }
        error = tca_desc_add(desc, call, &entry->copy);
        more = (entry->copy.flags & tcaDMAContinue) != 0;
    }
    if (error != tcaSuccess) {
        if (desc != NULL) {
            (void)tcaDescFree(desc);
        }
        return error;
    }
    begin->chain = desc;
    begin->chain_entries = count;
    return tcaSuccess;
}

static int chain_set(const char *call, int channel, int index, int first)
{
    struct tca_context *context = tca_context_current();
    struct tca_table *table;
    if (context == NULL) {
        return tcaErrorNotInitialized;
    }
    int error = table_find(context, call, index, first, &table);
    if (error == tcaSuccess && table->entries[first].chain == NULL) {
        error = chain_build(context, call, table, (uint32_t)first);
    }
    return error == tcaSuccess ? tca_desc_set(context, call, table->entries[first].chain, channel) : error;
}

tcaresult tcaSetDMAChain(int channel, int tag)
{
    return chain_set("tcaSetDMAChain", channel, named(tag), 0);
}

tcaresult tcaSetDMAChainInt(int channel, int first)
{
    return chain_set("tcaSetDMAChainInt", channel, TABLE_INTERNAL, first);
}
