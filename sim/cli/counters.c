// `tcasim counters`: what the components of scenarios count, with units and meanings. Runs nothing.
#include <ctype.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/cli/load.h"
#include "sim/kernel/text.h"
#include "sim/platform/platform.h"

enum { PATTERN_BYTES = 256, KINDS_MAX = 256, COUNTERS_MAX = 256 };

struct counters_options {
    struct cli_list sets;
    bool markdown, json;
};

static const struct cli_option options[] = {
    {"markdown", NULL, "print tables in Markdown", CLI_OPTION_FLAG, offsetof(struct counters_options, markdown)},
    {"json", NULL, "print JSON", CLI_OPTION_FLAG, offsetof(struct counters_options, json)},
    {"set", "PATH=VALUE", "override a key; may be given several times", CLI_OPTION_LIST,
     offsetof(struct counters_options, sets)},
};

static const char *const exclusive[] = {"markdown", "json", NULL};

static const struct cli_syntax syntax = {
    .exclusive = exclusive,
    .usage = "tcasim counters FILE.yaml... [--markdown | --json] [--set PATH=VALUE]...",
    .doc = "Lists every counter of the components of scenarios: its unit and meaning. Names of nodes and switches are\n"
           "NODE and SWITCH, numbers of devices N; components that count the same are one entry. Runs nothing.",
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .operands_min = 1,
    .operands_max = SIZE_MAX,
    .operand = "a scenario file",
};

// Components whose names differ only in nodes, switches and numbers.
struct kind {
    char pattern[PATTERN_BYTES];
    const struct sim_counter_desc *counters[COUNTERS_MAX];
    unsigned count;
    bool shown; // with another one that counts the same
};

struct listing {
    const struct scn_scenario *scenario;
    struct kind *kinds;
    unsigned count;
    bool full;
};

// --- patterns -------------------------------------------------------------------------------------------------------

// The length of the name if the text begins with it and it ends there.
static size_t name_match(const char *name, const char *text)
{
    size_t length = strlen(name);
    return strncmp(name, text, length) == 0 && (text[length] == '\0' || text[length] == '.' || text[length] == '-')
               ? length
               : 0;
}

// The length of the longest name of the scenario at the start of the text; 0: none. *stands_out: what stands for it.
static size_t name_length(const struct scn_scenario *scenario, const char *text, const char **stands_out)
{
    size_t longest = 0;
    for (uint32_t i = 0; i < scenario->node_count + scenario->ib_switch_count; i++) {
        bool node = i < scenario->node_count;
        const char *name = node ? scenario->nodes[i].name : scenario->ib_switches[i - scenario->node_count].name;
        size_t length = name_match(name, text);
        if (length > longest) {
            longest = length;
            *stands_out = node ? "NODE" : "SWITCH";
        }
    }
    return longest;
}

static void pattern_make(const struct scn_scenario *scenario, const char *component, char pattern[PATTERN_BYTES])
{
    size_t to = 0;
    bool begins = true;
    while (*component != '\0' && to + 8 < PATTERN_BYTES) {
        const char *stands = NULL;
        size_t length = begins ? name_length(scenario, component, &stands) : 0;
        bool number = isdigit((unsigned char)*component) && to > 0 && isalpha((unsigned char)pattern[to - 1]);
        if (length > 0) {
            to += (size_t)sprintf(pattern + to, "%s", stands);
            component += length;
        } else if (number) {
            pattern[to++] = 'N';
            component += strspn(component, "0123456789");
        } else {
            pattern[to++] = *component++;
        }
        begins = component[-1] == '-';
    }
    pattern[to] = '\0';
}

// --- the list -------------------------------------------------------------------------------------------------------

static struct kind *kind_find(struct listing *listing, const char *pattern)
{
    for (unsigned i = 0; i < listing->count; i++) {
        if (strcmp(listing->kinds[i].pattern, pattern) == 0) {
            return &listing->kinds[i];
        }
    }
    if (listing->count == KINDS_MAX) {
        return NULL;
    }
    struct kind *kind = &listing->kinds[listing->count++];
    (void)snprintf(kind->pattern, sizeof kind->pattern, "%s", pattern);
    return kind;
}

static void counter_take(void *ctx, const char *component, const struct sim_counter_desc *desc, uint64_t value)
{
    struct listing *listing = ctx;
    char pattern[PATTERN_BYTES];
    (void)value;
    pattern_make(listing->scenario, component, pattern);
    struct kind *kind = kind_find(listing, pattern);
    bool known = false;
    for (unsigned i = 0; kind != NULL && i < kind->count; i++) {
        known = known || kind->counters[i] == desc;
    }
    listing->full = listing->full || kind == NULL || (!known && kind->count == COUNTERS_MAX);
    if (!listing->full && !known) {
        kind->counters[kind->count++] = desc;
    }
}

static bool same(const struct kind *one, const struct kind *two)
{
    return one->count == two->count && memcmp(one->counters, two->counters, one->count * sizeof one->counters[0]) == 0;
}

// --- forms ----------------------------------------------------------------------------------------------------------

static void heading_print(struct listing *listing, unsigned first, const char *before, const char *between,
                          const char *after)
{
    printf("%s%s", before, listing->kinds[first].pattern);
    for (unsigned i = first + 1; i < listing->count; i++) {
        if (same(&listing->kinds[first], &listing->kinds[i])) {
            listing->kinds[i].shown = true;
            printf("%s%s", between, listing->kinds[i].pattern);
        }
    }
    fputs(after, stdout);
}

static void kind_print(const struct kind *kind, const struct counters_options *given)
{
    for (unsigned i = 0; i < kind->count; i++) {
        const struct sim_counter_desc *counter = kind->counters[i];
        if (given->json) {
            printf("%s{\"name\":", i > 0 ? "," : "");
            sim_text_quote(stdout, counter->name);
            fputs(",\"unit\":", stdout);
            sim_text_quote(stdout, counter->unit);
            fputs(",\"meaning\":", stdout);
            sim_text_quote(stdout, counter->doc);
            fputc('}', stdout);
        } else if (given->markdown) {
            printf("| `%s` | %s | %s |\n", counter->name, counter->unit, counter->doc);
        } else {
            printf("  %-28s %-12s %s\n", counter->name, counter->unit, counter->doc);
        }
    }
}

static void listing_print(struct listing *listing, const struct counters_options *given)
{
    for (unsigned i = 0; i < listing->count; i++) {
        if (listing->kinds[i].shown) {
            continue;
        }
        if (given->json) {
            heading_print(listing, i, "{\"components\":[\"", "\",\"", "\"],\"counters\":[");
        } else if (given->markdown) {
            heading_print(listing, i, i > 0 ? "\n## `" : "## `", "`, `",
                          "`\n\n| counter | unit | meaning |\n|---|---|---|\n");
        } else {
            heading_print(listing, i, i > 0 ? "\n" : "", ", ", "\n");
        }
        kind_print(&listing->kinds[i], given);
        fputs(given->json ? "]}\n" : "", stdout);
    }
}

static bool file_list(struct listing *listing, const char *file, const struct cli_paths *paths,
                      const struct cli_list *sets)
{
    struct scn_scenario *scenario = cli_scenario_load(file, paths, sets);
    if (scenario == NULL) {
        return false;
    }
    listing->scenario = scenario;
    enum sim_status status = plat_counters_list(scenario, counter_take, listing);
    scn_free(scenario);
    if (status != SIM_OK || listing->full) {
        cli_error("%s: %s", file,
                  listing->full ? "it has more kinds of counters than can be listed" : sim_status_text(status));
    }
    return status == SIM_OK && !listing->full;
}

enum cli_exit cli_counters(int argc, char **argv)
{
    struct counters_options given = {0};
    struct cli_list files = {0};
    struct listing listing = {.kinds = calloc(KINDS_MAX, sizeof *listing.kinds)};
    bool good = listing.kinds != NULL;
    enum cli_parsed parsed = cli_options_parse(&syntax, argc, argv, &given, &files);
    if (parsed == CLI_PARSED_RUN && good) {
        struct cli_paths paths;
        cli_paths_find(&paths);
        for (size_t i = 0; i < files.count && good; i++) {
            good = file_list(&listing, files.items[i], &paths, &given.sets);
        }
        if (good) {
            listing_print(&listing, &given);
        }
    }
    free(listing.kinds);
    cli_list_free(&given.sets);
    cli_list_free(&files);
    return parsed == CLI_PARSED_WRONG || !good ? CLI_EXIT_INPUT : CLI_EXIT_OK;
}
