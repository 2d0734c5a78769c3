#include "sim/cli/manual.h"

#include <ctype.h>
#include <string.h>

#include "sim/kernel/text.h"
#include "sim/scenario/scenario.h"

static enum cli_help_form form = CLI_HELP_TEXT;

void cli_help_form_set(enum cli_help_form wanted)
{
    form = wanted;
}

enum cli_help_form cli_help_form(void)
{
    return form;
}

static void head_print(const char *page, unsigned section, FILE *out)
{
    fputs(".TH ", out);
    for (; *page != '\0'; page++) {
        fputc(toupper((unsigned char)*page), out);
    }
    fprintf(out, " %u \"\" \"tcasim " TCASIM_VERSION "\" \"tcasim\"\n", section);
}

static void option_print(const struct cli_option *option, FILE *out)
{
    bool maybe = option->kind == CLI_OPTION_MAYBE;
    fputs(".TP\n.B \\-\\-", out);
    sim_text_manual(out, option->name);
    if (option->value != NULL) {
        fprintf(out, "\\fR %s\\fI%s\\fR%s", maybe ? "[" : "", option->value, maybe ? "]" : "");
    }
    fputc('\n', out);
    sim_text_manual(out, option->doc);
    fputc('\n', out);
}

void cli_manual_print(const char *command, const struct cli_syntax *syntax, const struct cli_option *help, FILE *out)
{
    char page[64];
    snprintf(page, sizeof page, "tcasim-%s", command);
    head_print(page, 1, out);
    // The first sentence is the page's line in lists of pages.
    size_t sentence = strcspn(syntax->doc, ".");
    fputs(".SH NAME\n", out);
    sim_text_manual(out, page);
    fputs(" \\- ", out);
    for (size_t i = 0; i < sentence; i++) {
        const char character[] = {syntax->doc[i] == '\n' ? ' ' : syntax->doc[i], '\0'};
        sim_text_manual(out, character);
    }
    fputs("\n.SH SYNOPSIS\n.nf\n", out);
    sim_text_manual(out, syntax->usage);
    fputs("\n.fi\n.SH DESCRIPTION\n", out);
    sim_text_manual(out, syntax->doc);
    fputs("\n.SH OPTIONS\n", out);
    for (size_t i = 0; i < syntax->option_count; i++) {
        option_print(&syntax->options[i], out);
    }
    option_print(help, out);
    fputs(".SH SEE ALSO\n.BR tcasim (1)\n", out);
}

void cli_words_print(const struct cli_syntax *syntax, const struct cli_option *help, FILE *out)
{
    for (size_t i = 0; i < syntax->option_count; i++) {
        fprintf(out, "--%s\n", syntax->options[i].name);
    }
    fprintf(out, "--%s\n", help->name);
}

void cli_manual_of_program_print(const struct cli_command *commands, size_t count, FILE *out)
{
    head_print("tcasim", 1, out);
    fputs(
        ".SH NAME\ntcasim \\- simulates GPU\\-cluster nodes joined by PEACH2 boards over PCI Express\n.SH SYNOPSIS\n"
        ".B tcasim\n.I command\n.RB [ \\-\\-help ]\n\\&...\n.SH DESCRIPTION\nA full\\-system simulator of the "
        "TCA/PEACH2 fabric. Scenarios in YAML describe nodes, cables and measurements; programs on\nlibibverbs, MPI or "
        "the TCA library run unmodified in simulated time.\n.SH COMMANDS\n",
        out);
    for (size_t i = 0; i < count; i++) {
        fprintf(out, ".TP\n.BR tcasim\\-%s (1)\n", commands[i].name);
        sim_text_manual(out, commands[i].summary);
        fputc('\n', out);
    }
    fputs(
        ".TP\n.BR tcasim\\-scenario (5)\nthe keys of a scenario\n"
        ".SH EXIT STATUS\n0 fine, 1 an expectation does not hold, 2 bad input, 3 the simulation got stuck, 130 stopped "
        "by Ctrl\\-C.\n.SH ENVIRONMENT\n.TP\n.B TCASIM_HOME\nwhere configs, scenarios and published values are; "
        "otherwise they are found beside the program\n",
        out);
}

enum cli_exit cli_manual_of_scenario_print(FILE *out)
{
    head_print("tcasim-scenario", 5, out);
    return scn_print_params(out, NULL, NULL, SCN_PARAMS_MANUAL) == SIM_OK ? CLI_EXIT_OK : CLI_EXIT_INPUT;
}
