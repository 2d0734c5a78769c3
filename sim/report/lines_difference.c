// The difference of two texts by lines: equal beginnings and ends are removed, and the rest is aligned by its longest
// common subsequence. If the rest is too large for a table, all of it counts as replaced.
#include "sim/report/lines.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "sim/kernel/status.h"

enum { CONTEXT = 3, TABLE_CELLS_MAX = 1 << 22 };

struct side {
    struct lines_text *lines;
    size_t count;
    bool ended; // by a newline
};

enum kind { KIND_BOTH, KIND_EXPECTED, KIND_PRINTED };

struct edit {
    enum kind kind;
    size_t expected, printed; // numbers of lines, from 0
};

struct edits {
    struct edit *items;
    size_t count;
};

static void *allocate(size_t count, size_t size)
{
    void *memory = calloc(count + 1, size);
    if (memory == NULL) {
        sim_panic("report", "out of memory for a difference");
    }
    return memory;
}

static struct side side_make(struct lines_text text)
{
    struct side side = {.ended = text.length == 0 || text.bytes[text.length - 1] == '\n'};
    struct lines_text rest = text, line;
    for (size_t i = 0; i < text.length; i++) {
        side.count += text.bytes[i] == '\n';
    }
    side.lines = allocate(side.count + 1, sizeof *side.lines);
    for (side.count = 0; lines_next(&rest, &line); side.count++) {
        side.lines[side.count] = line;
    }
    return side;
}

// A last line without a newline differs from the same line with one.
static bool is_same(const struct side *expected, size_t i, const struct side *printed, size_t k)
{
    const struct lines_text *a = &expected->lines[i], *b = &printed->lines[k];
    bool a_ended = expected->ended || i + 1 < expected->count, b_ended = printed->ended || k + 1 < printed->count;
    return a->length == b->length && a_ended == b_ended && memcmp(a->bytes, b->bytes, a->length) == 0;
}

static void edit_add(struct edits *edits, enum kind kind, size_t expected, size_t printed)
{
    edits->items[edits->count++] = (struct edit){kind, expected, printed};
}

// Aligns the lines [first, first + rows) of one side with [first, first + columns) of the other.
static void middle_add(struct edits *edits, const struct side *expected, const struct side *printed, size_t first,
                       size_t rows, size_t columns)
{
    size_t i = 0, k = 0, width = columns + 1;
    bool fits = rows < TABLE_CELLS_MAX && columns < TABLE_CELLS_MAX && (rows + 1) * width <= TABLE_CELLS_MAX;
    // longest[i][k]: length of the common subsequence from line i and line k on
    uint32_t *longest = allocate(fits ? (rows + 1) * width : 0, sizeof *longest);
    for (size_t r = fits ? rows : 0; r-- > 0;) {
        for (size_t c = columns; c-- > 0;) {
            uint32_t down = longest[(r + 1) * width + c], right = longest[r * width + c + 1];
            longest[r * width + c] = is_same(expected, first + r, printed, first + c)
                                         ? longest[(r + 1) * width + c + 1] + 1
                                     : down > right ? down
                                                    : right;
        }
    }
    while (i < rows || k < columns) {
        bool both = i < rows && k < columns;
        if (fits && both && is_same(expected, first + i, printed, first + k)) {
            edit_add(edits, KIND_BOTH, first + i++, first + k++);
        } else if (i < rows && (!both || !fits || longest[(i + 1) * width + k] >= longest[i * width + k + 1])) {
            edit_add(edits, KIND_EXPECTED, first + i, first + k);
            i++;
        } else {
            edit_add(edits, KIND_PRINTED, first + i, first + k);
            k++;
        }
    }
    free(longest);
}

static struct edits edits_make(const struct side *expected, const struct side *printed)
{
    struct edits edits = {.items = allocate(expected->count + printed->count, sizeof *edits.items)};
    size_t least = expected->count < printed->count ? expected->count : printed->count, head = 0, tail = 0;
    while (head < least && is_same(expected, head, printed, head)) {
        edit_add(&edits, KIND_BOTH, head, head);
        head++;
    }
    while (tail < least - head && is_same(expected, expected->count - tail - 1, printed, printed->count - tail - 1)) {
        tail++;
    }
    middle_add(&edits, expected, printed, head, expected->count - head - tail, printed->count - head - tail);
    for (; tail > 0; tail--) {
        edit_add(&edits, KIND_BOTH, expected->count - tail, printed->count - tail);
    }
    return edits;
}

static void line_write(FILE *out, const struct side *expected, const struct side *printed, const struct edit *edit)
{
    static const char marks[] = {[KIND_BOTH] = ' ', [KIND_EXPECTED] = '-', [KIND_PRINTED] = '+'};
    const struct side *side = edit->kind == KIND_PRINTED ? printed : expected;
    size_t number = edit->kind == KIND_PRINTED ? edit->printed : edit->expected;
    fputc(marks[edit->kind], out);
    lines_shown_write(out, side->lines[number]);
    fputs(!side->ended && number + 1 == side->count ? "\n\\ No newline at end of file\n" : "\n", out);
}

// Finds the first change at or after `from`, with the lines around it, up to where no other is near. Returns its end.
static size_t hunk_find(const struct edits *edits, size_t from, size_t *begin_out)
{
    size_t i = from, last;
    while (i < edits->count && edits->items[i].kind == KIND_BOTH) {
        i++;
    }
    *begin_out = i - from > CONTEXT ? i - CONTEXT : from;
    for (last = i; i < edits->count && i <= last + 2 * CONTEXT; i++) {
        last = edits->items[i].kind != KIND_BOTH ? i : last;
    }
    size_t end = last + CONTEXT + 1;
    return *begin_out == edits->count || last == edits->count ? edits->count : end < edits->count ? end : edits->count;
}

static void hunk_head_write(FILE *out, const struct edits *edits, size_t begin, size_t end)
{
    size_t expected = 0, printed = 0;
    for (size_t i = begin; i < end; i++) {
        expected += edits->items[i].kind != KIND_PRINTED;
        printed += edits->items[i].kind != KIND_EXPECTED;
    }
    const struct edit *first = &edits->items[begin];
    fprintf(out, "@@ -%zu,%zu +%zu,%zu @@\n", first->expected + (expected > 0), expected,
            first->printed + (printed > 0), printed);
}

static bool is_change(const struct edits *edits, size_t begin, size_t end)
{
    bool change = false;
    for (size_t i = begin; i < end; i++) {
        change = change || edits->items[i].kind != KIND_BOTH;
    }
    return change;
}

void lines_difference_write(FILE *out, struct lines_text expected_text, struct lines_text printed_text)
{
    struct side expected = side_make(expected_text), printed = side_make(printed_text);
    struct edits edits = edits_make(&expected, &printed);
    size_t shown = 0, left = 0;
    for (size_t from = 0, begin, end; from < edits.count; from = end) {
        end = hunk_find(&edits, from, &begin);
        if (!is_change(&edits, begin, end)) {
            continue;
        }
        if (shown < LINES_DIFFERENCE_MAX) {
            hunk_head_write(out, &edits, begin, end);
        }
        for (size_t i = begin; i < end; i++) {
            if (shown < LINES_DIFFERENCE_MAX) {
                line_write(out, &expected, &printed, &edits.items[i]);
                shown++;
            } else {
                left++;
            }
        }
    }
    if (left > 0) {
        fprintf(out, "... and %zu more lines\n", left);
    }
    free(edits.items);
    free(expected.lines);
    free(printed.lines);
}
