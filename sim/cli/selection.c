#include "sim/cli/selection.h"

#include <infiniband/verbs.h>
#include <stdlib.h>
#include <string.h>

#include "sim/cli/cli.h"
#include "sim/cli/options.h"
#include "sim/scenario/units.h"
#include "verbs-shim/ibverbs/opcodes.h"

enum { WORDS_MAX = 9, TEXT_MAX = 256 }; // more words than one of each kind needs

// all, none: of enum hca_opcode_trait; others: bits of enum observe_opcode
static const struct kind {
    const char *name;
    unsigned all, none;
    uint32_t others;
} kinds[] = {
    {"send", HCA_HAS_DATA, HCA_HAS_REMOTE, 0},
    {"write", HCA_HAS_DATA | HCA_HAS_REMOTE, 0, 1u << OBSERVE_OPCODE_FOUND},
    {"read", HCA_HAS_RESPONSE, HCA_HAS_ATOMIC, 0},
    {"dma", UINT32_MAX, 0, 1u << OBSERVE_OPCODE_DMA},
    {"atomic", HCA_HAS_ATOMIC, 0, 0},
};

static uint32_t opcodes_of(const struct kind *kind)
{
    uint32_t opcodes = kind->others;
    for (unsigned i = 0; i < 32; i++) {
        const struct ibverbs_opcode *known = ibverbs_opcode((enum ibv_wr_opcode)i);
        bool is = known != NULL && (known->traits & kind->all) == kind->all && (known->traits & kind->none) == 0;
        opcodes |= is ? UINT32_C(1) << i : 0;
    }
    return opcodes;
}

static const struct kind *kind_find(const char *word)
{
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (strcasecmp(word, kinds[i].name) == 0) {
            return &kinds[i];
        }
    }
    return NULL;
}

bool cli_selection_is(const char *word)
{
    char first[16];
    snprintf(first, sizeof first, "%.*s", (int)strcspn(word, " "), word);
    // Programs may have such names ("send"), but no size or number follows these.
    return word[0] == '\0' || word[0] == '#' || strcmp(first, "qp") == 0 || kind_find(first) != NULL ||
           (word[0] >= '0' && word[0] <= '9' && strstr(word, "B") != NULL);
}

static bool number_read(const char *word, uint64_t *number_out)
{
    char *end;
    return cli_number_read(word, &end, number_out) && *end == '\0' && *number_out != 0;
}

// "100" or "1..40".
static bool numbers_read(const char *word, struct observe_selection *select)
{
    char *end;
    uint64_t first, last = 0;
    bool good = cli_number_read(word, &end, &first) && first != 0 &&
                (*end == '\0' || (strncmp(end, "..", 2) == 0 && number_read(end + 2, &last) && last >= first &&
                                  last - first < OBSERVE_EXPLAINED_MAX));
    if (good) {
        select->number = first;
        select->last = last;
    }
    return good;
}

// Takes one word or two. Returns how many; 0: they select nothing.
static unsigned words_take(char *const *words, unsigned count, struct observe_selection *select)
{
    char size[64], why[SCN_WHY_MAX];
    uint64_t number;
    const struct kind *kind = kind_find(words[0]);
    if (kind != NULL) {
        select->opcodes = opcodes_of(kind);
        return 1;
    }
    if (words[0][0] == '#' && numbers_read(words[0] + 1, select)) {
        return 1;
    }
    if (strcmp(words[0], "qp") == 0 && count > 1 && number_read(words[1], &number) && number <= UINT32_MAX) {
        select->qp = (uint32_t)number;
        return 2;
    }
    snprintf(size, sizeof size, "%s %s", words[0], count > 1 ? words[1] : "");
    return count > 1 && scn_quantity_parse(SCN_QUANTITY_SIZE, size, &select->bytes, why) ? 2 : 0;
}

// The same property was selected before, so the words contradict each other.
static bool is_again(const struct observe_selection *before, const struct observe_selection *now)
{
    return (before->opcodes != UINT32_MAX && before->opcodes != now->opcodes) ||
           (before->bytes != OBSERVE_ANY && before->bytes != now->bytes) ||
           (before->qp != 0 && before->qp != now->qp) ||
           (before->number != 0 && (before->number != now->number || before->last != now->last));
}

bool cli_selection_parse(const char *text, struct observe_selection *select_out)
{
    char copy[TEXT_MAX], *words[WORDS_MAX], *rest;
    unsigned count = 0, at = 0;
    *select_out = (struct observe_selection){.opcodes = UINT32_MAX, .bytes = OBSERVE_ANY};
    snprintf(copy, sizeof copy, "%s", text);
    for (char *word = strtok_r(copy, " ", &rest); word != NULL && count < WORDS_MAX;
         word = strtok_r(NULL, " ", &rest)) {
        words[count++] = word;
    }
    if (count == WORDS_MAX) {
        cli_error("--explain '%s': too many words", text);
        return false;
    }
    while (at < count) {
        struct observe_selection before = *select_out;
        unsigned taken = words_take(words + at, count - at, select_out);
        if (taken != 0 && is_again(&before, select_out)) {
            cli_error("--explain '%s': at most one kind, one size, one queue pair and one number", text);
            return false;
        }
        if (taken == 0) {
            cli_error(
                "--explain '%s': '%s' is not a kind (send, write, read, atomic, dma), a size (4 KiB), a queue pair "
                "(qp 5), a number (#100) or %u numbers at most (#1..%u)",
                text, words[at], OBSERVE_EXPLAINED_MAX, OBSERVE_EXPLAINED_MAX);
            return false;
        }
        at += taken;
    }
    return true;
}
